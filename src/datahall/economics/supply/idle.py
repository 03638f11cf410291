"""Limits of supply that keep no chip from being had."""

from __future__ import annotations

from collections.abc import Iterable

from datahall.catalog.entries.chip import Chip
from datahall.economics.supply.export import licence_for
from datahall.economics.supply.limits import why_without
from datahall.economics.supply.places import regions_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.money.supply import Supply


def idle_inputs(scenario: Scenario, chips: Iterable[Chip], *, says_country: bool = True) -> dict[str, str]:
    """Inputs that leave out, or keep, none of some chips, each with why; a plan says what holds for its country."""
    asked, catalog, weighed = scenario.one(Supply), scenario.catalog, tuple(chips)
    found: dict[str, str] = {}
    if asked.without and not any(why_without(chip, asked.without, catalog) for chip in weighed):
        found["without"] = "none of the chips is made there"
    bought = scenario.one(Purchase)
    if bought.residency and bought.regions and len(regions_of(bought, catalog)) == len(bought.regions):
        found["residency"] = "all of the regions are there"
    if asked.country and not any(licence_for(chip, asked.country, catalog) for chip in weighed):
        why = f"no chip needs a licence for {catalog.country(asked.country).title}"
        found |= {"licensed": why} if says_country else {"licensed": why, "country": why}
    return found
