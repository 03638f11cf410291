"""Which price of a chip-hour stands for many: the median of fresh offers of whole machines; why others do not.

An auction's floor, a price older than half a year, one of a GPU whose host is billed apart and one far outside the
others are listed with what is wrong with them, and never stand for the rest.  Far outside is beyond Tukey's
fences of the logarithms, 1.5 quartile distances (Exploratory data analysis, 1977).
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property, lru_cache
from math import isnan, log
from statistics import quantiles

import msgspec

from datahall.breakdown import Breakdown, Source, derived, fact, given, product, quotient, total
from datahall.catalog import Catalog
from datahall.catalog.entries.offer import PRICE_KINDS, Offer
from datahall.counted import counted
from datahall.economics.supply.places import offers_there, says_where
from datahall.scenario.sections.money.purchase import Purchase
from datahall.units import HOUR_S

FENCE = 1.5  # quartile distances
FEW = 4  # offers, of which no quartiles can be told
STALE, AUCTION, NO_HOST, FAR, NO_DISCOUNT = "stale", "auction", "host billed apart", "outlier", "no discount"
ELSEWHERE = "elsewhere"  # or nobody says where


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """One offer of a kind of price, and what keeps it from counting."""

    offer: Offer
    usd_per_hour: float
    flags: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        return not self.flags


class Market(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All offers of a chip of one kind, cheapest first."""

    chip: str
    kind: str
    listings: tuple[Listing, ...]
    said: Breakdown | None = None  # a price of one's own, which stands before all offers

    @property
    def counting(self) -> tuple[Listing, ...]:
        return tuple(one for one in self.listings if one.counts)

    @cached_property
    def price(self) -> Breakdown | None:
        """What a chip-hour costs; None where nobody sells one that counts."""
        if self.said is not None:
            return self.said
        counting = self.counting
        if not counting:
            return None
        middle = counting[(len(counting) - 1) // 2 : len(counting) // 2 + 1]
        leaves = [_leaf(one) for one in middle]
        if len(leaves) == 1:
            return leaves[0]
        halves = derived("two in the middle", 2.0, "count")
        return quotient(f"median of {len(counting)} offers", total("both", leaves), halves, "usd_per_hour")

    @property
    def date(self) -> str:
        """When the newest price that counts was known; "" of one's own, which has no date."""
        if self.said is not None:
            return ""
        return max((one.offer.date for one in self.counting), default="")

    @property
    def span(self) -> tuple[float, float] | None:
        """Lowest and highest that count."""
        prices = [one.usd_per_hour for one in self.counting]
        return (prices[0], prices[-1]) if prices else None

    @property
    def why_not(self) -> str:
        """Why there is no price."""
        if not self.listings:
            return f"nobody lists it {PRICE_KINDS[self.kind].sold}"
        flags = sorted({flag for one in self.listings for flag in one.flags})
        return f"of {counted(len(self.listings), 'price')} none counts: {', '.join(flags)}"


def day_of(asked: Purchase, catalog: Catalog) -> datetime.date:
    """The day from which ages count: as said, or that of the newest price, so that answers do not change by waiting."""
    if asked.as_of:
        return datetime.date.fromisoformat(asked.as_of)
    return _newest(catalog)


@lru_cache(maxsize=8)
def _newest(catalog: Catalog) -> datetime.date:
    """The day of the newest price that is dated to the day."""
    full = [offer.date for offer in catalog.offers() if len(offer.date) == len("2026-08-22")]
    return datetime.date.fromisoformat(max(full))


@lru_cache(maxsize=256)  # whatever number of chips: asked by every candidate of a plan
def market_of(chip: str, kind: str, asked: Purchase, catalog: Catalog) -> Market:
    """The offers of a chip of one kind, with what is wrong with each; where regions count, those of them beside all."""
    offers = catalog.offers(chip)
    if not says_where(asked):
        return _market(chip, kind, offers, asked, catalog)
    there = offers_there(chip, asked, catalog)
    names = {offer.name for offer in there}
    others = [offer for offer in offers if offer.name not in names]
    return _market(chip, kind, (*there, *others), asked, catalog, elsewhere={offer.name for offer in others})


def markets_of(offers: Iterable[Offer], kind: str, asked: Purchase, catalog: Catalog) -> tuple[Market, ...]:
    """The market of each chip that some offers are of; of one that the catalogue lacks, by its seller's name of it."""
    found: dict[str, list[Offer]] = defaultdict(list)
    for offer in offers:
        found[offer.chip or offer.gpu].append(offer)
    return tuple(_market(chip, kind, some, asked, catalog) for chip, some in found.items())


def cheapest_listing(markets: Iterable[Market], offers: Iterable[Offer]) -> Listing | None:
    """The lowest price that counts among some offers."""
    names = {offer.name for offer in offers}
    counting = [one for market in markets for one in market.counting if one.offer.name in names]
    return min(counting, key=lambda one: one.usd_per_hour, default=None)


def _market(
    chip: str,
    kind: str,
    offers: Iterable[Offer],
    asked: Purchase,
    catalog: Catalog,
    elsewhere: Collection[str] = (),
) -> Market:
    day = day_of(asked, catalog)
    found = [offer for offer in offers if not isnan(_price(offer, kind)) and offer.age_days(day) >= 0]
    if asked.providers:
        found = [offer for offer in found if offer.provider in asked.providers]
    away = {ELSEWHERE} if elsewhere else set()
    marked = [
        (offer, (*_flags(offer, kind, day), *(away if offer.name in elsewhere else ()))) for offer in found
    ]
    far = _far([_price(offer, kind) for offer, flags in marked if not flags])
    listings = [
        Listing(
            offer=offer, usd_per_hour=_price(offer, kind), flags=flags or _outside(_price(offer, kind), far)
        )
        for offer, flags in marked
    ]
    name, said_usd = ("price", asked.price_usd_per_hour) if kind == "on-demand" else ("spot price", None)
    if kind == "spot":
        said_usd = asked.spot_usd_per_hour
    said = None if said_usd is None else given(name, said_usd, "usd_per_hour", field=name.replace(" ", "_"))
    return Market(
        chip=chip, kind=kind, listings=tuple(sorted(listings, key=lambda one: one.usd_per_hour)), said=said
    )


def is_listed(chip: str, catalog: Catalog) -> bool:
    """Whether anybody lists it for rent, however it is sold."""
    return any(not isnan(_price(offer, kind)) for offer in catalog.offers(chip) for kind in PRICE_KINDS)


def cost_usd(price: Breakdown, num_chips: float, time_s: float, name: str = "cost") -> Breakdown:
    """What so many chips cost for some time.

    >>> from datahall.breakdown import given
    >>> cost_usd(given("price", 2.0, "usd_per_hour"), 226.75 * 8, 86400.0).value  # DeepSeek, a day of V3 and R1
    87072.0
    """
    hours = quotient("hours", derived("time", time_s, "s"), derived("an hour", HOUR_S, "s"), "count")
    return product(name, (derived("chips", num_chips, "count"), hours, price), "usd")


def _price(offer: Offer, kind: str) -> float:
    """The price of a kind that an offer has; NaN where it has none."""
    if kind == "spot":
        return offer.hourly_usd("spot")
    sold = ("on-demand", "auction") if kind == "on-demand" else (kind,)
    return offer.usd_per_hour if offer.kind in sold else float("nan")


def _flags(offer: Offer, kind: str, day: datetime.date) -> tuple[str, ...]:
    reasons = {
        AUCTION: offer.kind == "auction" and kind != "auction",
        STALE: offer.stale(day),
        NO_HOST: offer.scope == "gpu-only",
        NO_DISCOUNT: kind == "spot"
        and offer.kind == "on-demand"
        and offer.spot_usd_per_hour >= offer.usd_per_hour,
    }
    return tuple(name for name, holds in reasons.items() if holds)


def _far(prices: Sequence[float]) -> tuple[float, float] | None:
    """Tukey's fences of the logarithms; None of too few."""
    if len(prices) < FEW:
        return None
    low, _, high = quantiles([log(price) for price in prices], n=4, method="inclusive")
    return low - FENCE * (high - low), high + FENCE * (high - low)


def _outside(price: float, fences: tuple[float, float] | None) -> tuple[str, ...]:
    return (FAR,) if fences is not None and not fences[0] <= log(price) <= fences[1] else ()


def _leaf(one: Listing) -> Breakdown:
    offer = one.offer
    source = Source(offer.source.title, offer.date, offer.source.kind)
    return fact(
        f"{offer.provider}, {offer.gpu or offer.chip}",
        one.usd_per_hour,
        "usd_per_hour",
        source,
        note=offer.note,
    )
