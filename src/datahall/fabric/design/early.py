"""What cannot be asked of a fabric, refused from the question alone, before anything is laid."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import cast

import msgspec

from datahall.catalog import Catalog
from datahall.errors import DatahallError
from datahall.fabric.collectives.algorithms.early import check_dispatch, check_size
from datahall.fabric.design.chips import (
    check_built,
    check_sides,
    idle_error,
    is_built,
    num_chips,
    own_parts,
    unused,
)
from datahall.fabric.design.parts import Parts, parts_of
from datahall.fabric.design.tiers import check_tiers
from datahall.fabric.design.topologies import BY_NAME, TABLE, topology_of_parts
from datahall.scenario.kinds import key_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import CollectiveCall, FabricDesign
from datahall.scenario.words import Collective


def check_fabrics(scenario: Scenario) -> None:
    """Refuse topologies without chips, and of one that was built what is not to be chosen."""
    asked, names = scenario.one(FabricDesign), scenario.one(FabricDesign).topologies
    for name in names:
        _check(msgspec.structs.replace(asked, topology=name), scenario, alone=len(names) == 1)
    if len(names) > 1:
        idle_inputs_of(asked, names, scenario.catalog)
        return
    try:
        check_design(msgspec.structs.replace(asked, topology=names[0]), scenario.catalog)
    except DatahallError as error:
        error.field = "topologies" if error.field == "on" else error.field
        raise


def check_collective(scenario: Scenario) -> None:
    """Refuse a collective among nobody knows how many chips, of nobody knows what, or on parts that cannot be wired."""
    asked, call = scenario.one(FabricDesign), scenario.one(CollectiveCall)
    kind = cast(Collective, call.collective)
    _check(asked, scenario, usual=call.experts or 0)
    check_dispatch(call, kind, asked.chips or 0)
    check_size(call, kind)
    if asked.topology:
        check_design(msgspec.structs.replace(asked, chips=asked.chips or call.experts), scenario.catalog)


def _check(asked: FabricDesign, scenario: Scenario, *, usual: int = 0, alone: bool = False) -> None:
    if not is_built(asked.topology, scenario.catalog):
        num_chips(asked, scenario.catalog, usual)
    elif alone or not asked.topologies:
        check_built(asked, scenario.catalog, whole=alone)


def check_design(asked: FabricDesign, catalog: Catalog) -> None:
    """Refuse what can be refused of a design before anything is laid; of one with so many chips, tiers it has not."""
    if is_built(asked.topology, catalog):
        check_built(asked, catalog)
        return
    parts, kind = chosen_parts(asked, catalog), topology_of_parts(asked.topology)
    if asked.chips is None:
        return
    if kind.kind == "direct":
        if not kind.cubes:  # whose slices are of some shapes only
            check_sides(asked, asked.chips)
    else:
        check_tiers(asked, parts, ceil(asked.chips / parts.num_domain) * parts.num_domain)


def chosen_parts(asked: FabricDesign, catalog: Catalog) -> Parts:
    """The parts of a topology, and nothing chosen that it has no use for."""
    idle_inputs_of(asked, (asked.topology,), catalog)
    return parts_of(asked, catalog)


def idle_inputs_of(
    asked: FabricDesign, topologies: Sequence[str], catalog: Catalog
) -> dict[str, dict[str, str]]:
    """By topology, the inputs that it has no use for and why; one that none of them has a use for is refused."""
    reasons = {
        name: {key_of(one): _why(name, one) for one in unused(asked, uses_of(name, catalog))}
        for name in topologies
    }
    for name, those in reasons.items() if len(reasons) > 1 else ():
        if is_built(name, catalog):
            those |= {one: _why(name, one) for one in ("chip", "chips") if getattr(asked, one)}
    for word, why in next(iter(reasons.values())).items():
        if all(word in those for those in reasons.values()):
            able = ", ".join(one.name for one in TABLE if one.parts and word in map(key_of, one.uses))
            raise idle_error(word, why, f"take one of {able}")
    return reasons


def uses_of(topology: str, catalog: Catalog) -> tuple[str, ...]:
    """The inputs that say something of a topology."""
    return () if is_built(topology, catalog) else topology_of_parts(topology).uses


def _why(topology: str, attribute: str) -> str:
    if topology in BY_NAME:  # of a fabric that was built, nothing is there to choose
        return f"a {topology} has no {key_of(attribute)} to choose"
    return own_parts(topology)
