"""A country: which groups of the export rules it is in."""

from __future__ import annotations

import msgspec

from datahall.breakdown import Source
from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_fields


class Country(msgspec.Struct, frozen=True, kw_only=True):
    """One country; one without groups is not singled out by any rule of the catalogue."""

    name: str
    title: str
    source: Source
    groups: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("groups", "groups", "groups of export rules", "texts"),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_country(entry: Entry, name: str, table: Table) -> Country | None:
    """Read `[country.NAME]`."""
    read_fields(entry, table, FIELDS)
    if entry.source is None:
        entry.problem("a country needs a source", hint='source = "my-source"')
    if entry.problems or entry.source is None:
        return None
    return msgspec.convert(entry.values | {"name": name, "source": entry.source}, Country)
