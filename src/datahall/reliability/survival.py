"""What one failure of each kind takes of a fabric, and how long until traffic flows around it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datahall.breakdown import Source
from datahall.catalog import Catalog
from datahall.fabric.design.bill import has_circuit_switches
from datahall.fabric.design.design import Design
from datahall.fabric.flows.failures import BlastRadius, blast_radius
from datahall.fabric.topology.graph import SCALE_UP_TIER
from datahall.fabric.topology.grids.tpu_pod import CUBE_CHIPS, crosses_cubes
from datahall.reliability.nodes.availability import at_least, unit_availability
from datahall.scenario.sections.failure import Failure

HOST_AVAILABILITY = 0.999  # assumption: a host is out for nine hours a year
FEWER = 0.9375  # of the cubes: 60 of 64
SWITCH_NAMES = {1: "leaf switch", 2: "second-tier switch", 3: "core switch"}


class Survival(NamedTuple):
    """One part that fails."""

    part: str
    blast: BlastRadius
    reroute_s: float
    reroute: str
    source: Source


class Cubes(NamedTuple):
    """How often enough cubes of a pod are up."""

    num_cubes: int
    num_fewer: int
    all_fraction: float
    fewer_fraction: float


def survivals(made: Design, catalog: Catalog) -> tuple[Survival, ...]:
    """One failure of each kind, the smallest part first."""
    found = []
    for part, failure, way in _failures(made):
        how = catalog.reroute(way)
        blast = blast_radius(made.fabric, failure)
        found.append(Survival(part, blast, how.reroute_s, how.name, how.facts["reroute_s"].source))
    return tuple(found)


def _failures(made: Design) -> list[tuple[str, Failure, str]]:
    fabric = made.fabric
    infiniband = made.parts.port is not None and made.parts.port.technology == "infiniband"
    way = "infiniband-subnet-manager" if infiniband else "ethernet-link-down"
    if made.parts.switch is None:
        if not has_circuit_switches(made):
            return []
        optical = int(np.flatnonzero(crosses_cubes(fabric, fabric.traits.grid))[0])
        return [
            ("optical cable", Failure(links=(optical,)), "optical-circuit"),
            ("cube of 64, for a chip in it", Failure(cubes=(0,)), "optical-circuit"),
        ]
    found: list[tuple[str, Failure, str]] = []
    if made.counts.num_switches:
        found.append(("NIC", Failure(nics=(0,)), "nic-failover"))
    tier = fabric.node_tier[fabric.num_hosts :]
    for level in [int(value) for value in np.unique(tier) if value != SCALE_UP_TIER]:
        first = int(np.flatnonzero(tier == level)[0])
        found.append((SWITCH_NAMES.get(level, f"tier-{level} switch"), Failure(switches=(first,)), way))
    if fabric.scale_up_start >= 0 and fabric.num_domains > 1:
        found.append((f"server or rack of {made.counts.domain_size}", Failure(domains=(0,)), way))
    return found


def cubes_up(made: Design) -> Cubes | None:
    """How often the cubes of a TPU pod are up, all of them and a few less; None for anything else."""
    cubes = made.counts.num_hosts // CUBE_CHIPS
    if not made.kind.cubes or cubes < 2:
        return None
    share, fewer = unit_availability(HOST_AVAILABILITY), int(cubes * FEWER)
    return Cubes(cubes, fewer, at_least(cubes, cubes, share), at_least(fewer, cubes, share))
