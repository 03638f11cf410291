"""Replicas behind a router: pools, balancing, autoscaling, the cache of whole answers, streams of requests merged."""
