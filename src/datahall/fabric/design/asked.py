"""The fabric that somebody asks for: a topology of catalogue parts, one that was built, or links that are all alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod

import msgspec

from datahall.catalog import Catalog
from datahall.errors import DatahallError, ScenarioError, UnknownNameError, option
from datahall.fabric.design.built import preset
from datahall.fabric.design.design import (
    DOMAINS,
    OTHER_NAMES,
    SWITCHED,
    TOPOLOGIES,
    Design,
    design,
    read_oversubscription,
    read_sides,
    topology_name,
)
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.dragonfly import dragonfly
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.hyperx import full_mesh
from datahall.fabric.topology.rail import rail_optimised
from datahall.fabric.topology.scale_up import scale_up_domain, with_scale_up
from datahall.fabric.topology.torus import torus, torus_for
from datahall.fabric.topology.tree import tree
from datahall.scenario.sections.fabric import FabricDesign

CLOS = ("fat-tree", "clos", "rail-optimised", "rail-only", "hgx", "nvl72")
# which topologies an input says something of; those of published fabrics are what they are
USES = {
    "oversubscription": CLOS,
    "tiers": CLOS,
    "sides": ("torus", "mesh", "tpu-pod"),
    "switch": (*SWITCHED, *DOMAINS),
    "radix": (*SWITCHED, *DOMAINS),
    "domain": SWITCHED,
    "nic_bytes_per_s": (*SWITCHED, *DOMAINS),
    "server": TOPOLOGIES,
}
USUAL_RADIX = 64


def design_of(asked: FabricDesign, catalog: Catalog, *, chip: str = "", num_chips: int = 0) -> Design:
    """A design of catalogue parts; `chip` and `num_chips` stand where the section names none."""
    if is_built(asked.topology, catalog):
        return _built(asked, catalog, asked.chip or chip, asked.chips or num_chips)
    kind = topology_name(asked.topology)
    for name in idle(asked, kind):
        raise ScenarioError(
            f"a {kind} has no {_word(name)} to choose",
            field=_word(name),
            hint=f"leave {option(_word(name))} out, or take one of {', '.join(USES[name])}",
        )
    count = asked.chips or num_chips or (prod(read_sides(asked.sides)) if asked.sides else 0)
    if not count:
        known = ", ".join(fabric.name for fabric in catalog.known_fabrics())
        raise ScenarioError(
            f"how many chips shall {asked.topology} join?",
            field="chips",
            hint=f"{option('chips', 16384)}; published fabrics have their own: {known}",
        )
    return design(
        asked.topology,
        count,
        catalog=catalog,
        chip=asked.chip or chip,
        server=asked.server,
        switch=asked.switch,
        radix=asked.radix,
        tiers=asked.tiers,
        oversubscription=asked.oversubscription,
        sides=asked.sides,
        domain=asked.domain,
        nic_bytes_per_s=asked.nic_bytes_per_s,
    )


def idle(asked: FabricDesign, topology: str, uses: Mapping[str, tuple[str, ...]] = USES) -> tuple[str, ...]:
    """What a section gives and a topology, or a fabric that was built, has no use for."""
    plain = FabricDesign()
    return tuple(
        name
        for name, used_by in uses.items()
        if getattr(asked, name) != getattr(plain, name) and topology not in used_by
    )


def fitting(asked: FabricDesign, topology: str, catalog: Catalog) -> FabricDesign:
    """One of several topologies side by side: what it has no use for is left out."""
    named = msgspec.structs.replace(asked, topology=topology, topologies=())
    if is_built(topology, catalog):
        return FabricDesign(topology=topology)
    plain = FabricDesign()
    unused = {name: getattr(plain, name) for name in idle(named, topology_name(topology))}
    chips = named.chips or (prod(read_sides(named.sides)) if named.sides else None)
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
    try:
        topology_name(topology)
    except ScenarioError:
        return any(topology in (one.name, *one.aliases) for one in catalog.known_fabrics())
    return False


def _built(asked: FabricDesign, catalog: Catalog, chip: str, num_chips: int) -> Design:
    for name in idle(asked, asked.topology):
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
    folded = asked.topology.strip().lower().replace("_", "-")
    folded = folded if folded in PLAIN else OTHER_NAMES.get(folded, folded)
    if folded not in PLAIN:
        known = folded in TOPOLOGIES or is_built(asked.topology, catalog)
        if not known:
            raise UnknownNameError(
                "topology", asked.topology, PLAIN, field="on", hint=f"one of {', '.join(PLAIN)}"
            )
        raise ScenarioError(
            f"{asked.topology} is made of parts of the catalogue",
            field="bandwidth",
            hint=f"leave {option('bandwidth')} out and name a chip, or take one of {', '.join(PLAIN)}",
        )
    for name in idle(asked, folded, PLAIN_USES):
        raise ScenarioError(
            f"a {folded} of links that are all alike has no {_word(name)} to choose", field=_word(name),
            hint=f"leave {option(_word(name))} or {option('bandwidth')} out",
        )  # fmt: skip
    if asked.chips is None:
        raise ScenarioError("how many chips are there?", field="chips", hint=option("chips", 1024))
    wire = Wire(asked.bandwidth_bytes_per_s, asked.latency_s)
    fabric = PLAIN[folded](asked, asked.chips, wire)
    if asked.domain is not None and folded != "rail-optimised":
        fabric = with_scale_up(fabric, asked.domain, _scale_up(asked))
    return fabric


Build = Callable[[FabricDesign, int, Wire], Fabric]


def _scale_up(asked: FabricDesign) -> Wire:
    return Wire(asked.scale_up_bytes_per_s, asked.scale_up_latency_s)


def _clos(tiers: int | None) -> Build:
    def build(asked: FabricDesign, chips: int, wire: Wire) -> Fabric:
        ratio = read_oversubscription(asked.oversubscription)
        return clos(
            chips,
            wire,
            radix=asked.radix or USUAL_RADIX,
            tiers=tiers or asked.tiers,
            oversubscription=ratio,
        )

    return build


def _fat_tree(asked: FabricDesign, chips: int, wire: Wire) -> Fabric:
    if set(read_oversubscription(asked.oversubscription)) == {1.0} and asked.tiers is None:
        return fat_tree(chips, wire, radix=asked.radix)
    return _clos(None)(asked, chips, wire)


def _rail(asked: FabricDesign, chips: int, wire: Wire) -> Fabric:
    return rail_optimised(
        chips,
        wire,
        _scale_up(asked),
        radix=asked.radix or USUAL_RADIX,
        rails=asked.domain or 8,
        tiers=asked.tiers,
        oversubscription=read_oversubscription(asked.oversubscription),
    )


def _torus(asked: FabricDesign, chips: int, wire: Wire) -> Fabric:
    if not asked.sides:
        return torus_for(chips, wire)
    sides = read_sides(asked.sides)
    if prod(sides) != chips:
        raise ScenarioError(
            f"{asked.sides} has {prod(sides):,} chips, not {chips:,}",
            field="sides",
            hint=f"{option('chips', prod(sides))}, or other sides",
        )
    return torus(sides, wire)


PLAIN: dict[str, Build] = {
    "fat-tree": _fat_tree,
    "clos": _clos(None),
    "leaf-spine": _clos(2),
    "rail-optimised": _rail,
    "torus": _torus,
    "tree": lambda asked, chips, wire: tree(chips, wire, radix=asked.radix or USUAL_RADIX),
    "dragonfly": lambda asked, chips, wire: dragonfly(chips, wire, radix=asked.radix),
    "full-mesh": lambda _, chips, wire: full_mesh(chips, wire),
    "scale-up": lambda _, chips, wire: scale_up_domain(chips, wire),
}

WIDENED = ("fat-tree", "clos", "leaf-spine", "rail-optimised")
PLAIN_USES = {
    "oversubscription": WIDENED,
    "tiers": ("fat-tree", "clos"),
    "sides": ("torus",),
    "radix": (*WIDENED, "tree", "dragonfly"),
    "domain": (*WIDENED, "tree", "dragonfly", "full-mesh"),
    "switch": (),
    "server": (),
    "chip": (),
    "nic_bytes_per_s": (),
}
