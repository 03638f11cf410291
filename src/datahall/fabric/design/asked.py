"""The fabric that somebody asks for: a topology of catalogue parts, one that was built, or links that are all alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import prod

import msgspec

from datahall.catalog import Catalog
from datahall.errors import DatahallError, ScenarioError, option
from datahall.fabric.design.built import preset
from datahall.fabric.design.design import Design, design
from datahall.fabric.design.topologies import ALIKE, BY_NAME, PLAIN, TABLE, Spec, topology_of_parts
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.scenario.sections.fabric import FabricDesign


def design_of(asked: FabricDesign, catalog: Catalog, *, chip: str = "", num_chips: int = 0) -> Design:
    """A design of catalogue parts; `chip` and `num_chips` stand where the section names none."""
    if is_built(asked.topology, catalog):
        return _built(asked, catalog, asked.chip or chip, asked.chips or num_chips)
    kind = topology_of_parts(asked.topology)
    for name in idle(asked, kind.uses):
        able = (one.name for one in TABLE if one.parts and name in one.uses)
        raise ScenarioError(
            f"a {kind.name} has no {_word(name)} to choose",
            field=_word(name),
            hint=f"leave {option(_word(name))} out, or take one of {', '.join(able)}",
        )
    count = asked.chips or num_chips or (prod(asked.sides) if asked.sides else 0)
    if not count:
        known = ", ".join(fabric.name for fabric in catalog.known_fabrics())
        raise ScenarioError(
            f"how many chips shall {asked.topology} join?",
            field="chips",
            hint=f"{option('chips', 16384)}; published fabrics have their own: {known}",
        )
    return design(msgspec.structs.replace(asked, chips=count, chip=asked.chip or chip), catalog)


def idle(asked: FabricDesign, uses: Collection[str]) -> tuple[str, ...]:
    """What a section gives beside the inputs that a topology has a use for."""
    plain = FabricDesign()
    names = sorted({name for one in TABLE for name in one.uses} - set(uses))
    return tuple(name for name in names if getattr(asked, name) != getattr(plain, name))


def fitting(asked: FabricDesign, topology: str, catalog: Catalog) -> FabricDesign:
    """One of several topologies side by side: what it has no use for is left out."""
    named = msgspec.structs.replace(asked, topology=topology, topologies=())
    if is_built(topology, catalog):
        return FabricDesign(topology=topology)
    plain = FabricDesign()
    unused = {name: getattr(plain, name) for name in idle(named, topology_of_parts(topology).uses)}
    chips = named.chips or (prod(named.sides) if named.sides else None)
    return msgspec.structs.replace(named, chips=chips, **unused)


def possible(asked: FabricDesign, topologies: Iterable[str], catalog: Catalog) -> list[str]:
    """Those of some topologies that can be built for the same chips."""
    found = []
    for name in topologies:
        try:
            design_of(fitting(asked, name, catalog), catalog)
        except DatahallError:
            continue
        found.append(name)
    return found


def _word(attribute: str) -> str:
    return attribute.removesuffix("_bytes_per_s")


def is_built(topology: str, catalog: Catalog) -> bool:
    """Whether a name is that of a fabric that was built."""
    return topology not in BY_NAME and any(topology == one.name for one in catalog.known_fabrics())


def _built(asked: FabricDesign, catalog: Catalog, chip: str, num_chips: int) -> Design:
    for name in idle(asked, ()):
        raise ScenarioError(
            f"{asked.topology} was built, so its {_word(name)} is what it is",
            field=_word(name),
            hint=f"leave {option(_word(name))} out, or ask for the topology itself",
        )
    made = preset(asked.topology, catalog=catalog)
    if chip and catalog.chip(chip).name != made.parts.chip.name:
        raise ScenarioError(
            f"{asked.topology} was built of {made.parts.chip.title}",
            field="chip",
            hint=option("chip", made.parts.chip.name),
        )
    if num_chips > made.counts.num_hosts:
        raise ScenarioError(
            f"{asked.topology} has {made.counts.num_hosts:,} chips, not {num_chips:,}",
            field="chips",
            hint=f"at most {option('chips', made.counts.num_hosts)}",
        )
    return made


def fabric_of(asked: FabricDesign, catalog: Catalog) -> Fabric:
    """The wires of a section: of catalogue parts, or all alike where it gives a bandwidth for every link."""
    if asked.bandwidth_bytes_per_s is None:
        return design_of(asked, catalog).fabric
    kind = BY_NAME.get(asked.topology)
    if kind is None or not kind.alike:
        raise ScenarioError(
            f"{asked.topology} is made of parts of the catalogue",
            field="bandwidth",
            hint=f"leave {option('bandwidth')} out and name a chip, or take one of {', '.join(PLAIN)}",
        )
    for name in idle(asked, set(kind.uses) & set(ALIKE)):
        raise ScenarioError(
            f"a {kind.name} of links that are all alike has no {_word(name)} to choose", field=_word(name),
            hint=f"leave {option(_word(name))} or {option('bandwidth')} out",
        )  # fmt: skip
    if asked.chips is None:
        raise ScenarioError("how many chips are there?", field="chips", hint=option("chips", 1024))
    return kind.lay(
        Spec(
            asked,
            asked.chips,
            Wire(asked.bandwidth_bytes_per_s, asked.latency_s),
            scale_up=Wire(asked.scale_up_bytes_per_s, asked.scale_up_latency_s),
            domain=asked.domain or 0,
            radix=asked.radix,
            alike=True,
        )
    )
