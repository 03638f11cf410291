"""What is promised of a run: an effective time or an end, and in which share of the runs it is kept."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from datahall.reliability.simulation.story import ENOUGH, Story
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.run import RunLength
from datahall.scenario.sections.training import TrainingJob


class Kept(NamedTuple):
    """A promise, and in which share of the runs it is kept."""

    ettr: float | None
    deadline_s: float | None
    share_fraction: float

    @property
    def holds(self) -> bool:
        return self.share_fraction >= ENOUGH


def kept_promises(scenario: Scenario, story: Story) -> tuple[Kept, ...]:
    """Each promise of a run, by its runs."""
    ettr, deadline_s = scenario.one(RunLength).ettr_fraction, scenario.one(TrainingJob).deadline_s
    found = []
    if ettr is not None:
        found.append(Kept(ettr, None, story.keeping(ettr)))
    if deadline_s is not None and story.goal_s < inf:
        found.append(Kept(None, deadline_s, story.ending_by(deadline_s)))
    return tuple(found)
