"""Words of what was promised of a run: whether it is kept, and the cheapest change with which it would be."""

from __future__ import annotations

from typing import NamedTuple

from datahall.answers.run.simulation_tables import LOSS_WORDS
from datahall.counted import counted
from datahall.planner.training.laid.remedy import Remedy
from datahall.reliability.reach import Reach
from datahall.reliability.simulation.promise import Kept
from datahall.reliability.simulation.story import Story, nothing_comes
from datahall.scenario.field import grouped
from datahall.scenario.kinds import Plain
from datahall.scenario.sections.operations.run import RESTART
from datahall.units import fmt

WAYS = {
    "interval": "a checkpoint every {}, the best interval, instead of {}",
    "blocking": "checkpoints that stop it for {} instead of {}",
    "restart": "restarts of {} instead of {}",
}


def result_name(kept: Kept) -> str:
    """What the share of the runs that keep a promise is called among the results."""
    return "ettr_kept_fraction" if kept.ettr is not None else "in_time_fraction"


def broken_in_words(kept: Kept) -> str:
    """That a promise is broken."""
    share = fmt(kept.share_fraction, "fraction", 3)
    if kept.ettr is not None:
        return f"{fmt(kept.ettr, 'fraction', 3)} are promised, which {share} of the runs reach."
    assert kept.deadline_s is not None
    return f"It must be done after {fmt(kept.deadline_s, 's', 3)}, and {share} of the runs are."


class Fixed(NamedTuple):
    """What would keep a promise, in words and as changes of the question."""

    words: str
    changes: dict[str, Plain | None]


def fixed(remedy: Remedy, story: Story) -> Fixed:
    """A remedy in words: more time or chips; a better interval, cheaper checkpoints, a shorter restart."""
    if remedy.reach is None:
        return _sooner(remedy.num_chips, story)
    assert remedy.broken.ettr is not None
    return _more_of_the_time(remedy.reach, remedy.broken.ettr, story)


def _more_of_the_time(reach: Reach, ettr: float, story: Story) -> Fixed:
    wanted, most = fmt(ettr, "fraction", 3), fmt(reach.best_ettr, "fraction", 3)
    said = f"{wanted} is out of reach at any interval: the best one keeps {most}."
    if reach.best_ettr >= ettr:
        said = f"The best interval keeps {most} in the mean, and nine of ten runs must reach {wanted}."
    if not reach.ways:
        lost = LOSS_WORDS[story.losses[0].name]
        return Fixed(
            f"{said} Neither cheaper checkpoints nor shorter restarts would do: most is lost to {lost}.", {}
        )
    words = [WAYS[way.name].format(way.text, fmt(way.now_s, "s", 2)) for way in reach.ways]
    first = reach.ways[0]
    changes: dict[str, Plain | None] = {"interval": None, first.name: first.text.replace(" ", "")}
    if first.name == "restart":
        changes |= dict.fromkeys(_parts_of_a_restart())
    elif first.name == "blocking":
        changes |= dict.fromkeys(("synchronous", "save", "copy"))
    return Fixed(f"{said} It takes {', or '.join(words)}.", changes)


def _parts_of_a_restart() -> tuple[str, ...]:
    """What is said in place of a whole one."""
    return tuple(one.name for one in grouped("recovery", RESTART) if "restart" in one.kind.against)


def _sooner(num_chips: int | None, story: Story) -> Fixed:
    """What ends a run in time."""
    done_s = story.done_s
    work = f"The work alone takes {fmt(story.goal_s, 's', 3)}, failures make it {fmt(story.elapsed_s.mean, 's', 3)}."
    late = f"{work} Nine of ten runs are done after {fmt(done_s, 's', 3)}"
    if num_chips is None:
        return Fixed(f"{late}, which is the deadline that they keep.", {})
    return Fixed(f"{late}; it takes that, or {counted(num_chips, 'chip')}.", {"chips": num_chips})


def nothing_left(story: Story) -> str:
    """Why a run hardly moves."""
    why, hint = nothing_comes(story.run, story.closed)
    return f"{why[0].upper()}{why[1:]}: it needs {hint}."
