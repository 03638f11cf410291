"""Verbs about what runs: failures, queues, data, power, and endpoints."""
