"""Inputs of a run that change nothing as it is."""

from __future__ import annotations

from datahall.errors import option
from datahall.reliability.elastic import num_sharing
from datahall.reliability.job import RunningJob
from datahall.reliability.run import Run
from datahall.scenario.idle import idle_together
from datahall.scenario.scenario import Scenario
from datahall.units import fmt


def idle_in_run(scenario: Scenario, run: Run) -> tuple[str, ...]:
    """What a job with one copy of its state has no use for, and an interval that planned stops do not wait for."""
    notes: list[str] = []
    if not run.recovery.elastic:
        notes += idle_together(scenario, ("elastic", "stall"), _why_all_stop(run.job))
    every_s = run.recovery.planned_every_s
    if run.plan.last.interval_s > every_s:
        why = f"planned stops come every {fmt(every_s, 's', 3)}, and each writes a copy"
        notes += idle_together(scenario, ("interval",), why)
    return tuple(notes)


def _why_all_stop(job: RunningJob) -> str:
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
