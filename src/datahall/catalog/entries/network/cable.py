"""A cable with what sits at its ends: copper, or fibre between two optical modules."""

from __future__ import annotations

from math import nan
from typing import Literal

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry

Medium = Literal["copper", "multimode", "single-mode"]
Joins = Literal["switches", "chips"]
JOINS: tuple[Joins, ...] = ("switches", "chips")
MEDIA: tuple[Medium, ...] = ("copper", "multimode", "single-mode")


class Cable(msgspec.Struct, frozen=True, kw_only=True):
    """One cable at one speed; power and price of a module are of one end."""

    name: str
    title: str
    medium: Medium
    joins: Joins = "switches"  # what it runs between: switches and their chips, or chips and no switch
    bytes_per_s: float  # one way
    reach_m: float = nan
    module_power_w: float = 0.0  # 0 in passive copper
    module_price_usd: float = 0.0
    price_usd: float = nan  # of the cable itself
    year: int = 0
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    @property
    def num_modules(self) -> int:
        """Optical modules that one cable needs."""
        return 0 if self.medium == "copper" else 2


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("medium", "medium", "medium", "text", required=True, choices=MEDIA),
    Field("joins", "joins", "what it runs between", "text", choices=JOINS),
    Field("bandwidth", "bytes_per_s", "bandwidth, one way", required=True),
    Field("reach", "reach_m", "reach"),
    Field("module_power", "module_power_w", "power of a module"),
    Field("module_price", "module_price_usd", "price of a module"),
    Field("price", "price_usd", "price of the cable"),
    Field("year", "year", "year it shipped", at_least=1970),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_cable(entry: Entry, name: str, table: Table) -> Cable | None:
    """Read `[cable.NAME]`."""
    return read_entry(entry, name, table, FIELDS, Cable)
