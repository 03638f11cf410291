"""Inputs that say nothing of a fabric: parts that its topology has not, or a network that joins nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datahall.catalog import Catalog
from datahall.errors import ScenarioError, option
from datahall.fabric.design.chips import is_built
from datahall.fabric.design.topologies import BY_NAME, topology_of_parts
from datahall.scenario.field import grouped
from datahall.scenario.idle import does_nothing
from datahall.scenario.kinds import key_of
from datahall.scenario.sections.fabric import PARTS, WIRING, FabricDesign

if TYPE_CHECKING:  # what refuses such inputs early lays no fabric
    from datahall.fabric.design.design import Design


def idle_inputs(
    asked: FabricDesign, topology: str, catalog: Catalog, *, beside: bool = False
) -> dict[str, str]:
    """What a topology has no use for, and why; `beside` others, one that was built has its own chips too."""
    names = unused(asked, uses_of(topology, catalog))
    if beside and is_built(topology, catalog):
        names += tuple(name for name in ("chip", "chips") if getattr(asked, name))
    return {key_of(name): _why(topology, key_of(name)) for name in names}


def idle_inputs_of_domain(made: Design) -> dict[str, str]:
    """What says nothing of a fabric because it is one scale-up domain, and why."""
    num_chips = made.counts.num_hosts
    if num_chips != made.parts.num_domain or made.parts.switch is None:
        return {}
    names = (key_of(name) for name in made.kind.uses if name not in ("server", "domain"))
    return dict.fromkeys(names, f"all {num_chips:,} chips are in one scale-up domain")


def uses_of(topology: str, catalog: Catalog) -> tuple[str, ...]:
    """The inputs that say something of a topology; of one that was built nothing is there to choose."""
    return () if is_built(topology, catalog) else topology_of_parts(topology).uses


def unused(asked: FabricDesign, uses: tuple[str, ...]) -> tuple[str, ...]:
    """What a section gives beside the inputs that a topology has a use for."""
    plain = FabricDesign()
    chosen = (one.attribute for one in grouped("fabric", WIRING, PARTS) if one.attribute != "topology")
    return tuple(name for name in chosen if name not in uses and getattr(asked, name) != getattr(plain, name))


def idle_error(word: str, why: str, instead: str) -> ScenarioError:
    """The refusal of an input that a topology has no use for."""
    hint = f"leave {option(word)} out, or {instead}" if instead else f"leave {option(word)} out"
    return ScenarioError(does_nothing(word, why), field=word, hint=hint)


def _why(topology: str, word: str) -> str:
    if topology in BY_NAME:
        return f"a {topology} has no {word} to choose"
    return f"{topology} was built, and has its own"
