"""What cannot be asked of a fabric, refused from the question alone, before anything is laid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import msgspec

from datahall.catalog import Catalog
from datahall.errors import DatahallError, ScenarioError, option
from datahall.fabric.collectives.algorithms.early import check_dispatch, check_size
from datahall.fabric.design.chips import check_sides, is_built, num_chips, own_chips, usual_chip
from datahall.fabric.design.idle import idle_error, idle_inputs, unused, uses_of
from datahall.fabric.design.parts import Parts, parts_of
from datahall.fabric.design.tiers import check_tiers
from datahall.fabric.design.topologies import TABLE, Topology, topology_of_parts
from datahall.fabric.topology.grids.sides import squat_sides
from datahall.scenario.kinds import key_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import CollectiveCall, FabricDesign


def check_fabrics(scenario: Scenario) -> None:
    """Refuse topologies without chips, and of one that was built what is not to be chosen."""
    asked, names = scenario.one(FabricDesign), scenario.one(FabricDesign).topologies
    for name in names:
        _check(msgspec.structs.replace(asked, topology=name), scenario, alone=len(names) == 1)
    if len(names) > 1:
        check_used([idle_inputs(asked, name, scenario.catalog, beside=True) for name in names])
    try:
        for name in names:
            alone = msgspec.structs.replace(asked, topology=name)
            check_design(
                alone if len(names) == 1 else fitting(asked, name, scenario.catalog), scenario.catalog
            )
    except DatahallError as error:
        error.field = "topologies" if error.field == "on" else error.field
        raise


def check_collective(scenario: Scenario) -> None:
    """Refuse a collective among nobody knows how many chips, of nobody knows what, or on parts that cannot be wired."""
    asked, call = scenario.one(FabricDesign), scenario.one(CollectiveCall)
    kind = call.collective
    _check(asked, scenario, usual=call.experts or 0)
    check_dispatch(call, kind, asked.chips or 0)
    check_size(call, kind)
    if asked.topology:
        check_design(msgspec.structs.replace(asked, chips=asked.chips or call.experts), scenario.catalog)


def check_laid(scenario: Scenario) -> None:
    """Refuse a topology without chips, and of one that was built what is not to be chosen: it is laid whole."""
    _check(scenario.one(FabricDesign), scenario, alone=True)


def _check(asked: FabricDesign, scenario: Scenario, *, usual: int = 0, alone: bool = False) -> None:
    if not is_built(asked.topology, scenario.catalog):
        num_chips(asked, scenario.catalog, usual)
    elif alone or not asked.topologies:
        check_built(asked, scenario.catalog, whole=alone)


def check_built(asked: FabricDesign, catalog: Catalog, *, whole: bool = False) -> None:
    """Refuse to choose the parts of a fabric that was built, or more chips than it has; of a `whole` one also fewer."""
    for word, why in idle_inputs(asked, asked.topology, catalog).items():
        raise idle_error(word, why, "name a topology and its chips")
    made_of = usual_chip(msgspec.structs.replace(asked, chip=""), catalog)
    if asked.chip and catalog.chip(asked.chip).name != made_of.name:
        raise ScenarioError(
            f"{asked.topology} was built of {made_of.title}",
            field="chip",
            hint=option("chip", made_of.name),
        )
    built, count = catalog.known_fabric(asked.topology).num_chips, asked.chips
    if count is not None and (count > built or (whole and count != built)):
        raise ScenarioError(
            f"{asked.topology} has {built:,} chips, not {count:,}",
            field="chips",
            hint=f"leave {option('chips')} out" if whole else f"at most {option('chips', built)}",
        )


def check_design(asked: FabricDesign, catalog: Catalog) -> None:
    """Refuse what can be refused of a design before anything is laid; of one with so many chips, tiers it has not."""
    if is_built(asked.topology, catalog):
        check_built(asked, catalog)
        return
    parts, kind = chosen_parts(asked, catalog), topology_of_parts(asked.topology)
    if asked.chips is None:
        return
    if kind.kind == "direct":
        _check_grid(asked, kind, parts, asked.chips)
        return
    filled = ceil(asked.chips / parts.num_domain) * parts.num_domain
    check_tiers(asked, parts, filled)
    if kind.room is not None:
        kind.room(filled, radix=parts.radix, whole=parts.num_domain or 1)


def _check_grid(asked: FabricDesign, kind: Topology, parts: Parts, num_chips: int) -> None:
    """Refuse sides that make other chips, and chips that make no sides; slices of a pod are of some shapes only."""
    if kind.cubes:
        return
    check_sides(asked, num_chips)
    if not asked.sides and not kind.meshed:
        squat_sides(num_chips, parts.num_axes)


def chosen_parts(asked: FabricDesign, catalog: Catalog) -> Parts:
    """The parts of a topology, and nothing chosen that it has no use for."""
    check_used([idle_inputs(asked, asked.topology, catalog)])
    return parts_of(asked, catalog)


def fitting(asked: FabricDesign, topology: str, catalog: Catalog) -> FabricDesign:
    """One of several topologies side by side: what it has no use for is left out."""
    named = msgspec.structs.replace(asked, topology=topology, topologies=())
    if is_built(topology, catalog):
        return FabricDesign(topology=topology)
    plain = FabricDesign()
    left_out = {name: getattr(plain, name) for name in unused(named, uses_of(topology, catalog))}
    chips = named.chips or own_chips(named, catalog)
    return msgspec.structs.replace(named, chips=chips, **left_out)


def on_each(scenario: Scenario) -> tuple[Scenario, ...]:
    """The question on each of the fabrics that were named, less what one has no use for; refused is what none has."""
    asked, catalog = scenario.one(FabricDesign), scenario.catalog
    if len(asked.named) == 1:
        return (scenario,)
    check_used([idle_inputs(asked, name, catalog, beside=True) for name in asked.named])
    return tuple(_on(scenario, name) for name in asked.named)


def _on(scenario: Scenario, topology: str) -> Scenario:
    """The question on one of them; one that was built may have chips to spare."""
    asked = scenario.one(FabricDesign)
    idle = {key_of(name) for name in unused(asked, uses_of(topology, scenario.catalog))}
    kept = fitting(asked, topology, scenario.catalog)
    kept = msgspec.structs.replace(kept, chips=asked.chips, chip=asked.chip)
    (said,) = scenario.said["fabric"]
    named = {key: value for key, value in said.items() if key not in idle} | {"topology": topology}
    beside = tuple(dict.fromkeys((*scenario.beside, "on")))
    there = msgspec.structs.replace(scenario, said={**scenario.said, "fabric": (named,)}, beside=beside)
    return there.having(kept)


def check_used(idle: Sequence[Mapping[str, str]]) -> None:
    """Refuse an input that none of some topologies has a use for; `idle`: what each has none for, and why."""
    for word, why in idle[0].items():
        if all(word in one for one in idle):
            able = ", ".join(one.name for one in TABLE if one.parts and word in map(key_of, one.uses))
            raise idle_error(word, why, f"take one of {able}" if able else "")
