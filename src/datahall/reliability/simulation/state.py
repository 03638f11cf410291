"""What the loop of a simulated run reads and writes, as records that compiled code can hold."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Records: TypeAlias = NDArray[np.void]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

WORKS, FAILS, RESTARTS, PAUSES = range(4)  # what a run does


def _record(whole: str, real: str) -> np.dtype[np.void]:
    return np.dtype([(name, "<i8") for name in whole.split()] + [(name, "<f8") for name in real.split()])


# How a run is set up [s].  goal_s: work after which it is done; age_s: of its nodes, which fail more often until
# early_s (below 0: past it), of the causes that are ageing_fraction of all past it; elastic: the farthest tier that a
# failure may take up to and leave other replicas alone.
RULES = _record(
    "spares hot elastic nodes",
    "mttf_s age_s early_s early_shape ageing_fraction detect_s reschedule_s warmup_s planned_every_s planned_s stall_s"
    " silent_s bisect_s until_s goal_s",
)
# One tier of checkpoints; outlives: a bit for each kind of failure that leaves its copies.
TIER = _record("outlives", "interval_s blocking_s drain_s load_s")
# One cause; upto: its share of all failures and of those before it; back_s: mean wait for capacity that was taken away.
CAUSE = _record("survives silent nodes", "upto repair_fraction repair_median_s repair_sigma back_s notice_s")
# The newest copy of a tier, by the work that it holds: taken_s, there from ready_s on, before that kept_s.
COPY = _record("", "next_s taken_s ready_s kept_s")
# One run: what it does, its clock, its work, when what comes next is due, and where its time went.  by_age: whether the
# next failure is of those that new nodes have more often; on_spare: whether the last one found a spare free.
RUN = _record(
    "does by_age on_spare num_failures num_planned num_silent num_waits num_away num_taken most_away num_out"
    " num_points",
    "now_s work_s fail_s planned_due_s silent_due_s silent_work_s silent_good_s next_detect_s next_load_s"
    " blocking_s lost_s detect_s reschedule_s load_s warmup_s wait_s planned_s stall_s degraded_s silent_s",
)


class State(NamedTuple):
    """Everything the loop reads and writes."""

    rules: Records  # of one
    tiers: Records
    causes: Records
    copies: Records  # by tier, of the run that is played
    runs: Records
    counts: Ints  # [run, cause] failures
    away_s: Floats  # when nodes are back from repair, a heap
    taken_s: Floats  # when capacity that was taken away is back, a heap
    out_s: Floats  # when replicas are back, a heap
    speeds: Floats  # of the work, by the number of replicas that are out
    points: Floats  # [point, (time, work)] of the runs that are played, one after the other
    keys: NDArray[np.uint64]  # of the dice
    drawn: NDArray[np.uint64]  # numbers that each run has drawn
