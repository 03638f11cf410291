"""Tables of money that several answers have: ways to have a chip, offers, parts of owning, scopes."""

from __future__ import annotations

from collections.abc import Iterable

from datahall.answer import Cell, Column, Quantity, Table
from datahall.breakdown import Breakdown
from datahall.counted import counted
from datahall.economics.market import Listing, Market
from datahall.economics.own import Owned
from datahall.economics.scopes import Scope
from datahall.economics.ways import Way
from datahall.units import fmt

SCOPE_WORDS = {
    "chips": "accelerators alone",
    "all hardware": "with servers and network",
    "compute": "with space, energy and repair",
    "with staff": "with the people who build and run it",
}


def ways_table(ways: Iterable[Way], marked: Way | None) -> Table:
    """Every way to have a chip for an hour, with the date of its price."""
    rows = tuple(ways)
    return Table(
        title="ways to have a chip for an hour",
        columns=(
            Column("way"), Column("price", "usd_per_hour"), Column("lowest", "usd_per_hour"),
            Column("highest", "usd_per_hour"), Column("offers", "count"), Column("as of"), Column("which is"),
        ),
        rows=tuple(_way(one) for one in rows),
        marked=None if marked is None else rows.index(marked),
        note="rents are the median of fresh offers of whole machines; what has no price is not priced, and not free",
    )  # fmt: skip


def _way(way: Way) -> tuple[Cell, ...]:
    span = way.market.span if way.market is not None and way.market.said is None else None
    low, high = span if span is not None and way.buying != "spot" else (None, None)
    num = len(way.market.counting) if way.market is not None and way.market.said is None else None
    hour = None if way.hour is None else way.hour.value
    return way.name, hour, low, high, num, way.dated or None, _which(way)


def _which(way: Way) -> str:
    if way.hour is None:
        return f"not priced: {way.why_not}"
    if way.market is not None and way.market.said is not None and way.buying != "spot":
        return "as said"
    if way.buying == "spot":
        return f"spot price over {fmt(way.kept_fraction, 'fraction')} of the time that is kept"
    if way.owned is not None:
        missing = way.owned.capex.missing
        return f"without {' and '.join(missing)}" if missing else "all parts priced"
    return way.market.kind if way.market is not None else ""


def offers_table(market: Market) -> Table:
    """Each offer, and why it does not count."""
    return Table(
        title="offers on demand",
        columns=(
            Column("sold by"), Column("price", "usd_per_hour"), Column("instance"), Column("as of"), Column("counts"),
        ),
        rows=tuple(_offer(one) for one in market.listings),
        note="auctions, outliers beyond Tukey's fences, prices older than half a year and GPUs without their host are "
        "listed and never headline",
    )  # fmt: skip


def _offer(one: Listing) -> tuple[Cell, ...]:
    offer = one.offer
    return (
        offer.provider,
        one.usd_per_hour,
        offer.instance,
        offer.date,
        "yes" if one.counts else ", ".join(one.flags),
    )


def capex_table(owned: Owned) -> Table:
    """What a chip costs with its share of everything."""
    capex = owned.capex
    rows: list[tuple[Cell, ...]] = [
        (part.name, part.value, capex.share_of(part), _rests_on(part)) for part in capex.parts
    ]
    rows.append((capex.price.name, capex.price.value, 1.0, _rests_on(capex.price)))
    return Table(
        title="price of a chip, by parts",
        columns=(Column("part"), Column("price", "usd"), Column("share", "fraction"), Column("rests on")),
        rows=tuple(rows),
        marked=len(rows) - 1,
    )


def _rests_on(figure: Breakdown) -> str:
    sources = figure.citations()
    if not sources:
        return figure.note or "as said"
    if len(sources) > 1:
        return counted(len(sources), "source")
    (source,) = sources
    return f"{source.title}, {source.date} ({source.kind})"


def hour_table(owned: Owned) -> Table:
    """An hour of the clock of a chip that is owned, by parts."""
    return Table(
        title="owning a chip for an hour, by parts",
        columns=(Column("part"), Column("cost", "usd_per_hour"), Column("share", "fraction")),
        rows=tuple((part.name, part.value, owned.share_of(part)) for part in owned.parts.parts),
        note=f"{owned.terms.owner.title}; written off over {owned.terms.life_years:.3g} years at "
        f"{owned.terms.interest.value:.3g} a year"
        if not owned.terms.by_market
        else f"{owned.terms.owner.title}; what the market takes off hardware of {owned.terms.age_years:.3g} years",
    )


def scopes_table(found: Iterable[Scope], hours: float, unit: str) -> Table:
    """The same cost in four scopes, beside what is published of frontier models."""
    return Table(
        title="four scopes of one cost",
        columns=(
            Column("scope"), Column("cost"), Column("share of all", "fraction"), Column("published from", "fraction"),
            Column("published to", "fraction"), Column("counts"),
        ),
        rows=tuple(
            (
                one.name, Quantity(one.over(hours), unit), one.share_fraction, one.published_low,
                one.published_high, SCOPE_WORDS[one.name],
            )
            for one in found
        ),
        note="published: of developing frontier models (Epoch AI); 30 % for hardware and 60 to 70 % for compute are "
        "both right, in different scopes",
    )  # fmt: skip
