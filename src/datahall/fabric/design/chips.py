"""Which chips a fabric joins, and how many: as a person says, its sides, its topology, or whoever built it.

What is wrong with it is found here before anything is laid, so that it costs nothing to be told.
"""

from __future__ import annotations

from math import prod

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.errors import ScenarioError, option
from datahall.fabric.design.topologies import topology_of_parts
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.usual import USUAL_CHIP
from datahall.scenario.words import PLAIN_TOPOLOGIES, TOPOLOGIES


def is_built(topology: str, catalog: Catalog) -> bool:
    """Whether a name is that of a fabric that was built."""
    known = topology in TOPOLOGIES or topology in PLAIN_TOPOLOGIES
    return not known and any(topology == one.name for one in catalog.known_fabrics())


def own_chips(asked: FabricDesign, catalog: Catalog) -> int | None:
    """The chips of a fabric that has a number of them: as it was built, or by its sides."""
    if is_built(asked.topology, catalog):
        return catalog.known_fabric(asked.topology).num_chips
    return prod(asked.sides) if asked.sides else None


def usual_chip(asked: FabricDesign, catalog: Catalog) -> Chip:
    """The chip of a design: as it says, the topology's usual one, or the usual one of all."""
    if asked.chip or not asked.topology:
        return catalog.chip(asked.chip or USUAL_CHIP)
    if is_built(asked.topology, catalog):
        return catalog.chip(catalog.server(catalog.known_fabric(asked.topology).server).chip)
    return catalog.chip(topology_of_parts(asked.topology).chip)


def num_chips(asked: FabricDesign, catalog: Catalog, usual: int = 0) -> int:
    """The chips that a topology of parts shall join; `usual` stands where nobody says."""
    count = asked.chips or usual or own_chips(asked, catalog) or 0
    if count < 1 and asked.topology:
        known = ", ".join(fabric.name for fabric in catalog.known_fabrics())
        raise ScenarioError(
            f"how many chips shall {asked.topology} join?",
            field="chips",
            hint=f"{option('chips', 16384)}; published fabrics have their own: {known}",
        )
    if count < 1:
        raise ScenarioError("how many chips are there?", field="chips", hint=f"e.g. {option('chips', 1024)}")
    return count


def check_sides(asked: FabricDesign, num_chips: int) -> None:
    """Refuse sides of a torus that do not make so many chips."""
    if asked.sides and prod(asked.sides) != num_chips:
        raise ScenarioError(
            f"{'x'.join(map(str, asked.sides))} has {prod(asked.sides):,} chips, not {num_chips:,}",
            field="sides",
            hint=f"{option('chips', prod(asked.sides))}, or other sides",
        )
