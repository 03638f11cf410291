"""A run that is done too late, or never: what binds, and changes that are tried before they are said."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf

import msgspec

from datahall.counted import counted
from datahall.errors import InfeasibleError, ScenarioError, option
from datahall.planner.plan import Refusal
from datahall.planner.training.dated import Question
from datahall.planner.training.operations import done_by, with_goodput
from datahall.planner.training.plan import Mended, TrainingPlan
from datahall.reliability.sections.goodput import Goodput
from datahall.reliability.simulation.story import GIVEN_UP_AFTER, nothing_comes
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.scenario.sections.operations.checkpoint import Checkpointing
from datahall.scenario.sections.operations.run import Recovering
from datahall.units import DAY_S, fmt, parse

ROOM = 1.1  # times the storage that is enough: two digits of it are said
MOST_HALVINGS = 12  # of a restart, until a run with it is done in time
MOST_DAYS = 3  # that are added to a deadline which turns out too short
BATCHES = (2, 4, 8)  # times the global batch


def mended(plan: TrainingPlan, limit_s: float, scenario: Scenario) -> Mended | None:
    """Storage that keeps up, or a shorter restart, with which nine of ten runs of a plan are done by a time."""
    goodput = plan.part(Goodput)

    def done(changed: Scenario) -> bool:
        there = with_goodput(plan, changed)
        if there.surely_late(min(limit_s, GIVEN_UP_AFTER * there.duration_s)):
            return False
        done_s = done_by(there, changed)
        return done_s < inf and done_s <= limit_s

    if not goodput.storage.enough:
        text = _typed(ROOM * goodput.storage.ample_bytes_per_s, "bytes_per_s")
        ample = parse(text, "bytes_per_s")
        said = msgspec.structs.replace(scenario.one(Checkpointing), storage_bytes_per_s=ample)
        if done(scenario.having(said)):
            return Mended("storage", text)
    restart_s = goodput.run.restart_s
    for _ in range(MOST_HALVINGS):
        restart_s /= 2.0
        text = _typed(restart_s, "s")
        said_s = parse(text, "s")
        if done(scenario.having(msgspec.structs.replace(scenario.one(Recovering), restart_s=said_s))):
            return Mended("restart", text)
    return None


def _typed(value: float, unit: str) -> str:
    return fmt(value, unit, 2).replace(" ", "")


def too_late(
    asked: Question,
    deadline_s: float,
    weighed: Sequence[TrainingPlan],
    refused: Sequence[Refusal],
    needed: float,
    most_chips: int,
) -> InfeasibleError:
    """No number of chips is in time; `most_chips`: all that there are, 0 where that is not why."""
    job = asked.job
    late = f"no number of chips trains {job.model.name} in {fmt(deadline_s, 's')}"
    if not weighed and refused:
        return InfeasibleError(refused[-1].why, field="deadline", hint=refused[-1].hint)
    if not weighed:
        return InfeasibleError(
            f"{late}: at their peak it would take {needed:,.0f}, and {MOST_CHIPS:,} are the most that are weighed",
            field="deadline",
            hint="a longer deadline, or fewer tokens",
        )
    best = min(weighed, key=lambda one: (one.elapsed_s, one.duration_s))
    done_s = asked.done_by(best) if best.done_s is None else best.done_s
    quick = [one for one in weighed if one.duration_s <= deadline_s]
    if quick:
        return _interrupted(asked, deadline_s, min(quick, key=lambda one: one.elapsed_s), best, done_s, late)
    takes = (
        f"takes {fmt(best.duration_s, 's')} of steps, nine of ten runs {fmt(done_s, 's')} with interruptions"
    )
    if most_chips:
        return InfeasibleError(
            f"{late}: on the {most_chips:,} chips that there are it {takes}",
            field="deadline",
            hint=_either(_longer(asked, best, done_s), "a larger fabric"),
        )
    return InfeasibleError(
        f"{late}: the fastest, {counted(best.num_chips, 'chip')}, {takes}; beyond a global batch of "
        f"{counted(best.job.global_batch, 'sequence')} more chips have nothing to do",
        field="deadline",
        hint=_either(_larger_batch(asked, best, deadline_s), _longer(asked, best, done_s)),
    )


def _interrupted(
    asked: Question, deadline_s: float, quick: TrainingPlan, best: TrainingPlan, done_s: float, late: str
) -> InfeasibleError:
    """Steps alone would be in time: failures bind."""
    goodput = quick.part(Goodput)
    why, wanted = nothing_comes(goodput.run, goodput.expected)
    chips = counted(quick.num_chips, "chip")
    ends = (
        f"nine of ten runs are done after {fmt(done_s, 's')} at best"
        if done_s < inf
        else "no run comes to an end"
    )
    change = asked.mended(quick, deadline_s)
    return InfeasibleError(
        f"{late}: the steps take {fmt(quick.duration_s, 's')} on {chips}, and failures bind: {why}; {ends}, on "
        f"{counted(best.num_chips, 'chip')}",
        field="deadline",
        hint=_either(change.words if change else "", _longer(asked, best, done_s)) or wanted,
    )


def _either(*ways: str) -> str:
    return ", or ".join(way for way in ways if way)


def _longer(asked: Question, best: TrainingPlan, done_s: float) -> str:
    """Whole days after which the best run is done."""
    if done_s == inf:
        return ""
    days = ceil(done_s / DAY_S)
    for more in range(MOST_DAYS):
        if _in_time(asked, best.num_chips, (days + more) * DAY_S):
            return option("deadline", f"{days + more}d")
    return ""


def _larger_batch(asked: Question, best: TrainingPlan, deadline_s: float) -> str:
    """A global batch that feeds as many more chips as are enough."""
    for times in BATCHES:
        job = msgspec.structs.replace(best.job, global_batch=times * best.job.global_batch)
        num_chips = min(MOST_CHIPS, times * best.num_chips)
        if _in_time(msgspec.structs.replace(asked, job=job, states_batch=True), num_chips, deadline_s):
            return f"cheapest change: {option('global_batch', job.global_batch)}"
    return ""


def _in_time(asked: Question, num_chips: int, deadline_s: float) -> bool:
    try:
        return asked.on(num_chips, deadline_s).in_time
    except (InfeasibleError, ScenarioError):
        return False
