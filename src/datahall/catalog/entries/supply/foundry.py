"""Who makes chips: the wafers, or the package they are put into."""

from __future__ import annotations

from typing import Literal

import msgspec

from datahall.breakdown import Source
from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_fields

Step = Literal["wafers", "packaging"]


class Foundry(msgspec.Struct, frozen=True, kw_only=True):
    """What one company does for some chips."""

    name: str
    title: str
    company: str
    source: Source
    chips: tuple[str, ...]
    step: Step = "wafers"
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("company", "company", "whose it is", "text", required=True),
    Field("step", "step", "what it does", "text", choices=("wafers", "packaging")),
    Field("chips", "chips", "chips it is done for", "texts", required=True),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_foundry(entry: Entry, name: str, table: Table) -> Foundry | None:
    """Read `[foundry.NAME]`."""
    read_fields(entry, table, FIELDS)
    if entry.source is None:
        entry.problem("a foundry needs a source", hint='source = "epoch-hardware"')
    if entry.problems or entry.source is None:
        return None
    return msgspec.convert(entry.values | {"name": name, "source": entry.source}, Foundry)
