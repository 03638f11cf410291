"""How many chips a fabric joins, as far as that is said: by a person, by its sides, or by whoever built it.

What is wrong with it is found here before anything is laid, so that it costs nothing to be told.
"""

from __future__ import annotations

from math import prod

from datahall.catalog import Catalog
from datahall.errors import ScenarioError, option
from datahall.scenario.field import grouped
from datahall.scenario.idle import does_nothing
from datahall.scenario.sections.fabric import LINKS, PARTS, WIRING, FabricDesign
from datahall.scenario.words import PLAIN_TOPOLOGIES, TOPOLOGIES


def is_built(topology: str, catalog: Catalog) -> bool:
    """Whether a name is that of a fabric that was built."""
    known = topology in TOPOLOGIES or topology in PLAIN_TOPOLOGIES
    return not known and any(topology == one.name for one in catalog.known_fabrics())


def num_chips(asked: FabricDesign, catalog: Catalog, usual: int = 0) -> int:
    """The chips that a topology of parts shall join; `usual` stands where nobody says."""
    count = asked.chips or usual or (prod(asked.sides) if asked.sides else 0)
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


def check_built(asked: FabricDesign, topology: str) -> None:
    """Refuse to choose the parts of a fabric that was built."""
    plain = FabricDesign()
    for field in grouped("fabric", WIRING, PARTS, LINKS):
        if field.attribute == "topology" or getattr(asked, field.attribute) == getattr(
            plain, field.attribute
        ):
            continue
        raise ScenarioError(
            does_nothing(field.name, own_parts(topology)),
            field=field.name,
            hint=f"leave {option(field.name)} out, or name a topology and its chips",
        )


def own_parts(topology: str) -> str:
    """Why nothing of a fabric that was built is there to choose."""
    return f"{topology} was built, and has its own"
