"""Orchestration: a queue of training and serving jobs on one cluster, and what policies make of it.

Jobs come from a scenario, from Slurm's accounting or from a public trace (`jobs.py`, `files/`); a compiled loop plays
them under one policy after the other (`loop/`), and `metrics.py` says what each is worth.
"""
