"""How long a network takes to send traffic around a failed part, by the mechanism that does it."""

from __future__ import annotations

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry


class Reroute(msgspec.Struct, frozen=True, kw_only=True):
    """From the failure until traffic flows again; the job may have died meanwhile."""

    name: str
    title: str
    reroute_s: float
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("time", "reroute_s", "time to reroute", required=True),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_reroute(entry: Entry, name: str, table: Table) -> Reroute | None:
    """Read `[reroute.NAME]`."""
    return read_entry(entry, name, table, FIELDS, Reroute)
