"""Chips of a comparison that can be had, and notes on those that cannot."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.answers.supply.idle import idle_supply, left_out_notes
from datahall.economics.supply.limits import cannot_be_had, left_out
from datahall.scenario.scenario import Scenario


def had(scenario: Scenario, names: Sequence[str], kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that are left, and why the others are not; of what is no chip, all of them."""
    if kind != "chip":
        return tuple(names), ()
    catalog = scenario.catalog
    chips = {name: catalog.chip(name) for name in names}
    why = left_out(scenario, chips.values())
    kept = tuple(name for name, chip in chips.items() if chip.name not in why)
    if why and len(kept) < 2:
        raise cannot_be_had(scenario, why, "things")
    return kept, (*left_out_notes(why), *idle_supply(scenario, chips.values(), says_country=False))
