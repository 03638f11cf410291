"""A whole run in closed form, beside its simulation: failures, planned stops, tolerance, corruption.

    ETTR = plan · v · (1 − P/T_P) · e^{−q_s D/M} · w · E[speed(n)]

A plan of checkpoints keeps what `checkpoint/plan.py` says; a step takes 1/v as long for those who are slow and for
looking for corruption; planned stops take P of every T_P, and each writes a copy; silent corruption, the share q_s of
failures, is found D later and costs as much more; waits for capacity that was taken away leave w.  Where replicas go
on without one that fails, n of them are out at once, Poisson with mean R/M, and each failure costs a stall; only the
others restart the run, and any begins a restart anew.  Nobody waits for a repair here: there are spares enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, exp, expm1, inf, prod

import msgspec

from datahall.reliability.checkpoint.plan import CheckpointPlan, shares_of
from datahall.reliability.ettr import HOPELESS, replica_ettr, wall_rate_ettr
from datahall.reliability.run import Run, stopping
from datahall.reliability.simulation.recovery import Recovery
from datahall.reliability.simulation.simulate import PREEMPTED, SILENT

FEW = 20.0  # intervals or restarts of a run: with fewer, it is seen that it ends in the midst of one


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What the closed form says of a run: what each thing leaves of the time that the others leave."""

    leaves: Mapping[str, float]
    wall_rate_ettr: float  # the other definition

    @property
    def ettr(self) -> float:
        """Renewal."""
        return prod(self.leaves.values())

    @property
    def worst(self) -> str:
        """What leaves the least."""
        return min(self.leaves, key=lambda name: self.leaves[name])


def expected(run: Run, until_s: float = inf) -> Expected:
    """The share of the time that moves a run forward, under both definitions; to an end, whole stops are counted."""
    recovery = run.recovery
    plan, copies = _copied(run, until_s)
    others = {
        "steps": run.speed_fraction,
        "planned": 1.0 - planned_fraction(recovery, until_s),
        "corruption": exp(-_share(run, SILENT) * recovery.silent_s / run.mttf_s) if run.mttf_s < inf else 1.0,
        "replicas": tolerated(run),
    }
    restarts, capacity = restarted(run)
    late_s = _share(run, PREEMPTED) * plan.mttf_s / run.mttf_s * recovery.back_s if run.mttf_s < inf else 0.0
    wall_rate = msgspec.structs.replace(plan, fixed_s=plan.fixed_s + late_s)
    return Expected(
        leaves={"restarts": restarts, "copies": copies, "capacity": capacity, **others},
        wall_rate_ettr=_wall_rate(wall_rate) * prod(others.values()),
    )


def _copied(run: Run, until_s: float) -> tuple[CheckpointPlan, float]:
    """The plan as planned stops and the end of the run cut its intervals short, and what its copies leave.

    A copy every T of the clock, whatever was done since, leaves M (1 − e^{−T/M}) / T at least.  Where copies come every
    t < T besides, n − 1 intervals are whole and the last is r: (n − 1) t²/T + r²/T in the mean of all work.
    """
    plan, last = run.plan, run.plan.last
    stop_s = min(run.recovery.planned_every_s, until_s)
    if stop_s == inf:
        return plan, plan.copies_leave
    whole = ceil(stop_s / last.interval_s) - 1
    rest_s = stop_s - whole * last.interval_s
    cut_s = (whole * last.interval_s**2 + rest_s**2) / stop_s
    cut = msgspec.structs.replace(
        plan, cadences=(*plan.cadences[:-1], msgspec.structs.replace(last, interval_s=cut_s))
    )
    own_s = last.own_mttf_s(plan.mttf_s)
    if own_s == inf:
        return cut, cut.copies_leave
    nearer = msgspec.structs.replace(plan, cadences=plan.cadences[:-1]).copies_leave
    stops = 1.0 / (1.0 + last.tier.blocking_s / min(stop_s, last.interval_s))
    return cut, max(cut.copies_leave, nearer * stops * -expm1(-stop_s / own_s) * own_s / stop_s)


def restarted(run: Run) -> tuple[float, float]:
    """What restarts leave, and what waits for capacity leave of that.

    A restart R succeeds before the next failure with p = e^{−R/M}, and takes M (1 − p)/p in the mean: any failure, one
    every M, begins it anew.  Where it is preceded by an exponential wait of mean B for a share q of the failures, p is
    1 − q + q/(1 + B/M) of that.  One that stops the run comes every M' ≥ M of work: 1 / (1 + M/M' · (1 − p)/p) is left.
    """
    plan, every_s = run.plan, run.mttf_s
    if every_s == inf or plan.mttf_s == inf:
        return 1.0, 1.0
    if plan.restart_s / every_s > HOPELESS:
        return 0.0, 1.0
    ready = exp(-plan.restart_s / every_s)
    waited = 1.0 / (1.0 + run.recovery.back_s / every_s)
    taken, stop = _share(run, PREEMPTED), every_s / plan.mttf_s
    first, again = (ready * (1.0 - share + share * waited) for share in (taken / stop, taken))
    alone, with_waits = (
        1.0 / (1.0 + stop * (1.0 - one) / two) for one, two in ((ready, ready), (first, again))
    )
    return alone, with_waits / alone


def is_short(run: Run, elapsed_s: float) -> bool:
    """Whether a run ends after few intervals: what is done since the last copy is seen then, and nothing has it."""
    copied_s = min(run.plan.last.interval_s, run.recovery.planned_every_s)
    return copied_s < elapsed_s < FEW * copied_s


def has_few_restarts(run: Run, elapsed_s: float) -> bool:
    """Whether a run ends after what a few restarts take: the last of them is cut off then, or has not come."""
    return elapsed_s < FEW * run.plan.restart_s


def planned_fraction(recovery: Recovery, until_s: float) -> float:
    """The share of the time that planned stops take: none comes when the run is over."""
    every_s = recovery.planned_every_s
    if until_s < inf and every_s < inf:
        return min(1.0, (ceil(until_s / every_s) - 1) * recovery.planned_s / until_s)
    return min(1.0, recovery.planned_s / every_s)


def _share(run: Run, what: str) -> float:
    """Of all failures, those of a component or of a cause."""
    whole = sum(cause.rate_per_node_day for cause in run.causes)
    mine = sum(cause.rate_per_node_day for cause in run.causes if what in (cause.component, cause.name))
    return mine / whole if whole else 0.0


def tolerated(run: Run) -> float:
    """What failures of single replicas leave of the throughput; 1 where none is tolerated."""
    recovery = run.recovery
    share = 1.0 - stopping(shares_of(run.causes), recovery)[1]
    if not recovery.elastic or share <= 0.0:
        return 1.0
    back_s = recovery.fixed_s + run.plan.cadences[0].tier.load_s
    return replica_ettr(back_s, recovery.stall_s, run.mttf_s / share, recovery.speeds)


def _wall_rate(plan: CheckpointPlan) -> float:
    """The small-loss form of a plan: the losses of its tiers added up."""
    if plan.mttf_s == inf:
        return plan.ettr
    blocked = sum(one.tier.blocking_s / one.interval_s for one in plan.cadences)
    half_s = sum(one.share_fraction * one.interval_s for one in plan.cadences)
    return wall_rate_ettr(half_s, blocked * half_s, plan.restart_s, plan.mttf_s)
