"""A switch one can buy: packets between ports, or light between fibres (an optical circuit switch)."""

from __future__ import annotations

from math import nan
from typing import Literal

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry

Network = Literal["infiniband", "ethernet", "scale-up", "optical-circuit"]
NETWORKS: tuple[Network, ...] = ("infiniband", "ethernet", "scale-up", "optical-circuit")


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """One box; power is without the modules in its ports."""

    name: str
    title: str
    network: Network
    num_ports: int
    port_bytes_per_s: float = nan  # one way; an optical circuit switch does not care
    num_split_ports: int = 0  # the most ports when cages are split to a lower speed
    latency_s: float = nan  # port to port
    power_typical_w: float = nan
    power_limit_w: float = nan
    buffer_bytes: float = nan  # shared by all ports
    price_usd: float = nan
    num_rack_units: int = 0
    year: int = 0
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    def radix(self, port_bytes_per_s: float) -> int:
        """Ports at a given speed, with cages split where they hold several of them; 0 where they are too slow."""
        if not self.port_bytes_per_s >= port_bytes_per_s:
            return 0
        most = max(self.num_ports, self.num_split_ports)
        return min(most, self.num_ports * int(self.port_bytes_per_s / port_bytes_per_s + 1e-9))


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("network", "network", "what it switches", "text", required=True, choices=NETWORKS),
    Field("ports", "num_ports", "ports", required=True),
    Field("port_bandwidth", "port_bytes_per_s", "bandwidth of a port, one way"),
    Field("split_ports", "num_split_ports", "ports when cages are split"),
    Field("latency", "latency_s", "latency, port to port"),
    Field("power_typical", "power_typical_w", "typical power without modules"),
    Field("power_limit", "power_limit_w", "power limit"),
    Field("buffer", "buffer_bytes", "packet buffer that all ports share"),
    Field("price", "price_usd", "price"),
    Field("rack_units", "num_rack_units", "rack units"),
    Field("year", "year", "year it shipped", at_least=1970),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_switch(entry: Entry, name: str, table: Table) -> Switch | None:
    """Read `[switch.NAME]`."""
    return read_entry(entry, name, table, FIELDS, Switch)
