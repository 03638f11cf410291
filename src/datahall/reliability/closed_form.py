"""A whole run in closed form, beside its simulation: failures, planned stops, tolerance, corruption.

    ETTR = plan · v · (1 − P/T_P) · e^{−q_s D/M} · w · E[speed(n)]

A plan of checkpoints keeps what `checkpoint/plan.py` says; a step takes 1/v as long for those who are slow and for
looking for corruption; planned stops take P of every T_P, and each writes a copy; silent corruption, the share q_s of
failures, is found D later and costs as much more; w of the time there are nodes enough (`nodes/pool.py`), which
leave and come back whatever the job does, while failures come as often in that time as if there always were.  Where
replicas go on without one that fails, n of them are out at once, Poisson with mean R/M, and each failure costs a
stall; only the others restart the run, and any begins a restart anew.  Replicas do not wait for nodes here: they have
spares enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, exp, expm1, inf, prod, sqrt

import msgspec

from datahall.reliability.checkpoint.plan import CheckpointPlan, shares_of
from datahall.reliability.checkpoint.tier import Cadence
from datahall.reliability.ettr import MOST_RESTARTS_MTTF, replica_ettr
from datahall.reliability.nodes.pool import ALWAYS, Enough, enough_nodes
from datahall.reliability.recovery import ANY_SPARES, PREEMPTED, SILENT, Recovery, interrupted
from datahall.reliability.run import Run, stopping

TINY = 1e-9  # of an interval
CLOSE = 0.01  # of the length of a run
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


def expected(run: Run, until_s: float = inf, goal_s: float = inf) -> Expected:
    """The share of the time that moves a run forward, under both definitions; to an end, whole stops are counted."""
    recovery = run.recovery
    plan, copies = _copied(run, until_s)
    others = {
        "steps": run.speed_fraction,
        "planned": 1.0 - planned_fraction(recovery, until_s),
        "corruption": exp(-_share(run, SILENT) * recovery.silent_s / run.mttf_s) if run.mttf_s < inf else 1.0,
        "replicas": tolerated(run),
    }
    enough = _enough(run, until_s, goal_s, plan, copies * prod(others.values()))
    taken = (
        _share(run, PREEMPTED) * plan.mttf_s / run.mttf_s if recovery.back_s and plan.mttf_s < inf else 0.0
    )
    late_s = taken * (recovery.back_s + _moved_later_s(recovery))
    wall_rate = msgspec.structs.replace(plan, fixed_s=plan.fixed_s + late_s)
    return Expected(
        leaves={
            "restarts": restarted(run, plan, enough),
            "copies": copies,
            "repairs": enough.repaired_fraction,
            "capacity": enough.there_fraction,
            **others,
        },
        wall_rate_ettr=_wall_rate(wall_rate) * enough.repaired_fraction * prod(others.values()),
    )


def _enough(run: Run, until_s: float, goal_s: float, plan: CheckpointPlan, others: float) -> Enough:
    """The time that there are nodes enough, of a run that is as long as its work takes where it has no other end."""
    process, recovery = interrupted(run.process, run.recovery), run.recovery
    if until_s < inf or goal_s == inf or recovery.num_spares == ANY_SPARES:
        return enough_nodes(process, recovery, until_s)
    low_s, high_s, enough = goal_s, MOST_RESTARTS_MTTF * goal_s, ALWAYS
    while high_s > low_s * (1.0 + CLOSE):
        span_s = sqrt(low_s * high_s)
        enough = enough_nodes(process, recovery, span_s)
        kept = others * restarted(run, plan, enough) * enough.repaired_fraction * enough.there_fraction
        low_s, high_s = (low_s, span_s) if kept * span_s > goal_s else (span_s, high_s)
    return enough


def _noticed(run: Run) -> CheckpointPlan:
    """The plan where capacity is taken away with notice enough for a last copy: it is read, and nothing is lost."""
    plan, last = run.plan, run.plan.last
    saving_s = last.tier.blocking_s + last.tier.drain_s
    if run.mttf_s == inf or not 0.0 < run.recovery.notice_s >= saving_s:
        return plan
    saved = min(last.share_fraction, _share(run, PREEMPTED) * plan.mttf_s / run.mttf_s)
    left = msgspec.structs.replace(last, share_fraction=last.share_fraction - saved)
    fixed_s = plan.fixed_s + saved * (last.tier.load_s + last.tier.blocking_s)
    return msgspec.structs.replace(plan, cadences=(*plan.cadences[:-1], left), fixed_s=fixed_s)


def _copied(run: Run, until_s: float) -> tuple[CheckpointPlan, float]:
    """The plan as planned stops and the end of the run cut its intervals short, and what its copies leave.

    A copy every T of the clock, whatever was done since, leaves M (1 − e^{−T/M}) / T at least.  Where copies come every
    t < T besides, n − 1 intervals are whole and the last is r: (n − 1) t²/T + r²/T in the mean of all work.
    """
    plan = _noticed(run)
    last = plan.last
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
    planned = run.recovery.planned_every_s <= until_s
    between_s = max(stop_s - run.recovery.planned_s * planned, last.interval_s * TINY)
    stops = 1.0 / (1.0 + last.tier.blocking_s / min(stop_s, last.interval_s))
    return cut, max(
        cut.copies_leave,
        nearer * stops * -expm1(-stop_s / own_s) * own_s / stop_s,
        plan.copies_leave + nearer * stopped_s(last, own_s, between_s) / between_s,
    )


def stopped_s(cadence: Cadence, mttf_s: float, stop_s: float) -> float:
    """Work that a stop keeps which a run that goes on would not yet have in a copy, in the mean [s].

    Work is kept in copies that are there D + k (t + d) after a restart, k = 1, 2, …: each with the chance q^k e^{−D/M}
    that nothing fails before, q = e^{−(t + d)/M}.  A stop keeps all that there is since the restart, M t/(t + d) in the
    mean, of which a run that goes on has some already and keeps the next copies by chance: together

        M t/(t + d) − t e^{−D/M} [D/M · q/(1 − q) + (t + d)/M · q/(1 − q)²]

    where failures come between two stops, 1 − e^{−T/M} of it; the drain D is counted with the restart elsewhere.
    """
    tier, t = cadence.tier, cadence.interval_s
    cycle, drain = (t + tier.blocking_s) / mttf_s, tier.drain_s / mttf_s
    if cycle + drain > MOST_RESTARTS_MTTF:
        kept_s = t / cycle
    else:
        q, gone = exp(-cycle), -expm1(-cycle)
        kept_s = t * (exp(drain) / cycle - drain * q / gone - cycle * q / gone**2)
    return -expm1(-stop_s / mttf_s) * kept_s


def restarted(run: Run, plan: CheckpointPlan, enough: Enough) -> float:
    """What restarts leave of the time in which there are nodes enough.

    A restart R succeeds before the next failure with p = e^{−R/M}, and takes M (1 − p)/p in the mean: any failure, one
    every M, begins it anew.  Of a failure that is waited for what is left of R is shorter, as it is noticed meanwhile;
    R has the hot spares that failures find free, and what is taken away finds none.  One that stops the run comes every
    M' ≥ M of work: with p₁ of it and p of the others 1 / (1 + M/M' · (1 − p₁)/p) is left.
    """
    recovery, every_s = run.recovery, run.mttf_s
    if every_s == inf or plan.mttf_s == inf:
        return 1.0
    if plan.restart_s / every_s > MOST_RESTARTS_MTTF:
        return 0.0
    detect_s, ready = recovery.detect_s, exp(-plan.restart_s / every_s)
    taken_s = _moved_later_s(recovery)
    taken = _share(run, PREEMPTED) if recovery.back_s else 0.0
    broken = enough.last_fraction * _repaired_share(run)
    stop = every_s / plan.mttf_s
    first, again = (
        ready
        * (1.0 + min(1.0, taken * more) * expm1(-taken_s / every_s) + broken * expm1(detect_s / every_s))
        for more in (1.0 / stop, 1.0)
    )
    return 1.0 / (1.0 + stop * (1.0 - first) / again)


def _moved_later_s(recovery: Recovery) -> float:
    """What a restart takes longer that waited for capacity: no hot spare stood by, and it was noticed meanwhile [s]."""
    back_s = recovery.back_s
    noticed_s = -back_s * expm1(-recovery.detect_s / back_s) if back_s else 0.0
    return recovery.reschedule_s - recovery.moved_s - noticed_s


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


def _repaired_share(run: Run) -> float:
    """Of all failures, those that need a repair."""
    whole = sum(cause.rate_per_node_day for cause in run.causes)
    return sum(one.rate_per_node_day * one.repair_fraction for one in run.causes) / whole if whole else 0.0


def tolerated(run: Run) -> float:
    """What failures of single replicas leave of the throughput; 1 where none is tolerated."""
    recovery = run.recovery
    share = 1.0 - stopping(shares_of(run.causes), recovery)[1]
    if not recovery.elastic or share <= 0.0:
        return 1.0
    back_s = recovery.fixed_s + run.plan.cadences[0].tier.load_s
    return replica_ettr(back_s, recovery.stall_s, run.mttf_s / share, recovery.speeds)


def _wall_rate(plan: CheckpointPlan) -> float:
    """The small-loss form of a plan, the losses of its tiers added up: (1 − (R + Σ q t / 2)/M) / (1 + Σ d/t)."""
    if plan.mttf_s == inf:
        return plan.ettr
    behind_s = sum(one.share_fraction * one.interval_s for one in plan.cadences) / 2.0
    blocked = sum(one.tier.blocking_s / one.interval_s for one in plan.cadences)
    return max(0.0, 1.0 - (plan.restart_s + behind_s) / plan.mttf_s) / (1.0 + blocked)
