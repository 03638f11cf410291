"""Inputs of a run that change nothing as it is."""

from __future__ import annotations

from datahall.reliability.run import Run
from datahall.scenario.idle import idle_together
from datahall.scenario.scenario import Scenario
from datahall.units import fmt


def idle_in_run(scenario: Scenario, run: Run) -> tuple[str, ...]:
    """What a job of one replica has no use for, and an interval that planned stops do not wait for."""
    notes: list[str] = []
    if not run.recovery.elastic:
        notes += idle_together(scenario, ("elastic", "stall"), "there is one replica only")
    every_s = run.recovery.planned_every_s
    if run.plan.last.interval_s > every_s:
        why = f"planned stops come every {fmt(every_s, 's', 3)}, and each writes a copy"
        notes += idle_together(scenario, ("interval",), why)
    return tuple(notes)
