"""Every way to have a chip for an hour that somebody allows, cheapest first; what has no price says why."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import msgspec

from datahall.breakdown import Breakdown
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.offer import PRICE_KINDS, is_stale
from datahall.economics.capex import AROUND_PART, capex_of
from datahall.economics.market import Market, day_of, market_of
from datahall.economics.own import Owned, owned_hour, place_of, terms_of
from datahall.economics.spot import effective_price
from datahall.economics.supply.limits import not_sold
from datahall.fabric.design.parts import usual_server
from datahall.reliability.ettr import HARDLY_ANY
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.operations.checkpoint import Checkpointing
from datahall.scenario.sections.operations.run import Recovering
from datahall.scenario.sections.operations.site import Site
from datahall.scenario.words import Buying
from datahall.units import fmt

RESERVED = tuple(kind.word for kind in PRICE_KINDS.values() if kind.reserved)


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One way to have a chip for an hour."""

    buying: Buying
    name: str
    hour: Breakdown | None  # None: not priced
    why_not: str = ""
    date: str = ""
    is_stale: bool = False  # its price is older than half a year; one of rent does not count then
    market: Market | None = None
    owned: Owned | None = None

    @property
    def dated(self) -> str:
        """Of when its price is, and whether that is long ago; "" where nobody dates it."""
        return f"{self.date}, stale" if self.is_stale else self.date

    @property
    def usd_per_hour(self) -> float:
        return self.hour.value if self.hour is not None else float("inf")

    @property
    def kept_fraction(self) -> float:
        """Of spot: the share of the time that is paid which moves work forward."""
        sold = self.market.price if self.market is not None else None
        return 1.0 if sold is None or self.hour is None else sold.value / self.hour.value

    @property
    def is_priced(self) -> bool:
        """Whether anything can be decided by its price: one without the server around a chip says the least it is."""
        return self.hour is not None and (self.owned is None or AROUND_PART not in self.owned.capex.missing)


def ways_of(
    scenario: Scenario, chip: Chip, num_chips: int, *, job_chips: int = 0, trains: bool = True,
    buy: tuple[Buying, ...] = (), span_years: float | None = None,
) -> tuple[Way, ...]:  # fmt: skip
    """All ways that are allowed to have so many chips, the cheapest first.

    A job on `job_chips` of them stops when a node of these is taken away; they are owned for a span of years, where
    that is said and not for their life.  Staff is in the hour of chips that train; of a service it is paid whatever
    its chips are.
    """
    asked = scenario.one(Purchase)
    allowed = buy or asked.buy
    nodes = ceil((job_chips or num_chips) / usual_server(scenario.catalog, chip).num_host_chips)
    found: list[Way] = []
    if "rent" in allowed:
        found.append(_rented(market_of(chip.name, "on-demand", asked, scenario.catalog), "rent"))
    if "reserved" in allowed:
        markets = (market_of(chip.name, kind, asked, scenario.catalog) for kind in RESERVED)
        found += [_rented(market, "reserved") for market in markets]
    if "spot" in allowed:
        found.append(_on_spot(scenario, chip, nodes, trains=trains))
    if "own" in allowed:
        found.append(owned_way(scenario, chip, num_chips, span_years=span_years, staffed=trains))
    return tuple(sorted(found, key=lambda way: (not way.is_priced, way.usd_per_hour, way.name)))


def cheapest(ways: tuple[Way, ...]) -> Way | None:
    """The cheapest that is priced; None where none is."""
    return next((way for way in ways if way.is_priced), None)


def not_priced(ways: tuple[Way, ...]) -> Iterator[str]:
    """What has no price, and why."""
    yield from (f"{way.name}: {way.why_not}" for way in ways if not way.is_priced)


def owned_way(
    scenario: Scenario, chip: Chip, num_chips: int, *, owner: str = "", span_years: float | None = None,
    staffed: bool = True,
) -> Way:  # fmt: skip
    """Owning a chip of so many, with its share of the staff or without."""
    asked, catalog = scenario.one(Ownership), scenario.catalog
    if not staffed:
        asked = msgspec.structs.replace(asked, staff_usd_per_month=0.0)
    terms = terms_of(asked, catalog, owner=owner)
    name = f"owned by {terms.owner.title}"
    bought = scenario.one(Purchase)
    day = day_of(bought, catalog)
    capex = capex_of(chip, num_chips, catalog, asked.capex_usd, day)
    if capex is None and bought.as_of and capex_of(chip, num_chips, catalog) is not None:
        why_not = f"no price to buy it was known on {day}"
        return Way(buying="own", name=name, hour=None, why_not=why_not)
    if capex is None:
        why_not = not_sold(chip, catalog) or "nobody sells it"
        return Way(buying="own", name=name, hour=None, why_not=why_not)
    place = place_of(chip, num_chips, asked, scenario.one(Site), catalog)
    if place is None:
        return Way(
            buying="own",
            name=name,
            hour=None,
            why_not="what it draws, or what its grid charges, is not published",
        )
    owned = owned_hour(chip, num_chips, capex, terms, place, catalog, span_years=span_years)
    least = f"at least {fmt(owned.hour.value, 'usd_per_hour')}, without {AROUND_PART}"
    why_not = least if AROUND_PART in capex.missing else ""
    return Way(
        buying="own", name=name, hour=owned.hour, why_not=why_not, date=capex.date, owned=owned,
        is_stale=bool(capex.date) and is_stale(capex.date, day),
    )  # fmt: skip


def _rented(market: Market, buying: Buying) -> Way:
    name = PRICE_KINDS[market.kind].called
    return Way(
        buying=buying, name=name, hour=market.price, why_not=market.why_not, date=market.date, market=market
    )


def _on_spot(scenario: Scenario, chip: Chip, nodes: int, *, trains: bool) -> Way:
    market = market_of(chip.name, "spot", scenario.one(Purchase), scenario.catalog)
    name = "on spot, by what is kept"
    if market.price is None:
        return Way(buying="spot", name=name, hour=None, why_not=market.why_not, market=market)
    copies = scenario.one(Checkpointing) if trains else None
    hour = effective_price(market.price, nodes, scenario.one(Recovering), copies)
    if market.price.value < HARDLY_ANY * hour.value:
        why = (
            f"nodes are taken away so often that less than {fmt(HARDLY_ANY, 'fraction')} of the time is kept"
        )
        return Way(buying="spot", name=name, hour=None, why_not=why, market=market)
    return Way(buying="spot", name=name, hour=hour, date=market.date, market=market)
