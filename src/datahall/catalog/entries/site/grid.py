"""An electricity grid: the carbon and the price of what it delivers, by the hour where that is known."""

from __future__ import annotations

from math import isfinite, nan
from typing import TypeGuard

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_fields
from datahall.units import KWH_J

HOURS = 24


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """Carbon and price are means of a year; hours are those of a day in local standard time, from midnight."""

    name: str
    title: str
    carbon_kg_per_j: float
    price_usd_per_j: float = nan
    hourly_kg_per_j: tuple[float, ...] = ()  # none where nobody published them
    year: int = 0
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("carbon", "carbon_kg_per_j", "carbon of a kWh", required=True),
    Field("price", "price_usd_per_j", "price of a kWh"),
    Field("year", "year", "year of the data", at_least=1970),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_grid(entry: Entry, name: str, table: Table) -> Grid | None:
    """Read `[grid.NAME]`; `hourly` is a list of 24 numbers in g/kWh."""
    read_fields(entry, table, FIELDS, also=("hourly",))
    hours = _hours(entry, table)
    if entry.problems:
        return None
    year = int(float(str(entry.values.get("year", 0))))
    found = entry.values | {"name": name, "hourly_kg_per_j": hours, "year": year, "facts": entry.facts}
    return msgspec.convert(found, Grid)


def _hours(entry: Entry, table: Table) -> tuple[float, ...]:
    raw = table.get("hourly", [])
    numbers = [float(one) for one in raw if _is_number(one)] if isinstance(raw, list) else []
    if not isinstance(raw, list) or len(numbers) < len(raw) or len(raw) not in (0, HOURS):
        entry.problem('"hourly" must be a list of 24 numbers in g/kWh, none below 0', "hourly")
        return ()
    return tuple(one * 1e-3 / KWH_J for one in numbers)


def _is_number(one: object) -> TypeGuard[float]:
    return isinstance(one, int | float) and not isinstance(one, bool) and isfinite(one) and one >= 0
