"""Queues that others wrote down: Slurm's accounting, and traces of public clusters; what cannot be used is counted."""
