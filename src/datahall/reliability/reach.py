"""What a run would have to be like to keep a promise: a shorter restart, cheaper checkpoints, or rarer failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from datahall.reliability.checkpoint.plan import CheckpointPlan, plan_of
from datahall.reliability.checkpoint.tier import CheckpointTier
from datahall.reliability.closed_form import expected
from datahall.reliability.run import Run

HALVINGS = 40


def with_blocking(run: Run, blocking_s: float) -> Run:
    """The same run where a checkpoint of every tier stops it for so long, at the best interval of that."""
    tiers = [msgspec.structs.replace(one.tier, blocking_s=blocking_s) for one in run.plan.cadences]
    return msgspec.structs.replace(run, plan=_planned(run, tiers, run.plan.fixed_s))


def with_restart(run: Run, fixed_s: float) -> Run:
    """The same run where a restart takes so long, beside reading the checkpoint."""
    plan = msgspec.structs.replace(run.plan, fixed_s=fixed_s)
    return msgspec.structs.replace(run, plan=plan)


def at_best(run: Run) -> Run:
    """The same run with the best intervals of its tiers."""
    return msgspec.structs.replace(
        run, plan=_planned(run, [one.tier for one in run.plan.cadences], run.plan.fixed_s)
    )


def _planned(run: Run, tiers: Sequence[CheckpointTier], fixed_s: float) -> CheckpointPlan:
    return plan_of(tiers, run.shares, run.plan.mttf_s, fixed_s, step_s=run.job.step_s)


def most_blocking_s(run: Run, ettr: float) -> float | None:
    """The longest stop for a checkpoint with which a promise of ETTR is kept [s]; None where none is short enough."""
    return _most(
        lambda value: expected(with_blocking(run, value)).ettr >= ettr, run.plan.last.tier.blocking_s
    )


def most_restart_s(run: Run, ettr: float) -> float | None:
    """The longest restart, beside reading the checkpoint, with which it is kept [s]; None where none is."""
    return _most(lambda value: expected(with_restart(run, value)).ettr >= ettr, run.plan.fixed_s)


def _most(kept: Callable[[float], bool], now: float) -> float | None:
    if not kept(0.0):
        return None
    low, high = 0.0, now
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low
