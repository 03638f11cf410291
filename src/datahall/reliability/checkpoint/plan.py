"""How often to write each tier, and which tiers to use: the closed form of a run with several of them.

A failure leaves copies of some tiers; of those that a plan has, the run falls back to the nearest.  With the
share q_i of failures that fall back to tier i, which therefore come every M/q_i,

    t_i  = the best interval of d_i against M/q_i, never below its drain        (each tier alone: the sum is convex)
    ETTR = e^{−R/M} · Π t_i / [M/q_i · (e^{(t_i+d_i)/(M/q_i)} − 1)],    R = Σ q_i (restart_i + drain_i)

which for one tier is the renewal form.  A copy that is not yet written out is none, so work waits a drain longer.
The nearest copy is the newest one only where no farther tier is written more often: tiers that would be are written
together, as often as is best for the sum of their stops against all failures that fall back to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import ceil, exp, inf
from typing import NamedTuple

import msgspec

from datahall.catalog.entries.failures import COPY_TIERS, Tier
from datahall.errors import InfeasibleError, option
from datahall.reliability.checkpoint.tier import Cadence, CheckpointTier, shared_s
from datahall.reliability.ettr import best_interval_s, renewal_ettr
from datahall.reliability.process import Cause
from datahall.units import HOUR_S, fmt

UNASKED_S = 3 * HOUR_S  # between copies of the last tier where no failure asks for one, as BLOOM wrote them
NOTHING_LEFT = 1e-9  # of the time: a plan that keeps no more keeps nothing
WORTH = 1e-3  # of the time that another tier must save

Shares = Mapping[Tier, float]  # of failures, by the nearest tier that each leaves


class CheckpointPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Tiers with their intervals, nearest first, and what a run with them keeps."""

    cadences: tuple[Cadence, ...]
    mttf_s: float
    fixed_s: float  # of a restart beside reading the copy

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.tier.name for one in self.cadences)

    @property
    def last(self) -> Cadence:
        """The tier that is there after any failure."""
        return self.cadences[-1]

    @property
    def restart_s(self) -> float:
        """The mean restart, with what its copies were behind."""
        waited = (one.share_fraction * (one.tier.load_s + one.tier.drain_s) for one in self.cadences)
        return self.fixed_s + sum(waited)

    @property
    def restarting_s(self) -> float:
        """The mean restart alone."""
        return self.fixed_s + sum(one.share_fraction * one.tier.load_s for one in self.cadences)

    def restart_from_s(self, cadence: Cadence) -> float:
        """A restart from the copy of one tier."""
        return self.fixed_s + cadence.tier.load_s

    @property
    def is_unasked(self) -> bool:
        """Whether the last tier is written as others wrote it, for no failure says how often."""
        return self.last.own_mttf_s(self.mttf_s) == inf and self.last.interval_s == UNASKED_S

    @property
    def restarts_leave(self) -> float:
        """Share of the time that restarts leave, and the work that copies were behind."""
        return exp(-self.restart_s / self.mttf_s) if self.mttf_s < inf else 1.0

    @property
    def copies_leave(self) -> float:
        """Share of the rest that is left by stops for copies, and by work that is lost since the last one."""
        kept = 1.0
        for one in self.cadences:
            kept *= renewal_ettr(one.interval_s, one.tier.blocking_s, 0.0, one.own_mttf_s(self.mttf_s))
        return kept

    @property
    def ettr(self) -> float:
        """Share of the time that moves the run forward."""
        kept = self.restarts_leave * self.copies_leave
        return kept if kept > NOTHING_LEFT else 0.0


def shares_of(causes: Sequence[Cause]) -> Shares:
    """The share of failures that leaves each tier as the nearest."""
    whole = sum(cause.rate_per_node_day for cause in causes)
    return {
        tier: sum(cause.rate_per_node_day for cause in causes if cause.survives == tier) / whole
        if whole
        else 0.0
        for tier in COPY_TIERS
    }


def covered(shares: Shares, tier: CheckpointTier) -> float:
    """The share of failures that a tier survives."""
    return sum(shares[name] for name in tier.outlives)


class _Together(NamedTuple):
    """Tiers that are written at once, with the shares of failures that fall back to each."""

    tiers: tuple[CheckpointTier, ...]
    shares: tuple[float, ...]
    interval_s: float


def plan_of(
    tiers: Sequence[CheckpointTier],
    shares: Shares,
    mttf_s: float,
    fixed_s: float,
    *,
    step_s: float,
    interval_s: float | None = None,
) -> CheckpointPlan:
    """Some tiers, each written as often as is best for the failures that fall back to it, or as somebody says."""
    left, found = dict(shares), list[_Together]()
    for tier in sorted(tiers, key=lambda one: one.rank):
        share = sum(left.pop(name, 0.0) for name in tier.outlives)
        asked = shared_s(mttf_s, share) < inf
        if tier.name != COPY_TIERS[-1] and not asked:
            continue  # nothing is left for it
        found.append(_together((tier,), (share,), mttf_s, step_s, interval_s))
        while len(found) > 1 and found[-2].interval_s > found[-1].interval_s:
            far, near = found.pop(), found.pop()
            both = _together(near.tiers + far.tiers, near.shares + far.shares, mttf_s, step_s, interval_s)
            found += [near, far._replace(interval_s=near.interval_s)] if not asked else [both]
    cadences = (
        Cadence(tier=tier, interval_s=block.interval_s, share_fraction=share)
        for block in found
        for tier, share in zip(block.tiers, block.shares, strict=True)
    )
    return CheckpointPlan(cadences=tuple(cadences), mttf_s=mttf_s, fixed_s=fixed_s)


def _together(
    tiers: tuple[CheckpointTier, ...],
    shares: tuple[float, ...],
    mttf_s: float,
    step_s: float,
    interval_s: float | None,
) -> _Together:
    own_s, stops_s = shared_s(mttf_s, sum(shares)), sum(tier.blocking_s for tier in tiers)
    best_s = best_interval_s(stops_s, own_s) if own_s < inf else UNASKED_S
    least_s = max(step_s, *(tier.drain_s for tier in tiers))
    return _Together(tiers, shares, interval_s or max(least_s, best_s))


def best_plan(
    tiers: Sequence[CheckpointTier],
    shares: Shares,
    mttf_s: float,
    fixed_s: float,
    *,
    step_s: float,
    worth_fraction: float = WORTH,
) -> CheckpointPlan:
    """The tiers that keep the most, the last one always among them; a further one only where it saves something."""
    usable = [tier for tier in tiers if not tier.lacks]
    *nearer, last = usable
    best: CheckpointPlan | None = None
    for count in range(len(nearer) + 1):
        for some in combinations(nearer, count):
            plan = plan_of((*some, last), shares, mttf_s, fixed_s, step_s=step_s)
            if best is None or plan.ettr > best.ettr + worth_fraction * (
                len(plan.cadences) > len(best.cadences)
            ):
                best = plan
    assert best is not None
    return best


def check_drain(cadence: Cadence) -> None:
    """Refuse an interval that ends before the last copy is written out."""
    tier = cadence.tier
    if cadence.interval_s < tier.drain_s:
        raise InfeasibleError(
            f"a copy takes {fmt(tier.drain_s, 's', 3)} to reach {tier.title}, and the next one comes after "
            f"{fmt(cadence.interval_s, 's', 3)}",
            field="interval",
            hint=f"{option('interval', f'{ceil(tier.drain_s)}s')} or longer, or a faster {option('storage')}",
        )
