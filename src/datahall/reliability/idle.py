"""Which inputs a run was given for nothing: nothing is there that they are about."""

from __future__ import annotations

from datahall.reliability.checkpoint.tier import TIER_ROWS
from datahall.reliability.run import Run
from datahall.units import fmt

ONE_REPLICA = "there is one replica only"


def idle_inputs(run: Run) -> dict[str, str]:
    """Inputs of a run that change nothing of it, and why."""
    idle: dict[str, str] = {}
    if not run.recovery.elastic:
        idle |= dict.fromkeys(("elastic", "stall"), ONE_REPLICA)
    if run.plan.last.interval_s > run.recovery.planned_every_s:
        every = fmt(run.recovery.planned_every_s, "s", 3)
        idle["interval"] = f"planned stops come every {every}, and each writes a copy"
    if all(TIER_ROWS[one.tier.name].has_files for one in run.plan.cadences):
        idle["copy"] = "the run keeps no copy in memory"
    return idle
