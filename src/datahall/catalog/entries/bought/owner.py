"""Who owns hardware: what their capital costs, how long they write it off, and whether they rent or build a hall."""

from __future__ import annotations

from math import isnan, nan

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A class of owners; one of the two prices of space is known, NaN is the other."""

    name: str
    title: str
    interest_fraction: float  # a year, on all capital
    life_s: float  # over which hardware is written off
    drawn_fraction: float  # mean power over the nameplate
    residual_fraction: float = 0.0  # of the price, left at the end of its life
    colo_usd_per_w_month: float = nan
    hall_usd_per_w: float = nan
    hall_life_s: float = nan
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    @property
    def rents_space(self) -> bool:
        """Whether it stands in somebody else's hall."""
        return not isnan(self.colo_usd_per_w_month)


FIELDS = (
    Field("title", "title", "who", "text", required=True),
    Field("interest", "interest_fraction", "interest on capital, a year", required=True, at_least=0.0),
    Field("life", "life_s", "life of hardware", required=True),
    Field("drawn", "drawn_fraction", "mean power over the nameplate", required=True),
    Field("residual", "residual_fraction", "price that is left at the end of its life", at_least=0.0),
    Field("colo", "colo_usd_per_w_month", "rent of space, by the power of IT"),
    Field("hall", "hall_usd_per_w", "price of a hall, by the power of IT"),
    Field("hall_life", "hall_life_s", "life of a hall"),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_owner(entry: Entry, name: str, table: Table) -> Owner | None:
    """Read `[owner.NAME]`."""
    if ("colo" in table) == ("hall" in table):
        entry.problem(
            "an owner rents space or builds it", hint='colo = "184 USD/kW-month", or hall = "11.7 MUSD/MW"'
        )
    if ("hall" in table) != ("hall_life" in table):
        entry.problem('"hall" and "hall_life" go together', hint='hall_life = "20 years"')
    return read_entry(entry, name, table, FIELDS, Owner)
