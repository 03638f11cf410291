"""The fabric that a scenario describes: of parts from the catalogue, or of links that are all alike."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from datahall.catalog import Catalog, load
from datahall.errors import DatahallError, ScenarioError
from datahall.fabric.design.design import TOPOLOGIES, design, read_oversubscription
from datahall.fabric.scenario_file import Read, Reader, Rule, number
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.dragonfly import dragonfly
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.hyperx import full_mesh
from datahall.fabric.topology.rail import rail_optimised
from datahall.fabric.topology.scale_up import scale_up_domain, with_scale_up
from datahall.fabric.topology.torus import torus, torus_for
from datahall.fabric.topology.tree import tree

Build = Callable[[dict[str, Read], int, Wire], Fabric]


def _radix(values: dict[str, Read]) -> int | None:
    return None if values["radix"] is None else int(number(values["radix"]))


def _scale_up(values: dict[str, Read]) -> Wire:
    return Wire(number(values["scale_up"]), number(values["scale_up_latency"]))


def _fat_tree(values: dict[str, Read], chips: int, wire: Wire) -> Fabric:
    return fat_tree(chips, wire, radix=_radix(values))


def _clos(tiers: int | None) -> Build:
    def build(values: dict[str, Read], chips: int, wire: Wire) -> Fabric:
        ratio = read_oversubscription(str(values["oversubscription"]))
        return clos(chips, wire, radix=_radix(values) or 64, tiers=tiers, oversubscription=ratio)

    return build


def _rail(values: dict[str, Read], chips: int, wire: Wire) -> Fabric:
    ratio = read_oversubscription(str(values["oversubscription"]))
    rails = int(number(values["domain"])) if values["domain"] is not None else 8
    return rail_optimised(
        chips, wire, _scale_up(values), radix=_radix(values) or 64, rails=rails, oversubscription=ratio
    )


def _torus(values: dict[str, Read], chips: int, wire: Wire) -> Fabric:
    sides = tuple(int(side) for side in str(values["sides"]).split("x") if side.strip().isdecimal())
    if not sides:
        return torus_for(chips, wire)
    if prod(sides) != chips:
        raise ScenarioError(
            f"{values['sides']} has {prod(sides):,} chips, not {chips:,}", hint="change one of them"
        )
    return torus(sides, wire)


PLAIN: dict[str, Build] = {
    "fat-tree": _fat_tree,
    "clos": _clos(None),
    "leaf-spine": _clos(2),
    "rail-optimised": _rail,
    "torus": _torus,
    "tree": lambda values, chips, wire: tree(chips, wire, radix=_radix(values) or 64),
    "dragonfly": lambda values, chips, wire: dragonfly(chips, wire, radix=_radix(values)),
    "full-mesh": lambda _, chips, wire: full_mesh(chips, wire),
    "scale-up": lambda _, chips, wire: scale_up_domain(chips, wire),
}

FABRIC = {
    "topology": Rule("text", "fat-tree", tuple(dict.fromkeys((*PLAIN, *TOPOLOGIES))), required=True),
    "chips": Rule("count", least=1, required=True),
    "sides": Rule("text", ""),
    "radix": Rule("count", least=2),
    "tiers": Rule("count", least=1),
    "oversubscription": Rule("text", "1:1"),
    # of the catalogue
    "chip": Rule("text", ""),
    "server": Rule("text", ""),
    "switch": Rule("text", ""),
    # of links that are all alike
    "bandwidth": Rule("bytes_per_s", above=True),
    "latency": Rule("s", 500e-9),
    "domain": Rule("count", least=1),
    "scale_up": Rule("bytes_per_s", 450e9, above=True),
    "scale_up_latency": Rule("s", 500e-9),
}


def read_fabric(reader: Reader, values: dict[str, Read], catalog: Catalog | None) -> Fabric | None:
    """Build the fabric; what cannot be built is a problem at its line, and None."""
    if values["chips"] is None:
        return None
    chips, topology = int(number(values["chips"])), str(values["topology"])
    try:
        if values["bandwidth"] is None:
            return _of_catalogue(values, chips, topology, catalog or load())
        if topology not in PLAIN:
            hint = f"leave bandwidth out and name a chip, or take one of {', '.join(PLAIN)}"
            reader.problem(("fabric", "bandwidth"), f"{topology} is made of parts of the catalogue", hint)
            return None
        fabric = PLAIN[topology](values, chips, Wire(number(values["bandwidth"]), number(values["latency"])))
        if values["domain"] is not None and topology not in {"rail-optimised", "scale-up", "torus"}:
            fabric = with_scale_up(fabric, int(number(values["domain"])), _scale_up(values))
    except DatahallError as error:
        reader.problem(("fabric", "topology"), error.message, error.hint)
        return None
    return fabric


def _of_catalogue(values: dict[str, Read], chips: int, topology: str, catalog: Catalog) -> Fabric:
    found = design(
        topology,
        chips,
        catalog=catalog,
        chip=str(values["chip"]),
        server=str(values["server"]),
        switch=str(values["switch"]),
        radix=_radix(values),
        tiers=None if values["tiers"] is None else int(number(values["tiers"])),
        oversubscription=str(values["oversubscription"]),
        sides=str(values["sides"]),
    )
    return found.fabric
