"""A machine one can buy, rent or read about: a server, a rack, a pod, a whole cluster."""

from __future__ import annotations

from math import nan
from typing import Literal

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry

Form = Literal["server", "instance", "rack", "pod", "cluster"]


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """Chips and what stands around them; NaN (0 for counts) where nothing is published."""

    name: str
    title: str
    form: Form
    chip: str
    num_chips: int
    num_hosts: int = 1  # operating systems in it: 18 trays in an NVL72, 2,240 machines in a v5p pod
    scale_up_link: str = ""
    num_scale_up_domain: int = 1  # chips that reach each other without the network
    torus: str = ""  # the largest torus of a pod, e.g. "16x20x28"
    cpu: str = ""
    num_cpus: int = 0
    host_memory_bytes: float = nan
    host_memory_bytes_per_s: float = nan
    nvme_bytes: float = nan
    nvme_bytes_per_s: float = nan
    nic_link: str = ""
    num_nics: int = 0
    nic_bytes_per_s: float = nan  # one way, of one NIC
    power_limit_w: float = nan
    power_idle_w: float = nan
    price_usd: float = nan
    embodied_kg: float = nan  # carbon of its manufacture
    num_rack_units: int = 0
    year: int = 0
    status: Literal["shipping", "announced"] = "shipping"
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    @property
    def num_host_chips(self) -> int:
        """Chips that one operating system drives, and that leave together: a node of eight, a tray of four.

        >>> Server(name="", title="", form="rack", chip="", num_chips=72, num_hosts=18).num_host_chips
        4
        """
        return max(1, self.num_chips // max(1, self.num_hosts))

    @property
    def memory_bytes_per_host(self) -> float:
        """Memory of one operating system of it [B]; NaN where nothing is published."""
        return self.host_memory_bytes / max(1, self.num_hosts)

    @property
    def network_bytes_per_s(self) -> float:
        """Network bandwidth of all NICs, one way."""
        return self.num_nics * self.nic_bytes_per_s

    @property
    def network_bytes_per_s_per_chip(self) -> float:
        """A chip's share of the network bandwidth, one way."""
        return self.network_bytes_per_s / self.num_chips


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field(
        "form",
        "form",
        "form",
        "text",
        required=True,
        choices=("server", "instance", "rack", "pod", "cluster"),
    ),
    Field("chip", "chip", "chip", "text", required=True),
    Field("chips", "num_chips", "chips", required=True),
    Field("hosts", "num_hosts", "hosts"),
    Field("scale_up", "scale_up_link", "scale-up link", "text"),
    Field("scale_up_domain", "num_scale_up_domain", "chips in one scale-up domain"),
    Field("torus", "torus", "largest torus", "text"),
    Field("cpu", "cpu", "CPU", "text"),
    Field("cpus", "num_cpus", "CPUs"),
    Field("host_memory", "host_memory_bytes", "host memory"),
    Field("host_memory_bandwidth", "host_memory_bytes_per_s", "host memory bandwidth"),
    Field("nvme", "nvme_bytes", "local NVMe"),
    Field("nvme_bandwidth", "nvme_bytes_per_s", "local NVMe read bandwidth"),
    Field("nic", "nic_link", "NIC", "text"),
    Field("nics", "num_nics", "NICs"),
    Field("nic_bandwidth", "nic_bytes_per_s", "bandwidth of one NIC, one way"),
    Field("power_limit", "power_limit_w", "power limit"),
    Field("power_idle", "power_idle_w", "idle power"),
    Field("price", "price_usd", "price"),
    Field("embodied", "embodied_kg", "carbon of its manufacture"),
    Field("rack_units", "num_rack_units", "rack units"),
    Field("year", "year", "year it shipped", at_least=1970),
    Field("status", "status", "status", "text", choices=("shipping", "announced")),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_server(entry: Entry, name: str, table: Table) -> Server | None:
    """Read `[server.NAME]`."""
    return read_entry(entry, name, table, FIELDS, Server)
