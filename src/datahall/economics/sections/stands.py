"""Regions that a plan's chips stand in: the price of a chip-hour in each, how far they are apart, what leaves them.

egress = bytes that leave · price of a byte
"""

from __future__ import annotations

from itertools import combinations

import msgspec

from datahall.breakdown import Breakdown, fact, product
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.supply.region import Region
from datahall.datapath.sections.text import TEXT
from datahall.economics.supply.places import regions_of, says_where
from datahall.economics.supply.stand import Stand, Trip, stand_of, trip_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.purchase import Purchase

MOST_REGIONS = 8  # that a plan speaks of


class Stands(msgspec.Struct, frozen=True, kw_only=True):
    """The regions, in the order in which they were named."""

    chip: str
    leaving: Breakdown  # bytes that leave: of answers a month, or of the data of a run
    stands: tuple[Stand, ...]
    trips: tuple[Trip, ...]
    num_regions: int  # that count; no more than some are spoken of

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        egress = (part for one in self.stands for part in (one.egress, one.moved))
        trips = (one.there_and_back for one in self.trips)
        hours = (one.hour for one in self.stands)
        return (self.leaving, *(one for one in (*hours, *egress, *trips) if one is not None))

    @property
    def farthest(self) -> Breakdown | None:
        """The longest round trip between two of them."""
        found = [one.there_and_back for one in self.trips if one.there_and_back is not None]
        return max(found, key=lambda one: one.value, default=None)


def stands_in(scenario: Scenario, chip: Chip, leaving: Breakdown) -> Stands | None:
    """The regions that somebody names; None where it does not matter where chips stand."""
    asked, catalog = scenario.one(Purchase), scenario.catalog
    if not says_where(asked):
        return None
    regions = regions_of(asked, catalog)
    shown = regions if asked.regions else tuple(one for one in regions if _has(one, chip, catalog))
    shown = shown[:MOST_REGIONS]
    return Stands(
        chip=chip.name,
        leaving=leaving,
        stands=tuple(stand_of(one, chip, leaving, asked, catalog) for one in shown),
        trips=tuple(trip_of(*pair) for pair in combinations(shown, 2)),
        num_regions=len(regions),
    )


def text_bytes(catalog: Catalog, name: str, tokens: Breakdown) -> Breakdown:
    """So many tokens as text."""
    known = catalog.dataset(TEXT).facts["sample_bytes"]
    return product(name, (tokens, fact("bytes of a token", known.value, known.unit, known.source)), "bytes")


def _has(region: Region, chip: Chip, catalog: Catalog) -> bool:
    return any(offer.region == region.name for offer in catalog.regional_offers(chip.name))
