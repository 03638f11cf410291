"""Inputs of a run that change nothing as it is."""

from __future__ import annotations

from datahall.reliability.run import Run
from datahall.scenario.idle import idle_together
from datahall.scenario.scenario import Scenario


def idle_in_run(scenario: Scenario, run: Run) -> tuple[str, ...]:
    """What a job of one replica has no use for."""
    if run.recovery.elastic:
        return ()
    return idle_together(scenario, ("elastic", "stall"), "there is one replica only")
