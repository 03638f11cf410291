"""Requests as they reach a service: when they arrive, how long they are, what they share."""
