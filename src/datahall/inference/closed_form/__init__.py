"""A replica in its steady state without simulation: what it holds under latency limits, what binds, what helps."""
