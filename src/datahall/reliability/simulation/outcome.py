"""What came of many runs: how much of their time moved them forward, where the rest went, and how far they differ."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from datahall.reliability.checkpoint.tier import Cadence
from datahall.reliability.process import Cause
from datahall.reliability.simulation.state import Floats, Ints, Records, State

# where time goes that moves no run forward, in the order that it is said
LOSSES = (
    "blocking_s", "lost_s", "detect_s", "wait_s", "reschedule_s", "load_s", "warmup_s", "stall_s", "degraded_s",
    "silent_s", "planned_s",
)  # fmt: skip
LOW, HIGH = 10.0, 90.0  # percentiles of a band


class Spread(NamedTuple):
    """The mean over runs, and between what eight of ten lie."""

    mean: float
    low: float
    high: float


def spread(values: Floats | Ints) -> Spread:
    """Of one figure over runs.

    >>> spread(np.arange(101.0))
    Spread(mean=50.0, low=10.0, high=90.0)
    """
    low, high = np.percentile(values, (LOW, HIGH))
    return Spread(float(np.mean(values)), float(low), float(high))


class Runs(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one job; columns are by run."""

    causes: tuple[Cause, ...]
    mttf_s: float  # of the causes, all together
    plan: tuple[Cadence, ...]
    runs: Records
    counts: Ints  # [run, cause]
    state: State

    @property
    def elapsed_s(self) -> Floats:
        return np.asarray(self.runs["now_s"])

    @property
    def work_s(self) -> Floats:
        """Work that was kept."""
        return np.asarray(self.runs["work_s"])

    @property
    def ettr(self) -> Floats:
        """Work that was kept over the time that went by."""
        return self.work_s / self.elapsed_s

    @property
    def num_failures(self) -> Ints:
        return np.asarray(self.runs["num_failures"])

    def lost_s(self, name: str) -> Floats:
        """Time that went to one of `LOSSES`."""
        return np.asarray(self.runs[name])

    @property
    def typical(self) -> int:
        """The run whose ETTR is the median."""
        return int(np.argsort(self.ettr, kind="stable")[self.ettr.size // 2])
