"""Small queues to play: jobs as tuples, nodes as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from datahall.scenario.words import QueuePolicy
from datahall.scheduling.jobs import Jobs, jobs_of
from datahall.scheduling.machine import Machine, plain_machine
from datahall.scheduling.run import Conditions, Run, simulate_queue


def queue(*jobs: tuple[float, float, int], **columns: Sequence[Any]) -> Jobs:
    """Jobs of submission, run time and chips, with further columns."""
    submit, run, chips = (np.array(column) for column in zip(*jobs, strict=True))
    more = {name: np.array(values) for name, values in columns.items() if name != "users"}
    users = {"users": tuple(columns["users"])} if "users" in columns else {}
    return jobs_of(submit.astype(float), run.astype(float), chips, **users, **more)


def play(jobs: Jobs, policy: QueuePolicy, machine: Machine | int, **asked: Any) -> Run:
    """What happens; a number is so many nodes of one chip."""
    on = plain_machine(machine, 1) if isinstance(machine, int) else machine
    return simulate_queue(jobs, on, policy, Conditions(**asked))
