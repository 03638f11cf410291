"""What a chip costs to rent or to buy, from whom, and when that was true."""

from __future__ import annotations

import csv
import datetime
from math import nan
from pathlib import Path
from typing import NamedTuple

import msgspec

from datahall.breakdown import Source
from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_fields
from datahall.units import DAY_S


class PriceKind(NamedTuple):
    """A kind of price that a chip is rented for by the hour."""

    word: str  # in the catalogue and in a question
    called: str  # who has it so
    sold: str  # who sells it so
    reserved: bool = False

    @property
    def key(self) -> str:
        """What results call it."""
        return self.word.replace("-", "_")


# every way to rent: whatever speaks of kinds of price draws its words from here
PRICE_KINDS = {
    kind.word: kind
    for kind in (
        PriceKind("on-demand", "rented on demand", "on demand"),
        PriceKind("spot", "on spot", "on spot"),
        PriceKind("reserved-1y", "reserved for a year", "for a year", reserved=True),
        PriceKind("reserved-3y", "reserved for 3 years", "for three years", reserved=True),
    )
}
OFFER_KINDS = (
    *PRICE_KINDS, "owned", "owned-hyperscaler", "owned-neocloud", "auction", "reported", "purchase",
)  # fmt: skip
STALE_DAYS = 180
STALE_S = STALE_DAYS * DAY_S


def age_days(date: str, today: datetime.date) -> int:
    """Days since a date; a month or a year counts from its first day.

    >>> age_days("2025-08", datetime.date(2025, 9, 1))
    31
    """
    year, month, day = (*(int(part) for part in date.split("-")), 1, 1)[:3]
    return (today - datetime.date(year, month, day)).days


def is_stale(date: str, today: datetime.date) -> bool:
    """Whether a price of that date is older than half a year."""
    return age_days(date, today) > STALE_DAYS


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One price; per chip and hour, or for `num_chips` bought at once.

    `scope` says what an hour includes: the whole `instance`, the `gpu-only` (its host is billed apart), one
    `chip`, or `all-in`.  `date` is when the list it stands in was last refreshed.
    """

    name: str
    provider: str
    kind: str  # one of OFFER_KINDS
    date: str
    source: Source
    gpu: str = ""  # what the provider calls it
    chip: str = ""  # what the catalogue calls it; empty where it has no such chip
    basis: str = ""  # what the price means, where the kind does not say it all
    scope: str = ""
    num_chips: int = 1
    usd_per_hour: float = nan  # per chip; the median where a provider has several
    low_usd_per_hour: float = nan
    high_usd_per_hour: float = nan
    spot_usd_per_hour: float = nan
    purchase_usd: float = nan
    instance: str = ""
    region: str = ""
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    @property
    def title(self) -> str:
        return f"{self.provider} {self.gpu or self.chip}, {self.basis or self.kind}"

    def age_days(self, today: datetime.date) -> int:
        """Days since the price was last known to be true."""
        return age_days(self.date, today)

    def age_s(self, today: datetime.date) -> float:
        """The same in seconds."""
        return self.age_days(today) * DAY_S

    def hourly_usd(self, kind: str = "") -> float:
        """The price per chip and hour that a kind of price asks for; NaN where the offer has none."""
        if kind == "spot" and self.kind != "spot":
            return self.spot_usd_per_hour
        return self.usd_per_hour

    @property
    def chip_purchase_usd(self) -> float:
        """The price to buy one chip; NaN where it is not sold."""
        return self.purchase_usd / self.num_chips

    def stale(self, today: datetime.date) -> bool:
        """Whether the price is older than half a year."""
        return is_stale(self.date, today)


FIELDS = (
    Field("provider", "provider", "provider", "text", required=True),
    Field("chip", "chip", "chip", "text", required=True),
    Field("kind", "kind", "kind of price", "text", choices=OFFER_KINDS),
    Field("price", "usd_per_hour", "price per chip and hour"),
    Field("spot", "spot_usd_per_hour", "spot price per chip and hour"),
    Field("purchase", "purchase_usd", "purchase price"),
    Field("chips", "num_chips", "chips in the purchase price", "count"),
    Field(
        "scope",
        "scope",
        "what the price includes",
        "text",
        choices=("instance", "gpu-only", "chip", "all-in"),
    ),
    Field("instance", "instance", "instance type", "text"),
    Field("region", "region", "region", "text"),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_offer(entry: Entry, name: str, table: Table) -> Offer | None:
    """Read `[offer.NAME]`; its date is that of its source."""
    read_fields(entry, table, FIELDS)
    if not {"usd_per_hour", "spot_usd_per_hour", "purchase_usd"} & entry.values.keys() and not entry.problems:
        entry.problem("an offer needs a price", hint='price = "2.50 USD/h" or purchase = "30000 USD"')
    if entry.problems or entry.source is None:
        return None
    default = "on-demand" if "purchase_usd" not in entry.values else "purchase"
    values = {"kind": default} | entry.values
    return msgspec.convert(
        values | {"name": name, "facts": entry.facts, "source": entry.source, "date": entry.source.date},
        Offer,
    )


def read_offers(path: Path) -> list[Offer]:
    """Read the shipped list of prices; empty cells are unknown."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_offer(row) for row in csv.DictReader(file)]


def _offer(row: dict[str, str]) -> Offer:
    modelled = row["kind"] not in {"on-demand", "auction", "purchase"}
    source = Source(row["source"], row["date"], "estimate" if modelled else "datasheet")
    known = {key: value for key, value in row.items() if value != "" and key not in {"source", "chips"}}
    return msgspec.convert(
        known | {"source": source, "num_chips": row.get("chips", "1")}, Offer, strict=False
    )
