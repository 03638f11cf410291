"""The machine a training run has: chips, what joins them inside a domain and across, as collectives see it."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, prod

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.server import Server
from datahall.cluster.host import Host, host_of
from datahall.errors import ScenarioError
from datahall.fabric.collectives.system import System, system_of
from datahall.scenario.fabric import FabricDesign


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """So many chips of one kind in scale-up domains joined by a network."""

    chip: Chip
    num_chips: int
    system: System
    host: Host = Host()  # what stands behind each chip

    @property
    def num_domain(self) -> int:
        """Chips that reach each other without the network."""
        return self.system.num_domain


def cluster_of(
    chip: Chip,
    num_chips: int,
    *,
    num_domain: int = 0,
    nic_bytes_per_s: float = 0.0,
    fabric: str = "infiniband",
    servers: Iterable[Server] = (),
    torus: tuple[int, ...] = (),
) -> Cluster:
    """A cluster from the catalogue: the chip's usual domain and NIC unless told otherwise.

    `torus` are the sides of one slice where chips are wired to their neighbours; more chips are more slices.

    Host memory and drives are those of the first of `servers` that holds the chip.
    """
    if num_chips < 1:
        raise ScenarioError(f"{num_chips} chips cannot train anything", hint="--chips 1 or more")
    nic = nic_bytes_per_s or (chip.nic_bytes_per_s if isfinite(chip.nic_bytes_per_s) else 0.0)
    system = system_of(chip, num_domain=num_domain, nic_bytes_per_s=nic, fabric=fabric)
    if torus:
        system = msgspec.structs.replace(system, torus=torus, num_domain=prod(torus))
    return Cluster(chip=chip, num_chips=num_chips, system=system, host=host_of(chip, servers))


def cluster_from(design: FabricDesign, catalog: Catalog, *, chip: str = "", num_chips: int = 0) -> Cluster:
    """The machine that somebody asks for; `chip` and `num_chips` stand where the design names none."""
    part = catalog.chip(design.chip or chip)
    return cluster_of(
        part,
        design.chips or num_chips,
        num_domain=design.domain or 0,
        nic_bytes_per_s=design.nic_bytes_per_s or 0.0,
        servers=catalog.servers(),
    )
