"""The table of topologies: what each is called, usually made of and asked about; `lay.py` has how it is wired."""

from __future__ import annotations

from typing import Literal, NamedTuple

from datahall.errors import ScenarioError
from datahall.scenario.sections.deployment import USUAL_CHIP
from datahall.scenario.words import TopologyName


class Topology(NamedTuple):
    """One way to join chips."""

    name: TopologyName | Literal["scale-up"]
    kind: Literal["switched", "direct", "domains"]
    uses: tuple[str, ...]  # inputs that say something of it
    chip: str = USUAL_CHIP  # that it is usually made of
    domain: int = 0  # chips of its scale-up domains, where the name says so
    tiers: int = 0  # of switches, where the name says so
    alike: bool = False  # whether links that are all alike make it, without parts of the catalogue
    parts: bool = True  # whether parts of the catalogue do


PORTS = ("switch", "radix", "nic_bytes_per_s", "server")
NETWORK = (*PORTS, "domain")
TIERED = (*NETWORK, "oversubscription", "tiers")
GRID = ("sides", "server")

TABLE = (
    Topology("tree", "switched", NETWORK, alike=True),
    Topology("fat-tree", "switched", TIERED, alike=True),
    Topology("clos", "switched", TIERED, alike=True),
    Topology("leaf-spine", "switched", (*NETWORK, "oversubscription"), tiers=2, alike=True),
    Topology("rail-optimised", "switched", TIERED, alike=True),
    Topology("rail-only", "switched", TIERED),
    Topology("dragonfly", "switched", NETWORK, alike=True),
    Topology("dragonfly-plus", "switched", NETWORK),
    Topology("hyperx", "switched", NETWORK),
    Topology("torus", "direct", GRID, chip="tpu-v7x", alike=True),
    Topology("mesh", "direct", GRID, chip="tpu-v7x"),
    Topology("tpu-pod", "direct", GRID, chip="tpu-v5p"),
    Topology("full-mesh", "direct", ("server",), chip="mi300x", alike=True),
    Topology("hgx", "domains", (*PORTS, "oversubscription", "tiers"), domain=8),
    Topology("nvl72", "domains", (*PORTS, "oversubscription", "tiers"), chip="gb200", domain=72),
    Topology("scale-up", "domains", (), alike=True, parts=False),
)
PLAIN = tuple(one.name for one in TABLE if one.alike)
BY_NAME: dict[str, Topology] = {one.name: one for one in TABLE}


def topology_of_parts(name: str) -> Topology:
    """A topology that is made of parts of the catalogue."""
    found = BY_NAME.get(name)
    if found is None or not found.parts:
        raise ScenarioError(
            f"{name} is not made of parts of the catalogue",
            field="on",
            hint=f"one of {', '.join(one.name for one in TABLE if one.parts)}",
        )
    return found
