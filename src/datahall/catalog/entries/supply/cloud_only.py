"""Chips that nobody sells: their maker rents them out in its own cloud."""

from __future__ import annotations

import msgspec

from datahall.breakdown import Source
from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_fields


class CloudOnly(msgspec.Struct, frozen=True, kw_only=True):
    """Some chips, and the clouds that have them."""

    name: str
    title: str
    source: Source
    chips: tuple[str, ...]
    clouds: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


FIELDS = (
    Field("title", "title", "what they are called", "text", required=True),
    Field("chips", "chips", "chips that are not sold", "texts", required=True),
    Field("clouds", "clouds", "who rents them out", "texts", required=True),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_cloud_only(entry: Entry, name: str, table: Table) -> CloudOnly | None:
    """Read `[cloud_only.NAME]`."""
    read_fields(entry, table, FIELDS)
    if entry.source is None:
        entry.problem("what is not sold needs a source", hint='source = "my-source"')
    if entry.problems or entry.source is None:
        return None
    return msgspec.convert(entry.values | {"name": name, "source": entry.source}, CloudOnly)
