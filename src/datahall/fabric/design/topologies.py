"""The table of topologies: what each is called, made of and asked about; `lay.py` has how it is wired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from datahall.errors import ScenarioError
from datahall.fabric.topology.grids.sides import hyperx_side
from datahall.fabric.topology.tiers import Tiering, clos_tiers, rail_only_tiers, rail_optimised_tiers
from datahall.scenario.usual import USUAL_CHIP
from datahall.scenario.words import TAPERED, TopologyName


class Topology(NamedTuple):
    """One way to join chips."""

    name: TopologyName | Literal["scale-up"]
    kind: Literal["switched", "direct", "domains"]
    own: tuple[str, ...]  # inputs that say something of it, besides its tiers
    chip: str = USUAL_CHIP  # that it is usually made of
    domain: int = 0  # chips of its scale-up domains, where the name says so
    tiers: int = 0  # of switches, where the name says so
    tiering: Tiering = clos_tiers  # how many tiers so many chips need, where they may be tapered
    title: str = ""  # of a design, by its {tiers} and {domains}; without one, as its builder calls it
    alike: bool = False  # whether links that are all alike make it, without parts of the catalogue
    parts: bool = True  # whether parts of the catalogue do
    meshed: bool = False  # whether a chip has a link to every other
    room: Callable[..., object] | None = None  # refuses chips that do not fit, of switches of so many ports
    cubes: bool = False  # whether it is made of a pod's cubes, which optical switches join

    @property
    def tapered(self) -> bool:
        """Whether a tier may be narrower than that below it."""
        return self.name in TAPERED

    @property
    def uses(self) -> tuple[str, ...]:
        """All inputs that say something of it; the number of tiers does unless the name says it."""
        tiers = () if self.tiers else ("tiers",)
        return (*self.own, "oversubscription", *tiers) if self.tapered else self.own


PORTS = ("switch", "radix", "nic_bytes_per_s", "server")
NETWORK = (*PORTS, "domain")
GRID = ("sides", "server")

FAT_TREE, CLOS, RAILS = (
    "{tiers}-tier fat tree",
    "{tiers}-tier Clos network",
    "{tiers}-tier rail-optimised network",
)
JOINED_DOMAINS = f"{{domains}} under a {FAT_TREE}"

TABLE = (
    Topology("tree", "switched", NETWORK, alike=True),
    Topology("fat-tree", "switched", NETWORK, title=FAT_TREE, alike=True),
    Topology("clos", "switched", NETWORK, title=CLOS, alike=True),
    Topology("leaf-spine", "switched", NETWORK, tiers=2, title=CLOS, alike=True),
    Topology("rail-optimised", "switched", NETWORK, tiering=rail_optimised_tiers, title=RAILS, alike=True),
    Topology("rail-only", "switched", NETWORK, tiering=rail_only_tiers),
    Topology("dragonfly", "switched", NETWORK, alike=True),
    Topology("dragonfly-plus", "switched", NETWORK),
    Topology("hyperx", "switched", NETWORK, room=hyperx_side),
    Topology("torus", "direct", GRID, chip="tpu-v7x", alike=True),
    Topology("mesh", "direct", GRID, chip="tpu-v7x"),
    Topology("tpu-pod", "direct", GRID, chip="tpu-v5p", cubes=True),
    Topology("full-mesh", "direct", ("server",), chip="mi300x", alike=True, meshed=True),
    Topology("hgx", "domains", PORTS, domain=8, title=JOINED_DOMAINS),
    Topology("nvl72", "domains", PORTS, chip="gb200", domain=72, title=JOINED_DOMAINS),
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
