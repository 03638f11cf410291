"""What chips and tokens cost, with the age of each price."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from math import isnan, nan

from datahall.answer import Answer, Cell, Column, Quantity, Table
from datahall.answers.chip.citation import Citations, known
from datahall.answers.follow import follow
from datahall.breakdown import Source
from datahall.catalog import Catalog
from datahall.catalog.entries.offer import STALE_DAYS, STALE_S, Offer
from datahall.counted import counted
from datahall.economics.market import Market, cheapest_listing, day_of, markets_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.views import OfferListing, Search
from datahall.units import fmt

DEFAULT = "on-demand"  # of prices of all kinds, those that headline


def catalog_prices(scenario: Scenario) -> Answer:
    """Prices per chip and hour, or to buy, cheapest first; older than half a year is flagged as stale."""
    asked = scenario.one(OfferListing)
    bought, catalog, kind = scenario.one(Purchase), scenario.catalog, asked.kind or ""
    day = day_of(bought, catalog)
    oldest_s = asked.max_age_s if asked.max_age_s is not None else float("inf")
    with scenario.at(field="chip"):
        listed = catalog.offers(asked.chip, kind)
    offers = [offer for offer in listed if 0.0 <= offer.age_s(day) <= oldest_s]  # a later one was not known
    cited = Citations()
    table = _table(offers, day, kind, cited)
    markets = markets_of(listed, kind or DEFAULT, bought, catalog)
    lowest = cheapest_listing(markets, offers)
    return Answer(
        kind="prices",
        inputs={"as_of": day.isoformat()},
        headline=_headline(asked, listed, offers, markets, day),
        verdict="yes" if offers else "no",
        results={
            "num_prices": len(offers),
            "num_stale": len([offer for offer in offers if offer.stale(day)]),
            "stale_after_s": STALE_S,
            "newest_age_s": _newest_s(listed, day),
            "lowest_usd_per_hour": lowest.usd_per_hour if lowest else None,
            "lowest_age_s": lowest.offer.age_s(day) if lowest else None,
        },
        tables=(table,) if offers else (),
        notes=(
            f"per chip and hour in US dollars; “stale” is older than {STALE_DAYS} days",
            "a list price, without discounts, egress, storage or tax; an auction's is its lowest bid",
        ),
        sources=cited.sources,
        next_commands=(follow(scenario, "show chip", {"chip": _chip(catalog, asked.chip)}),),
    )


def _chip(catalog: Catalog, name: str) -> str:
    """The chip of the catalogue that a filter means, or a usual one."""
    names = [chip.name for chip in catalog.chips()]
    return next((one for one in names if name and one.startswith(name.lower())), "h100-sxm")


def catalog_api_prices(scenario: Scenario) -> Answer:
    """List prices of hosted models whose name holds some words, per million tokens, cheapest output first."""
    from datahall.catalog.entries.api_price import api_price, api_prices

    asked = scenario.one(Search)
    day, words = day_of(scenario.one(Purchase), scenario.catalog), asked.hosted.lower().split()
    found = [
        price
        for price in api_prices(day)
        if all(word in f"{price.name} {price.title}".lower() for word in words)
        and (price.first_party or not asked.first_party)
    ]
    if not found and asked.hosted:
        with scenario.at(field="hosted"):
            found = [api_price(asked.hosted, day)]
    found.sort(key=lambda price: (price.output_usd_per_mtok, price.name))
    rows = tuple(
        (
            price.model, price.provider, price.input_usd_per_mtok, price.output_usd_per_mtok,
            known(price.cached_usd_per_mtok), price.tiered,
        )
        for price in found
    )  # fmt: skip
    columns = (
        Column("model"), Column("sold by"), Column("input", "usd_per_mtok"), Column("output", "usd_per_mtok"),
        Column("cached input", "usd_per_mtok"), Column("tiered"),
    )  # fmt: skip
    many = f"{counted(len(rows), 'price')} per million tokens"
    return Answer(
        kind="api-prices",
        inputs={"as_of": day.isoformat()},
        headline=many + (f" for “{asked.hosted}”." if asked.hosted else "."),
        results={"num_prices": len(rows)},
        tables=(Table(title="list prices of hosted models", columns=columns, rows=rows),),
        notes=(
            "list prices; committed-use and off-peak discounts are not in them",
            "tiered: the price rises with the length of the prompt, and this is its lowest step",
        ),
        sources=(found[0].source,) if found else (),
        next_commands=(follow(scenario, "catalog prices", {"chip": "h100-sxm"}),),
    )


def _newest_s(listed: Sequence[Offer], day: datetime.date) -> float | None:
    """The age of the newest price that was known on a day."""
    return min((offer.age_s(day) for offer in listed if offer.age_s(day) >= 0.0), default=None)


def _headline(
    asked: OfferListing,
    listed: Sequence[Offer],
    offers: list[Offer],
    markets: Sequence[Market],
    day: datetime.date,
) -> str:
    kind, way = asked.kind or "", "" if asked.kind else " on demand"
    what = f"{kind + ' ' if kind else ''}price"
    where = f" of {asked.chip}" if asked.chip else ""
    if not listed:
        return f"No {what}{where} in the catalogue."
    newest_s = _newest_s(listed, day)
    if newest_s is None:
        return (
            f"No {what}{where} is from {day} or before: the oldest is of {min(one.date for one in listed)}."
        )
    if not offers:
        assert asked.max_age_s is not None  # nothing else leaves out what is listed
        return (
            f"No {what}{where} is as young as {fmt(asked.max_age_s, 's')}: the "
            f"newest is {fmt(newest_s, 's')} old."
        )
    count = f"{counted(len(offers), what)}{where}"
    lowest = cheapest_listing(markets, offers)
    if lowest is not None:
        price = fmt(lowest.usd_per_hour, "usd_per_hour")
        who, date = lowest.offer.provider, lowest.offer.date
        return f"{count}; the lowest that counts{way} is {price} at {who}, as of {date}."
    flags = sorted({flag for market in markets for one in market.listings for flag in one.flags})
    if not flags:
        return f"{count}; none of them is by the hour{' and' + way if way else ''}."
    return f"{count}; none by the hour{' and' + way if way else ''} counts: {', '.join(flags)}."


def _table(offers: list[Offer], day: datetime.date, kind: str, cited: Citations) -> Table:
    columns = (
        Column("sold by"),
        Column("chip"),
        Column("kind"),
        Column("price"),
        Column("age", "s"),
        Column("state"),
        Column("source", "citation"),
    )
    newest = sorted((offer.source for offer in offers), key=lambda source: source.date)
    lists = {
        source.title: source for source in newest
    }  # one list of prices is one source, whatever each row's age
    rows = tuple(_row(offer, day, kind, cited, lists) for offer in offers)
    return Table(title="prices of one chip", columns=columns, rows=rows)


def _row(
    offer: Offer, day: datetime.date, kind: str, cited: Citations, lists: dict[str, Source]
) -> tuple[Cell, ...]:
    return (
        offer.provider,
        offer.chip or offer.gpu,
        "spot" if kind == "spot" else offer.basis or offer.kind,
        _price(offer, kind),
        offer.age_s(day),
        "stale" if offer.stale(day) else "fresh",
        cited.number(lists[offer.source.title]),
    )


def _price(offer: Offer, kind: str) -> Cell:
    """By the hour, or to buy one; a range where the provider has several."""
    hourly = offer.hourly_usd(kind)
    if not isnan(hourly):
        low, high = (offer.low_usd_per_hour, offer.high_usd_per_hour) if kind != "spot" else (nan, nan)
        return Quantity(hourly, "usd_per_hour", *((low, high) if low < high else ()))
    return None if isnan(offer.chip_purchase_usd) else Quantity(offer.chip_purchase_usd, "usd")
