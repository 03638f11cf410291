"""One region that chips may stand in, by its market and what leaves it; and two of them, by how far they are apart."""

from __future__ import annotations

from math import isnan, nan

import msgspec

from datahall.breakdown import Breakdown, derived, fact, product, quotient
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.supply.region import Region
from datahall.economics.market import Market, market_of
from datahall.economics.supply.distance import distance_m, round_trip
from datahall.scenario.sections.money.purchase import Purchase
from datahall.units import GB


class Trip(msgspec.Struct, frozen=True, kw_only=True):
    """Two regions, and how far they are apart; nothing where nobody says where one of them is."""

    one: Region
    other: Region
    distance_m: float = nan
    there_and_back: Breakdown | None = None


class Stand(msgspec.Struct, frozen=True, kw_only=True):
    """One region, the market of the chip there, and what it costs to carry what leaves out of it."""

    region: Region
    market: Market
    egress: Breakdown | None = None
    moved: Breakdown | None = None  # the same to another region of the cloud

    @property
    def hour(self) -> Breakdown | None:
        """What a chip-hour costs there on demand."""
        return self.market.price if self.market.said is None else None


def stand_of(region: Region, chip: Chip, leaving: Breakdown, asked: Purchase, catalog: Catalog) -> Stand:
    there = msgspec.structs.replace(asked, regions=(region.name,), residency=(), price_usd_per_hour=None)
    return Stand(
        region=region,
        market=market_of(chip.name, "on-demand", there, catalog),
        egress=_carried(f"egress from {region.name}", region, "egress_usd_per_gb", leaving),
        moved=_carried(f"from {region.name} to another region", region, "between_usd_per_gb", leaving),
    )


def _carried(name: str, region: Region, price: str, leaving: Breakdown) -> Breakdown | None:
    """What it costs to carry so many bytes out; None where nobody lists a price."""
    if isnan(getattr(region, price)):
        return None
    known = region.facts[price]
    volume = quotient("GB that leave", leaving, derived("bytes of a GB", GB, "bytes"), "count")
    return product(
        name, (volume, fact("price of a GB that leaves", known.value, known.unit, known.source)), "usd"
    )


def trip_of(one: Region, other: Region) -> Trip:
    if not (one.is_placed and other.is_placed):
        return Trip(one=one, other=other)
    return Trip(
        one=one, other=other, distance_m=distance_m(one, other), there_and_back=round_trip(one, other)
    )
