"""How long somebody had to wait for chips, as of a day: quoted by who sells them, reported, or a rumour."""

from __future__ import annotations

from typing import Literal

import msgspec

from datahall.breakdown import Source
from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_fields

Said = Literal["quoted", "reported", "rumour"]


class LeadTime(msgspec.Struct, frozen=True, kw_only=True):
    """One statement, from order to delivery; its date is that of its source."""

    name: str
    title: str
    source: Source
    chips: tuple[str, ...]
    shortest_s: float
    longest_s: float
    said: Said
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


FIELDS = (
    Field("title", "title", "of what", "text", required=True),
    Field("chips", "chips", "chips it is of", "texts", required=True),
    Field("shortest", "shortest_s", "shortest time to wait", required=True),
    Field("longest", "longest_s", "longest time to wait", required=True),
    Field("said", "said", "how it is known", "text", choices=("quoted", "reported", "rumour"), required=True),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_lead_time(entry: Entry, name: str, table: Table) -> LeadTime | None:
    """Read `[lead_time.NAME]`; the longest is no less than the shortest."""
    read_fields(entry, table, FIELDS)
    values = entry.values
    if not entry.problems and float(str(values["longest_s"])) < float(str(values["shortest_s"])):
        entry.problem("the longest time is less than the shortest", "longest", hint='longest = "84 days"')
    if entry.problems or entry.source is None:
        return None
    return msgspec.convert(values | {"name": name, "source": entry.source, "facts": entry.facts}, LeadTime)
