"""A model being served: engines that batch, replicas of them, fleets of replicas, and the least hardware that keeps a
promise.  An estimate in closed form and a simulation event by event share one table of step times."""
