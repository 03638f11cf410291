"""Where data lies: a drive, a file system, an object store, the memory of a host."""

from __future__ import annotations

from math import inf, nan, sqrt
from typing import Literal, get_args

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry

Place = Literal["host", "shared"]


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """One unit of a tier: a drive, a node, a bucket.  Infinite where no limit is published, NaN where no value is.

    Of a tier in the `host`, each host has units of its own; a `shared` one is reached over the network by all.
    """

    name: str
    title: str
    place: Place
    unit: str  # what one of it is called
    read_bytes_per_s: float = inf
    write_bytes_per_s: float = inf
    stream_bytes_per_s: float = inf  # what one reader gets, however many units there are
    latency_s: float = 0.0  # of one request, until its first byte
    num_reads_per_s: int = 0  # small random reads; 0: nobody publishes a limit
    capacity_bytes: float = inf
    usd_per_gb_month: float = nan
    egress_usd_per_gb: float = nan  # what leaves the region
    year: int = 0
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    @property
    def is_shared(self) -> bool:
        """Whether all hosts read the same units, over the network."""
        return self.place == "shared"

    @property
    def is_memory(self) -> bool:
        """Whether it is the host's own memory, of which one cannot add units."""
        return self.unit == "host"

    @property
    def latency_spread_s(self) -> float:
        """Standard deviation of a request's latency, as if it were spread evenly over the published range [s]."""
        known = self.facts.get("latency_s")
        if known is None or known.low is None or known.high is None:
            return 0.0
        return (known.high - known.low) / sqrt(12.0)


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("place", "place", "where it is", "text", required=True, choices=get_args(Place)),
    Field("unit", "unit", "what one is called", "text", required=True),
    Field("read", "read_bytes_per_s", "read bandwidth of a unit"),
    Field("write", "write_bytes_per_s", "write bandwidth of a unit"),
    Field("stream", "stream_bytes_per_s", "bandwidth of one reader"),
    Field("latency", "latency_s", "latency of a request"),
    Field("reads_per_s", "num_reads_per_s", "random reads per second of a unit"),
    Field("capacity", "capacity_bytes", "capacity of a unit"),
    Field("price", "usd_per_gb_month", "price of a GB and month"),
    Field("egress", "egress_usd_per_gb", "price of a GB that leaves the region"),
    Field("year", "year", "year", at_least=1970),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_storage(entry: Entry, name: str, table: Table) -> Storage | None:
    """Read `[storage.NAME]`."""
    return read_entry(entry, name, table, FIELDS, Storage)
