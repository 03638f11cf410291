"""Supply as a risk of a plan: who makes its chip, who has it, how long others waited, what must be asked for."""

from __future__ import annotations

import msgspec

from datahall.breakdown import Breakdown
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.supply.cloud_only import CloudOnly
from datahall.catalog.entries.supply.foundry import Foundry
from datahall.catalog.entries.supply.lead_time import LeadTime
from datahall.catalog.entries.supply.licence import Licence
from datahall.economics.market import is_listed, market_of
from datahall.economics.supply.export import is_unknown, licence_for
from datahall.economics.supply.limits import makers_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.money.supply import Supply


class Supplied(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the supply of a chip; nothing of it is a price."""

    chip: str
    makers: tuple[Foundry, ...]
    held: CloudOnly | None  # by clouds that alone have it
    sellers: tuple[str, ...]  # who rent it out on demand at a price that counts
    waits: tuple[LeadTime, ...]  # newest first
    country: str = ""
    licence: Licence | None = None  # that is needed for that country
    hangs_on_die: bool = False  # whether one is needed there

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        return ()


def supplied(scenario: Scenario, chip: Chip) -> Supplied:
    """The supply of a chip that a plan has chosen."""
    catalog, asked = scenario.catalog, scenario.one(Supply)
    listings = market_of(chip.name, "on-demand", scenario.one(Purchase), catalog).counting
    there = asked.country
    return Supplied(
        chip=chip.name,
        makers=makers_of(chip, catalog),
        held=catalog.cloud_only(chip.name),
        sellers=tuple(sorted({one.offer.provider for one in listings}))
        if is_listed(chip.name, catalog)
        else (),
        waits=catalog.lead_times(chip.name),
        country=catalog.country(there).title if there else "",
        licence=licence_for(chip, there, catalog) if there else None,
        hangs_on_die=bool(there) and is_unknown(chip, there, catalog),
    )
