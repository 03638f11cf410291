"""A share that somebody published: of a bill, of a price, of what developing a model costs."""

from __future__ import annotations

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry


class CostShare(msgspec.Struct, frozen=True, kw_only=True):
    """One share, and of what it is."""

    name: str
    title: str
    share_fraction: float
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    @property
    def fact(self) -> Fact:
        """The share with its source, and its range where one is published."""
        return self.facts["share_fraction"]


FIELDS = (
    Field("title", "title", "what of what", "text", required=True),
    Field("share", "share_fraction", "share", required=True),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_share(entry: Entry, name: str, table: Table) -> CostShare | None:
    """Read `[share.NAME]`."""
    return read_entry(entry, name, table, FIELDS, CostShare)
