"""A region of a cloud: where it is, whose grid it is on, and what it costs to carry data out of it."""

from __future__ import annotations

from math import isnan, nan

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """One region; NaN (or no name of a grid) where nobody publishes it."""

    name: str
    title: str
    provider: str
    country: str
    latitude_deg: float = nan  # of the city that it is named after
    longitude_deg: float = nan
    grid: str = ""
    carbon_kg_per_j: float = nan  # of its grid, as its operator publishes it
    egress_usd_per_gb: float = nan  # of data that leaves the cloud, first tier of the list price
    between_usd_per_gb: float = nan  # of data that goes to another region of the same cloud
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    @property
    def is_placed(self) -> bool:
        """Whether anybody says where it is."""
        return not isnan(self.latitude_deg)


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("provider", "provider", "whose it is", "text", required=True),
    Field("country", "country", "country it is in", "text", required=True),
    Field("latitude", "latitude_deg", "latitude", at_least=-90.0),
    Field("longitude", "longitude_deg", "longitude", at_least=-180.0),
    Field("grid", "grid", "electricity grid", "text"),
    Field("carbon", "carbon_kg_per_j", "carbon of a kWh", at_least=0.0),
    Field("egress", "egress_usd_per_gb", "price of data that leaves", at_least=0.0),
    Field("between", "between_usd_per_gb", "price of data that goes to another region", at_least=0.0),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_region(entry: Entry, name: str, table: Table) -> Region | None:
    """Read `[region.NAME]`; a place has a latitude and a longitude."""
    if ("latitude" in table) != ("longitude" in table):
        entry.problem('"latitude" and "longitude" go together', hint="latitude = 50.11, longitude = 8.68")
    return read_entry(entry, name, table, FIELDS, Region)
