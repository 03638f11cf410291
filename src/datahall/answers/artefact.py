"""The files that run what a plan says: the question that they are from, and the command that writes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module

from datahall import __version__
from datahall.answers.follow import follow
from datahall.errors import ScenarioError, UnsupportedError
from datahall.planner.artefacts.script import Origin
from datahall.scenario.scenario import Scenario

TAIL = "-o {}"
EXTRA = "serve"  # without which rooms that serve cannot be loaded


def writer(place: str) -> Callable[..., str]:
    """The function that writes a file, by its row in the table of verbs."""
    module, _, name = place.partition(":")
    try:
        found: Callable[..., str] = getattr(import_module(f"datahall.{module}"), name)
    except ModuleNotFoundError as error:
        raise ScenarioError(
            f"this file needs the extra {EXTRA}: {error.name} is not installed",
            hint=f'pip install "datahall[{EXTRA}]"',
        ) from None
    return found


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
