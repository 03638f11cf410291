"""Which regions of clouds count, and what is offered there."""

from __future__ import annotations

from math import isnan

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.offer import Offer
from datahall.catalog.entries.supply.region import Region
from datahall.scenario.sections.money.purchase import Purchase


def says_where(asked: Purchase) -> bool:
    """Whether it matters where chips stand."""
    return bool(asked.regions or asked.residency)


def regions_of(asked: Purchase, catalog: Catalog) -> tuple[Region, ...]:
    """The regions that count, as they were named; of countries alone, all of theirs."""
    named = [catalog.region(name) for name in asked.regions] or list(catalog.regions())
    return tuple(one for one in named if not asked.residency or one.country in asked.residency)


def offers_there(chip: str, asked: Purchase, catalog: Catalog) -> tuple[Offer, ...]:
    """The offers of a chip that stand in one of the regions that count."""
    names = {one.name for one in regions_of(asked, catalog)}
    written = [
        one for one in catalog.offers(chip) if one.facts
    ]  # entries of one's own: rows that ship have none
    return (
        *(one for one in catalog.regional_offers(chip) if one.region in names),
        *(one for one in written if _region_of(one, catalog) in names),
    )


def is_offered(chip: Chip, asked: Purchase, catalog: Catalog) -> bool:
    """Whether anybody lists a chip for rent in one of the regions that count."""
    return any(not isnan(offer.usd_per_hour) for offer in offers_there(chip.name, asked, catalog))


def _region_of(offer: Offer, catalog: Catalog) -> str:
    """The name of the region that an offer is in; nothing where it names none that is known."""
    names = (f"{offer.provider}-{offer.region}", offer.region)
    return next((catalog.name_of("region", one) for one in names if one and catalog.knows("region", one)), "")
