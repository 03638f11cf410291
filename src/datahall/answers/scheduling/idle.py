"""What was said of a queue and changes nothing."""

from __future__ import annotations

from datahall.scenario.idle import do_nothing, idle_notes
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.scheduling import ClusterJob
from datahall.scheduling.comparison import Comparison
from datahall.scheduling.idle import idle_inputs, idle_keys


def idle_in_queue(scenario: Scenario, found: Comparison) -> tuple[str, ...]:
    """Inputs of the scheduler, and keys of jobs, that no policy asks for or that nothing happened to."""
    keys = idle_keys(scenario.all(ClusterJob), found.question.scheduler, found.question.machine, found.runs)
    return (
        *idle_notes(scenario, idle_inputs(found.runs)),
        *(do_nothing([key], why) for key, why in keys.items()),
    )
