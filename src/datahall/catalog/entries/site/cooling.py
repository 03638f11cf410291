"""A way to carry heat out of a rack: how much it may carry, and how much warmer the coolant leaves."""

from __future__ import annotations

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry


class Cooling(msgspec.Struct, frozen=True, kw_only=True):
    """Air or a liquid."""

    name: str
    title: str
    rack_limit_w: float  # of one rack, in practice
    rise_kelvin: float  # of the coolant through the rack
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("rack_limit", "rack_limit_w", "heat of one rack that it can carry", required=True),
    Field("rise", "rise_kelvin", "how much warmer it leaves", required=True),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_cooling(entry: Entry, name: str, table: Table) -> Cooling | None:
    """Read `[cooling.NAME]`."""
    return read_entry(entry, name, table, FIELDS, Cooling)
