"""Which inputs a run was given for nothing: nothing is there that they are about."""

from __future__ import annotations

from math import isinf

from datahall.errors import option
from datahall.reliability.checkpoint.tier import TIER_ROWS
from datahall.reliability.elastic import num_sharing
from datahall.reliability.job import RunningJob
from datahall.reliability.run import Run


def idle_inputs(run: Run) -> dict[str, str]:
    """Inputs of a run that change nothing of it, and why."""
    idle: dict[str, str] = {}
    if not run.recovery.elastic:
        idle |= dict.fromkeys(("elastic", "stall"), why_all_stop(run.job))
    if isinf(run.recovery.planned_every_s):
        idle["planned"] = "no stop is planned"
    if all(TIER_ROWS[one.tier.name].has_files for one in run.plan.cadences):
        idle["copy"] = "the run keeps no copy in memory"
    return idle


def why_all_stop(job: RunningJob) -> str:
    """Why no replica can go on without another."""
    layout = job.layout
    if layout.dp == 1:
        return "there is one replica only"
    if num_sharing(layout) < layout.dp:
        return f"all {layout.dp:,} replicas are on one node"
    if layout.zero and layout.shard in (0, layout.dp):
        return (
            f"zero {layout.zero} over all {layout.dp:,} replicas leaves no copy of what a lost one held; groups with a "
            f"state each would ({option('shard')})"
        )
    return (
        f"the experts lie across all {layout.dp:,} replicas, and no chip has a copy of what a lost one held"
    )
