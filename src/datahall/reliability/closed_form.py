"""A whole run in closed form, beside its simulation: failures, planned stops, tolerance, corruption.

    ETTR = plan · (1 − P/T_P) · e^{−q_s D/M} · (1 − q_w + q_w/(1 + B/M))

A plan of checkpoints keeps what `checkpoint/plan.py` says; planned stops take P of every T_P; silent corruption, the
share q_s of failures, is found D later and costs as much more; capacity that is taken away, q_w of those that stop the
run, is back after B.  Where replicas go on without one that fails, such failures cost a stall and a part of the
throughput until it is back; only the others restart the run.  Nobody waits for a repair here: there are spares enough.
"""

from __future__ import annotations

from math import exp, inf

import msgspec

from datahall.reliability.checkpoint.plan import CheckpointPlan, shares_of
from datahall.reliability.ettr import replica_ettr, wall_rate_ettr
from datahall.reliability.run import Run, stopping
from datahall.reliability.simulation.recovery import Recovery
from datahall.reliability.simulation.simulate import PREEMPTED, SILENT


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What the closed form says of a run."""

    ettr: float  # renewal
    wall_rate_ettr: float  # the other definition


def expected(run: Run, until_s: float = inf) -> Expected:
    """The share of the time that moves a run forward, under both definitions; to an end, whole stops are counted."""
    recovery = run.recovery
    planned = 1.0 - planned_fraction(recovery, until_s)
    found_late = exp(-_share(run, SILENT) * recovery.silent_s / run.mttf_s) if run.mttf_s < inf else 1.0
    kept = tolerated(run) * planned * found_late
    late_s = _taken_fraction(run) * recovery.back_s
    wall_rate = msgspec.structs.replace(run.plan, fixed_s=run.plan.fixed_s + late_s)
    return Expected(ettr=run.plan.ettr * waited(run) * kept, wall_rate_ettr=_wall_rate(wall_rate) * kept)


def planned_fraction(recovery: Recovery, until_s: float) -> float:
    """The share of the time that planned stops take."""
    every_s = recovery.planned_every_s
    if until_s < inf and every_s < inf:
        return min(1.0, until_s // every_s * recovery.planned_s / until_s)
    return min(1.0, recovery.planned_s / every_s)


def _share(run: Run, component: str) -> float:
    whole = sum(cause.rate_per_node_day for cause in run.causes)
    return sum(cause.rate_per_node_day for cause in run.causes if cause.component == component) / whole


def _taken_fraction(run: Run) -> float:
    """The share of those failures that stop the run which are capacity taken away."""
    whole = sum(cause.rate_per_node_day for cause in run.causes)
    stop = whole * stopping(shares_of(run.causes), run.recovery)[1]
    taken = sum(cause.rate_per_node_day for cause in run.causes if cause.name == PREEMPTED)
    return taken / stop if stop else 0.0


def waited(run: Run) -> float:
    """What waits for capacity leave: a restart succeeds before the next failure with E[e^(−W/M)] of its chance.

    Of a share q of the failures that is followed by an exponential wait of mean B:  1 − q + q / (1 + B/M).
    """
    share = _taken_fraction(run)
    return 1.0 - share + share / (1.0 + run.recovery.back_s / run.plan.mttf_s)


def tolerated(run: Run) -> float:
    """What failures of single replicas leave of the throughput; 1 where none is tolerated."""
    recovery = run.recovery
    share = 1.0 - stopping(shares_of(run.causes), recovery)[1]
    if not recovery.elastic or share <= 0.0:
        return 1.0
    back_s = recovery.detect_s + recovery.reschedule_s + recovery.warmup_s + run.plan.cadences[0].tier.load_s
    without = 1.0 - recovery.speeds[1]
    return replica_ettr(back_s, recovery.stall_s, run.mttf_s / share, without)


def _wall_rate(plan: CheckpointPlan) -> float:
    """The small-loss form of a plan: the losses of its tiers added up."""
    if plan.mttf_s == inf:
        return plan.ettr
    blocked = sum(one.tier.blocking_s / one.interval_s for one in plan.cadences)
    half_s = sum(one.share_fraction * one.interval_s for one in plan.cadences)
    return wall_rate_ettr(half_s, blocked * half_s, plan.restart_s, plan.mttf_s)
