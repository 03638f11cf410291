"""What stores energy between a grid and chips: a battery, supercapacitors, capacitors in power supplies."""

from __future__ import annotations

from math import nan
from typing import Literal

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry

BufferForm = Literal["battery", "supercapacitor", "capacitor"]
FORMS: tuple[BufferForm, ...] = ("battery", "supercapacitor", "capacitor")


class Buffer(msgspec.Struct, frozen=True, kw_only=True):
    """One unit of it, a container or a module; capacitors in power supplies are counted by the chip."""

    name: str
    title: str
    form: BufferForm
    unit: str  # what is counted: container, module, GPU
    energy_j: float
    power_w: float
    round_trip_fraction: float  # of the energy put in that comes out again
    depth_fraction: float  # of its energy that a cycle may take
    price_usd: float = nan  # of one unit
    year: int = 0
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    @property
    def usable_j(self) -> float:
        """Energy that a cycle may take of one unit."""
        return self.energy_j * self.depth_fraction


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("form", "form", "form", "text", required=True, choices=FORMS),
    Field("unit", "unit", "what is counted", "text", required=True),
    Field("energy", "energy_j", "energy of one", required=True),
    Field("power", "power_w", "power of one", required=True),
    Field("round_trip", "round_trip_fraction", "efficiency there and back", required=True),
    Field("depth", "depth_fraction", "depth of discharge", required=True),
    Field("price", "price_usd", "price of one"),
    Field("year", "year", "year it shipped", at_least=1970),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_buffer(entry: Entry, name: str, table: Table) -> Buffer | None:
    """Read `[buffer.NAME]`."""
    return read_entry(entry, name, table, FIELDS, Buffer)
