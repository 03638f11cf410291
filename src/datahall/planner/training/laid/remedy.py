"""What would keep a promise that a run breaks: a change of its copies or restarts, or more chips."""

from __future__ import annotations

from typing import NamedTuple

from datahall.planner.training.laid.sooner import chips_in_time
from datahall.reliability.reach import Reach, ways_to_keep
from datahall.reliability.simulation.promise import Kept
from datahall.reliability.simulation.story import Story
from datahall.scenario.scenario import Scenario


class Remedy(NamedTuple):
    """Of a promise that is broken; each way was simulated."""

    broken: Kept
    reach: Reach | None = None  # of a promise of ETTR
    num_chips: int | None = None  # of an end: more chips with which it is kept, if there are any


def remedy_of(scenario: Scenario, story: Story, broken: Kept) -> Remedy:
    """A better interval, cheaper copies or a shorter restart for an ETTR, more chips for an end."""
    if broken.deadline_s is not None:
        return Remedy(broken, num_chips=chips_in_time(scenario, story, broken.deadline_s))
    assert broken.ettr is not None
    return Remedy(broken, reach=ways_to_keep(scenario, story, broken.ettr))
