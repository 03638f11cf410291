"""Whether a run keeps what was promised of it, and the cheapest change with which it would."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from datahall.counted import counted
from datahall.reliability.closed_form import expected
from datahall.reliability.reach import at_best, most_blocking_s, most_restart_s
from datahall.reliability.simulation.story import ENOUGH, Story
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


def fixes(story: Story, broken: Kept) -> str:
    """What would keep the promise: more time or chips; a better interval, cheaper checkpoints, a shorter restart."""
    if broken.deadline_s is not None:
        return _sooner(story, broken.deadline_s)
    assert broken.ettr is not None
    run, wanted = story.run, broken.ettr
    best = expected(at_best(run)).ettr
    most = fmt(best, "fraction", 3)
    if best >= wanted:
        near = (
            "which nine of ten runs do not reach by chance"
            if at_best(run).plan == run.plan
            else "at another interval"
        )
        return f"The closed form keeps {most} at best, {near}."
    ways = []
    blocking_s, restart_s = most_blocking_s(run, wanted), most_restart_s(run, wanted)
    if blocking_s is not None:
        now_s = run.plan.last.tier.blocking_s
        ways.append(f"checkpoints that stop it for {fmt(blocking_s, 's', 2)} instead of {fmt(now_s, 's', 2)}")
    if restart_s is not None:
        ways.append(f"restarts of {fmt(restart_s, 's', 2)} instead of {fmt(run.plan.fixed_s, 's', 2)}")
    reach = f"{fmt(wanted, 'fraction', 3)} is out of reach at any interval: the best one keeps {most}."
    if not ways:
        return f"{reach} Neither checkpoints nor restarts that cost nothing would do alone: failures must be rarer."
    return f"{reach} It takes {', or '.join(ways)}."


def _sooner(story: Story, deadline_s: float) -> str:
    """What ends a run in time."""
    high_s = story.elapsed_s.high
    work = f"The work alone takes {fmt(story.goal_s, 's', 3)}, failures make it {fmt(story.elapsed_s.mean, 's', 3)}."
    more = counted(story.chips_by(deadline_s), "chip")
    return f"{work} Nine of ten runs are done after {fmt(high_s, 's', 3)}; it takes that, or about {more}."


def nothing_left(story: Story) -> str:
    """Why a run hardly moves."""
    run = story.run
    restart_s = run.plan.restart_s
    return (
        f"An interruption comes every {fmt(run.mttf_s, 's', 3)} and a restart takes {fmt(restart_s, 's', 3)}: it needs "
        "rarer interruptions, replicas that go on without one, or a restart that is far shorter."
    )
