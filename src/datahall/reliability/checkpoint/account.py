"""What each tier costs: alone against the failures that it survives, and in a plan."""

from __future__ import annotations

from typing import NamedTuple

from datahall.reliability.checkpoint.plan import covered
from datahall.reliability.checkpoint.tier import Cadence, CheckpointTier
from datahall.reliability.run import Run


class Alone(NamedTuple):
    """A tier alone: the share of failures that it survives, its best interval against them, and what one costs."""

    tier: CheckpointTier
    survived_fraction: float
    interval_s: float | None  # None: it is of no use
    failure_s: float | None  # restart, drain and half an interval of work


class Used(NamedTuple):
    """A tier of a plan: how often in steps, the share of the time that it stops, and of the work lost with it."""

    cadence: Cadence
    num_steps: float
    blocking_fraction: float
    lost_fraction: float


def tiers_account(run: Run) -> tuple[Alone, ...]:
    """Every tier of the machine, nearest first."""
    return tuple(_alone(run, tier) for tier in run.tiers)


def _alone(run: Run, tier: CheckpointTier) -> Alone:
    share, plan = covered(run.shares, tier), run.alone(tier).cadences
    if tier.lacks or not plan:
        return Alone(tier, share, None, None)
    interval_s = plan[0].interval_s
    restart_s = run.recovery.fixed_s + tier.load_s
    return Alone(tier, share, interval_s, restart_s + tier.drain_s + interval_s / 2.0)


def plan_account(run: Run) -> tuple[Used, ...]:
    """Every tier of the plan, nearest first."""
    return tuple(
        Used(
            one,
            one.interval_s / run.job.step_s,
            one.tier.blocking_s / one.interval_s,
            one.share_fraction * (one.interval_s / 2.0 + one.tier.drain_s) / run.plan.mttf_s,
        )
        for one in run.plan.cadences
    )
