"""The machine without each thing that was said of its network, to see what that changes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.cluster.cluster import Cluster, cluster_from, stands_on_torus
from datahall.cluster.wiring import Wiring
from datahall.fabric.design import left_out
from datahall.fabric.design.chips import usual_chip
from datahall.scenario.sections.fabric import WIRING, FabricDesign

# why an input of the wiring that some chips cross changes nothing
SAME, BINDS = "the machine has the same without it", "something else binds"


def each_left_out(wiring: Wiring, chip: Chip, catalog: Catalog) -> dict[str, Wiring]:
    """By name, the wiring without each input that was given, for the same chip."""
    designs = left_out.each_left_out(wiring.design, WIRING)
    own = wiring.design.topology == "torus" and stands_on_torus(chip)
    if brings_chip(wiring, chip, catalog) or own:  # what the chips have anyway is no input for nothing
        designs.pop("on", None)
    found = {name: wiring._replace(design=design) for name, design in designs.items()}
    return {**found, **({"failure": wiring._replace(failures=())} if wiring.failures else {})}


def brings_chip(wiring: Wiring, chip: Chip, catalog: Catalog) -> bool:
    """Whether a chip is there because a topology is made of it: without the topology there would be another."""
    design = wiring.design
    if design.chip or wiring.chip_said or not design.topology:
        return False
    return chip.name == usual_chip(design, catalog).name != usual_chip(FabricDesign(), catalog).name


def same_without(
    cluster: Cluster,
    wiring: Wiring,
    catalog: Catalog,
    as_fast: Callable[[Cluster], bool],
    *,
    level: str | None = None,
    otherwise: str = BINDS,
    in_order: bool = False,
) -> dict[str, str]:
    """Inputs without which the machine is the same, or another that is `as_fast`, each with why."""

    def why(less: Wiring) -> str:
        design = msgspec.structs.replace(
            less.design,
            chips=cluster.num_chips,
            chip=cluster.chip.name,
            oversubscription=cluster.ratios_there(less.design.oversubscription),
        )
        version = cluster.system.version
        other = cluster_from(
            design, catalog, failures=less.failures, in_order=in_order, version=version, level=level
        )
        if other.system == cluster.system:
            return SAME
        return otherwise if as_fast(other) else ""

    return left_out.same_without(each_left_out(wiring, cluster.chip, catalog), why)
