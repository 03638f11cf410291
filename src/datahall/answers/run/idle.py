"""Inputs of a run that change nothing as it is."""

from __future__ import annotations

from datahall.reliability.idle import idle_inputs, why_all_stop
from datahall.reliability.run import Run
from datahall.scenario.idle import idle_notes, idle_together
from datahall.scenario.scenario import Scenario
from datahall.training.early import says_layout


def idle_in_run(scenario: Scenario, run: Run) -> tuple[str, ...]:
    """What was said of a run for nothing."""
    return (*idle_notes(scenario, idle_inputs(run)), *_idle_margin(scenario))


def idle_in_plan(scenario: Scenario, run: Run) -> tuple[str, ...]:
    """The same of its checkpoints alone: each tier is looked at there, used or not."""
    alone = () if run.recovery.elastic else idle_together(scenario, ("elastic",), why_all_stop(run.job))
    return (*alone, *_idle_margin(scenario))


def _idle_margin(scenario: Scenario) -> tuple[str, ...]:
    """That memory is left free by a layout that is looked for, and by no other."""
    if not says_layout(scenario):
        return ()
    return idle_together(scenario, ("memory_margin",), "the layout is said, and none is looked for")
