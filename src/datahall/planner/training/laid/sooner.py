"""More chips with which a run is done by a deadline that it misses, simulated."""

from __future__ import annotations

import msgspec

from datahall.errors import InfeasibleError, ScenarioError
from datahall.planner.training.laid.job import laid_job
from datahall.reliability.closed_form import expected
from datahall.reliability.run import length_of, run_of
from datahall.reliability.simulation.story import Story, story_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.scenario.sections.fabric import FabricDesign

MULTIPLES = tuple(half * 2.0**power for power in range(10) for half in (1.0, 1.5))  # of the chips there are
MOST_COUNTS = 4  # of them that are laid out to end a run in time


def chips_in_time(scenario: Scenario, story: Story, deadline_s: float) -> int | None:
    """More chips, a multiple of those there are, with which nine of ten runs are done by a deadline, simulated.

    On twice the chips a run is at best twice as fast, so fewer need no look; None where the first few are not enough.
    """
    num_chips, late = story.run.job.num_chips + story.run.job.num_idle, story.done_s / deadline_s
    design = scenario.one(FabricDesign)
    counts = [round(times * num_chips) for times in MULTIPLES if times >= late]
    for count in [one for one in counts if one <= MOST_CHIPS][:MOST_COUNTS]:
        more = scenario.having(msgspec.structs.replace(design, chips=count))
        try:
            run = run_of(more, laid_job(more))
            until_s, goal_s = length_of(more, run)
            if goal_s / expected(run).ettr > deadline_s:
                continue
            found = story_of(
                run, until_s=until_s, goal_s=goal_s, num_runs=story.found.runs.size, seed=story.seed,
                enough_fraction=story.enough_fraction,
            )  # fmt: skip
        except (InfeasibleError, ScenarioError):
            continue
        if found.done_s <= deadline_s:
            return count
    return None
