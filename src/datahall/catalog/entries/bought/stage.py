"""A stage that a firm grows through: from how many customers on, with what budget, on what it runs."""

from __future__ import annotations

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage as somebody advises it; the budget is the most of a month, its range that of the stage."""

    name: str
    title: str
    uses: str
    watches: str
    num_customers: int  # from which on
    budget_usd: float
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("uses", "uses", "what it runs on", "text", required=True),
    Field("watches", "watches", "what it watches", "text", required=True),
    Field("customers", "num_customers", "customers from which on", required=True),
    Field("budget", "budget_usd", "budget of a month", required=True),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_stage(entry: Entry, name: str, table: Table) -> Stage | None:
    """Read `[stage.NAME]`."""
    return read_entry(entry, name, table, FIELDS, Stage)
