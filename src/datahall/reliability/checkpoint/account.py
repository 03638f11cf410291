"""What each tier costs: alone against the failures that it survives, and in a plan."""

from __future__ import annotations

from math import exp, inf
from typing import NamedTuple

from datahall.reliability.checkpoint.plan import CheckpointPlan, covered
from datahall.reliability.checkpoint.tier import Cadence, CheckpointTier
from datahall.reliability.run import Run


class Alone(NamedTuple):
    """A tier alone: the share of failures that it survives, its best interval against them, and what one costs."""

    tier: CheckpointTier
    survived_fraction: float
    interval_s: float | None  # None: it is of no use
    failure_s: float | None  # restart, drain and half an interval of work


class Used(NamedTuple):
    """A tier of a plan: how often in steps, the shares of the time that its copies stop and that is lost since one."""

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


def restarting_fraction(plan: CheckpointPlan) -> float:
    """The share of the time that goes to restarts, where a failure begins one anew: 1 − e^{−R/M}."""
    if plan.mttf_s == inf:
        return 0.0
    return 1.0 - exp(-plan.restarting_s / plan.mttf_s)


def restarts_cost_most(plan: CheckpointPlan) -> bool:
    """Whether restarts take more of the time than checkpoints and lost work together."""
    return restarting_fraction(plan) > 0.5 * (1.0 - plan.ettr)


def plan_account(run: Run) -> tuple[Used, ...]:
    """Every tier of the plan, nearest first: with restarts and what is kept, all of the time.

    Copies stop the work that is kept for d of every t.  What is left besides is work that was lost, each tier's part
    by half its interval and its drain.
    """
    plan = run.plan
    stops = [plan.ettr * one.tier.blocking_s / one.interval_s for one in plan.cadences]
    lost = max(0.0, 1.0 - restarting_fraction(plan) - plan.ettr - sum(stops))
    behind_s = [one.share_fraction * (one.interval_s / 2.0 + one.tier.drain_s) for one in plan.cadences]
    whole_s = sum(behind_s)
    return tuple(
        Used(one, one.interval_s / run.job.step_s, stop, lost * mine_s / whole_s if whole_s else 0.0)
        for one, stop, mine_s in zip(plan.cadences, stops, behind_s, strict=True)
    )
