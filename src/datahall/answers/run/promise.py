"""Whether a run keeps what was promised of it, and the cheapest change with which it would."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from datahall.answers.run.simulation_tables import loss_word
from datahall.counted import counted
from datahall.planner.training.laid.sooner import chips_in_time
from datahall.reliability.reach import ways_to_keep
from datahall.reliability.simulation.story import ENOUGH, Story, nothing_comes
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.run import RunLength
from datahall.scenario.sections.training import TrainingJob
from datahall.units import fmt


class Kept(NamedTuple):
    """A promise, and in which share of the runs it is kept."""

    ettr: float | None
    deadline_s: float | None
    share_fraction: float

    @property
    def holds(self) -> bool:
        return self.share_fraction >= ENOUGH

    @property
    def key(self) -> str:
        """What the share is called among the results."""
        return "ettr_kept_fraction" if self.ettr is not None else "in_time_fraction"

    @property
    def sentence(self) -> str:
        """That it is broken."""
        share = fmt(self.share_fraction, "fraction", 3)
        if self.ettr is not None:
            return f"{fmt(self.ettr, 'fraction', 3)} are promised, which {share} of the runs reach."
        assert self.deadline_s is not None
        return f"It must be done after {fmt(self.deadline_s, 's', 3)}, and {share} of the runs are."


def kept_promises(scenario: Scenario, story: Story) -> tuple[Kept, ...]:
    """Each promise of a run, by its runs."""
    ettr, deadline_s = scenario.one(RunLength).ettr_fraction, scenario.one(TrainingJob).deadline_s
    found = []
    if ettr is not None:
        found.append(Kept(ettr, None, story.keeping(ettr)))
    if deadline_s is not None and story.goal_s < inf:
        found.append(Kept(None, deadline_s, story.ending_by(deadline_s)))
    return tuple(found)


class Fixed(NamedTuple):
    """What would keep a promise, in words and as changes of the question."""

    words: str
    changes: dict[str, Plain | None]


PARTS = ("detect", "reschedule", "warm_up")  # of a restart, which is said whole or by them
WAYS = {
    "interval": "a checkpoint every {}, the best interval, instead of {}",
    "blocking": "checkpoints that stop it for {} instead of {}",
    "restart": "restarts of {} instead of {}",
}


def fixed(scenario: Scenario, story: Story, broken: Kept) -> Fixed:
    """What would keep the promise: more time or chips; a better interval, cheaper checkpoints, a shorter restart."""
    if broken.deadline_s is not None:
        return _sooner(scenario, story, broken.deadline_s)
    assert broken.ettr is not None
    reach = ways_to_keep(scenario, story, broken.ettr)
    wanted, most = fmt(broken.ettr, "fraction", 3), fmt(reach.best_ettr, "fraction", 3)
    said = f"{wanted} is out of reach at any interval: the best one keeps {most}."
    if reach.best_ettr >= broken.ettr:
        said = f"The best interval keeps {most} in the mean, and nine of ten runs must reach {wanted}."
    if not reach.ways:
        lost = loss_word(story, story.losses[0].name)
        return Fixed(
            f"{said} Neither cheaper checkpoints nor shorter restarts would do: most is lost to {lost}.", {}
        )
    words = [WAYS[way.name].format(way.text, fmt(way.now_s, "s", 2)) for way in reach.ways]
    first = reach.ways[0]
    changes: dict[str, Plain | None] = {"interval": None, first.name: first.text.replace(" ", "")}
    if first.name == "restart":
        changes |= dict.fromkeys(PARTS)
    elif first.name == "blocking":
        changes |= dict.fromkeys(("synchronous", "save", "copy"))
    return Fixed(f"{said} It takes {', or '.join(words)}.", changes)


def _sooner(scenario: Scenario, story: Story, deadline_s: float) -> Fixed:
    """What ends a run in time."""
    done_s = story.done_s
    work = f"The work alone takes {fmt(story.goal_s, 's', 3)}, failures make it {fmt(story.elapsed_s.mean, 's', 3)}."
    late = f"{work} Nine of ten runs are done after {fmt(done_s, 's', 3)}"
    num_chips = chips_in_time(scenario, story, deadline_s)
    if num_chips is None:
        return Fixed(f"{late}, which is the deadline that they keep.", {})
    return Fixed(f"{late}; it takes that, or {counted(num_chips, 'chip')}.", {"chips": num_chips})


def nothing_left(story: Story) -> str:
    """Why a run hardly moves."""
    why, hint = nothing_comes(story.run, story.closed)
    return f"{why[0].upper()}{why[1:]}: it needs {hint}."
