"""Notes on limits of supply that keep no chip from being had, and on chips that they do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from datahall.catalog.entries.chip import Chip
from datahall.economics.supply.idle import idle_inputs
from datahall.scenario.idle import idle_notes
from datahall.scenario.scenario import Scenario


def idle_supply(scenario: Scenario, chips: Iterable[Chip], *, says_country: bool = True) -> tuple[str, ...]:
    """Limits that leave out none of some chips."""
    return idle_notes(scenario, idle_inputs(scenario, chips, says_country=says_country))


def left_out_notes(why: Mapping[str, str]) -> tuple[str, ...]:
    """Chips that cannot be had, each with why."""
    return tuple(f"{name} is left out: {reason}" for name, reason in why.items())
