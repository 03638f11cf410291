"""A building for servers: what it draws for each watt of them, and what of that is lost in its wires."""

from __future__ import annotations

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry


class Facility(msgspec.Struct, frozen=True, kw_only=True):
    """PUE is the power of the whole site over that of its servers, network and storage."""

    name: str
    title: str
    pue_ratio: float
    electrical_fraction: float  # of the IT power, lost in transformers, UPS and wiring
    year: int = 0
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("pue", "pue_ratio", "PUE", required=True, at_least=1.0),
    Field("electrical", "electrical_fraction", "electrical losses over IT power", required=True),
    Field("year", "year", "year of the data", at_least=1970),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_facility(entry: Entry, name: str, table: Table) -> Facility | None:
    """Read `[facility.NAME]`."""
    return read_entry(entry, name, table, FIELDS, Facility)
