"""The fabric that somebody asks for: a topology of catalogue parts, one that was built, or links that are all alike."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

import msgspec

from datahall.catalog import Catalog
from datahall.errors import DatahallError, ScenarioError, option
from datahall.fabric.design.built import preset
from datahall.fabric.design.chips import is_built
from datahall.fabric.design.chips import num_chips as num_chips_of
from datahall.fabric.design.design import Design, design
from datahall.fabric.design.early import check_design, chosen_parts, fitting
from datahall.fabric.design.idle import idle_error, unused
from datahall.fabric.design.lay import LAYING, Spec
from datahall.fabric.design.topologies import BY_NAME, PLAIN, topology_of_parts
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.scenario.kinds import key_of
from datahall.scenario.sections.fabric import FabricDesign


def design_of(asked: FabricDesign, catalog: Catalog) -> Design:
    """A design of catalogue parts with exactly the chips that are asked for, or one that was built."""
    check_design(asked, catalog)
    if is_built(asked.topology, catalog):
        return preset(asked.topology, catalog=catalog)
    return design(msgspec.structs.replace(asked, chips=num_chips_of(asked, catalog)), catalog)


def design_for(
    asked: FabricDesign, catalog: Catalog, *, chip: str = "", num_chips: int, least_domains: int
) -> Design:
    """The smallest design that holds so many chips: a switched one has whole scale-up domains, which need not be full.

    `chip` and `num_chips` stand where the section names none.
    """
    named = msgspec.structs.replace(asked, chip=asked.chip or chip, chips=asked.chips or num_chips or None)
    if is_built(named.topology, catalog) or topology_of_parts(named.topology).kind == "direct":
        return design_of(named, catalog)
    domain = chosen_parts(named, catalog).num_domain
    needed = max(least_domains, ceil(num_chips_of(named, catalog) / domain))
    return design(msgspec.structs.replace(named, chips=needed * domain), catalog)


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
    for name in unused(asked, kind.uses):
        why = f"a {kind.name} of links that are all alike has no {key_of(name)} to choose"
        raise idle_error(key_of(name), why, f"leave {option('bandwidth')} out")
    return LAYING[kind.name](
        Spec(
            asked,
            num_chips_of(asked, catalog),
            Wire(asked.bandwidth_bytes_per_s, asked.latency_s),
            scale_up=Wire(asked.scale_up_bytes_per_s, asked.scale_up_latency_s),
            domain=asked.domain or 0,
            radix=asked.radix,
            alike=True,
        )
    )
