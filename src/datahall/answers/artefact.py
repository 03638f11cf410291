"""The files that run what a plan says: the question that they are from, and the command that writes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from datahall import __version__
from datahall.answers.follow import follow
from datahall.errors import ScenarioError, UnsupportedError
from datahall.planner.artefacts.script import Origin
from datahall.scenario.scenario import Scenario

TAIL = "-o {}"


def origin_of(scenario: Scenario) -> Origin:
    """The question that a file comes from."""
    return Origin(follow(scenario), __version__)


def offered(scenario: Scenario, names: Iterable[str], write: Callable[[str], str]) -> tuple[str, ...]:
    """The command for the first of some files whose tool can be told all that the plan chose, where there is one."""
    for name in names:
        try:
            write(name)
        except (UnsupportedError, ScenarioError):
            continue
        return (follow(scenario, tail=TAIL.format(name)),)
    return ()
