"""What a run would have to be like to keep a promise: another interval, cheaper checkpoints, or a shorter restart.

The closed form says where to look, with the luck that nine of ten runs must do without; what is found is simulated, as
it is said, and one that does not keep the promise is not said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from datahall.reliability.closed_form import expected
from datahall.reliability.run import Run, run_of
from datahall.reliability.simulation.story import ENOUGH, Story, story_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.checkpoint import Checkpointing
from datahall.scenario.sections.operations.run import Recovering
from datahall.units import fmt, parse

HALVINGS, HALVINGS_SIMULATED = 30, 3
SHORTEST = 1e-6  # of what is now: nothing is so short
NEARER = 0.95  # of what was not short enough, to be tried next
MOST_TRIES = 4


class Way(NamedTuple):
    """A change with which nine of ten runs keep a promise."""

    name: str  # of the input
    text: str  # as it is typed
    now_s: float


class Reach(NamedTuple):
    """The best of the intervals, and the changes with which a promise is kept."""

    best: Run
    best_ettr: float  # in closed form
    ways: tuple[Way, ...]


def ways_to_keep(scenario: Scenario, story: Story, ettr: float) -> Reach:
    """Changes of one input each, beside the best interval, that keep a promise of ETTR in nine of ten runs."""
    run = story.run
    asked, back = scenario.one(Checkpointing), scenario.one(Recovering)
    free = msgspec.structs.replace(asked, interval_s=None)
    between = (ettr + max(0.0, story.ettr.mean - story.ettr.low), ettr)

    def with_blocking(blocking_s: float) -> Run:
        said = msgspec.structs.replace(free, blocking_s=blocking_s)
        return run_of(scenario.having(said), run.job)

    def with_restart(restart_s: float) -> Run:
        said = msgspec.structs.replace(back, restart_s=restart_s)
        return run_of(scenario.having(free, said), run.job)

    def kept(one: Run) -> bool:
        return _again(story, one).keeping(ettr) >= ENOUGH

    def expects(one: Run) -> float:
        return expected(one, story.until_s, story.goal_s).ettr

    best = run_of(scenario.having(free), run.job)
    if asked.interval_s is not None and kept(best):
        way = Way("interval", fmt(best.plan.last.interval_s, "s", 3), asked.interval_s)
        return Reach(best, expects(best), (way,))
    ways = []
    if len(run.plan.cadences) == 1:
        now_s = run.plan.last.tier.blocking_s
        ways += _longest("blocking", with_blocking, kept, expects, now_s, between)
    ways += _longest("restart", with_restart, kept, expects, run.restart_s, between)
    return Reach(best, expects(best), tuple(ways))


def _longest(
    name: str,
    changed: Callable[[float], Run],
    kept: Callable[[Run], bool],
    expects: Callable[[Run], float],
    now_s: float,
    between: tuple[float, float],
) -> list[Way]:
    """The longest that keeps a promise; none where nothing is short enough.

    It lies where the closed form has an ETTR between that of the promise and as much more as luck may take.
    """
    low_s, high_s = (_reaching(lambda one: expects(changed(one)), ettr, now_s) for ettr in between)
    if not high_s:
        return []
    for _ in range(HALVINGS_SIMULATED):
        middle_s = (low_s + high_s) / 2.0
        low_s, high_s = (middle_s, high_s) if kept(changed(middle_s)) else (low_s, middle_s)
    for _ in range(MOST_TRIES):
        text = fmt(low_s, "s", 2)
        if low_s > 0.0 and kept(changed(parse(text, "s"))):
            return [Way(name, text, now_s)]
        low_s *= NEARER
    return []


def _reaching(kept: Callable[[float], float], ettr: float, most_s: float) -> float:
    """The longest with which so much is kept [s]; 0 where none is short enough."""
    low_s, high_s = 0.0, most_s
    for _ in range(HALVINGS):
        middle_s = (low_s + high_s) / 2.0
        low_s, high_s = (middle_s, high_s) if kept(middle_s) >= ettr else (low_s, middle_s)
    return low_s if low_s > SHORTEST * most_s else 0.0


def _again(story: Story, run: Run) -> Story:
    """The same weeks of another run."""
    return story_of(
        run,
        until_s=story.until_s,
        goal_s=story.goal_s,
        num_runs=story.found.runs.size,
        seed=story.seed,
        enough_fraction=story.enough_fraction,
    )
