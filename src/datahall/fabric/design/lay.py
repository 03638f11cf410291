"""How the wires of each topology are laid.

The same builders lay catalogue parts and links that are all alike; who has no switch at hand says no radix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from datahall.fabric.design.chips import check_sides
from datahall.fabric.design.parts import USUAL_AXES
from datahall.fabric.design.topologies import BY_NAME
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.dragonfly import dragonfly, dragonfly_plus
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.grids.hyperx import full_mesh, hyperx_for
from datahall.fabric.topology.grids.torus import torus, torus_for
from datahall.fabric.topology.grids.tpu_pod import Pod, slice_for, tpu_pod, tpu_slice
from datahall.fabric.topology.rail import rail_only, rail_optimised
from datahall.fabric.topology.scale_up import scale_up_domain, with_scale_up
from datahall.fabric.topology.tree import tree
from datahall.scenario.sections.fabric import FabricDesign

USUAL_RADIX = 64
USUAL_RAILS = 8


class Spec(NamedTuple):
    """What a fabric is laid of: what was asked for, and what its parts make of it."""

    asked: FabricDesign
    num_chips: int
    wire: Wire  # of a chip into the network, or between two neighbours
    scale_up: Wire | None = None  # of a chip into its scale-up domain
    domain: int = 0  # chips of one
    radix: int | None = None  # None: as textbooks have it
    axes: int = USUAL_AXES
    pod: Pod | None = None
    pod_chips: int | None = None
    alike: bool = False  # links that are all alike: a fat tree is then the k-ary one of three tiers

    @property
    def ports(self) -> int:
        """Of a switch."""
        return self.radix or USUAL_RADIX


Lay = Callable[[Spec], Fabric]


def _in_domains(flat: Fabric, spec: Spec) -> Fabric:
    """A network with the scale-up domains of its chips beside it."""
    if spec.domain <= 1:
        return flat
    assert spec.scale_up is not None
    return with_scale_up(flat, spec.domain, spec.scale_up)


def _clos(spec: Spec) -> Fabric:
    flat = clos(
        spec.num_chips,
        spec.wire,
        radix=spec.ports,
        tiers=BY_NAME[spec.asked.topology].tiers or spec.asked.tiers,
        oversubscription=spec.asked.ratios,
        pod_chips=spec.pod_chips,
    )
    return _in_domains(flat, spec)


def _fat_tree(spec: Spec) -> Fabric:
    if spec.alike and set(spec.asked.ratios) == {1.0} and spec.asked.tiers is None:
        return _in_domains(fat_tree(spec.num_chips, spec.wire, radix=spec.radix), spec)
    return _clos(spec)


def _rails(make: Callable[..., Fabric]) -> Lay:
    return lambda spec: make(
        spec.num_chips,
        spec.wire,
        spec.scale_up,
        radix=spec.ports,
        rails=spec.domain or USUAL_RAILS,
        tiers=spec.asked.tiers,
        oversubscription=spec.asked.ratios,
    )


def _flat(lay: Lay) -> Lay:
    return lambda spec: _in_domains(lay(spec), spec)


def _domains(spec: Spec) -> Fabric:
    """Scale-up domains under a fat tree; one alone needs no network."""
    if spec.num_chips == spec.domain:
        assert spec.scale_up is not None
        return scale_up_domain(spec.num_chips, spec.scale_up)
    return _clos(spec)


def _torus(spec: Spec, *, wrap: bool = True) -> Fabric:
    sides = spec.asked.sides
    if not sides:
        return torus_for(spec.num_chips, spec.wire, axes=spec.axes, wrap=wrap)
    check_sides(spec.asked, spec.num_chips)
    return torus(sides, spec.wire, wrap=wrap)


def _tpu_pod(spec: Spec) -> Fabric:
    assert spec.pod is not None
    if spec.asked.sides and spec.asked.sides != spec.pod.sides:
        return tpu_slice(spec.asked.sides, spec.wire, spec.pod)
    if spec.num_chips == spec.pod.num_chips:
        return tpu_pod(spec.pod, spec.wire)
    return tpu_slice(slice_for(spec.num_chips, spec.pod), spec.wire, spec.pod)


LAYING: dict[str, Lay] = {
    "tree": _flat(lambda spec: tree(spec.num_chips, spec.wire, radix=spec.ports)),
    "fat-tree": _fat_tree,
    "clos": _clos,
    "leaf-spine": _clos,
    "rail-optimised": _rails(rail_optimised),
    "rail-only": _rails(rail_only),
    "dragonfly": _flat(
        lambda spec: dragonfly(spec.num_chips, spec.wire, radix=spec.radix, whole=spec.domain)
    ),
    "dragonfly-plus": _flat(lambda spec: dragonfly_plus(spec.num_chips, spec.wire, radix=spec.ports)),
    "hyperx": _flat(
        lambda spec: hyperx_for(spec.num_chips, spec.wire, radix=spec.ports, whole=spec.domain or 1)
    ),
    "torus": _torus,
    "mesh": lambda spec: _torus(spec, wrap=False),
    "tpu-pod": _tpu_pod,
    "full-mesh": lambda spec: full_mesh(spec.num_chips, spec.wire),
    "hgx": _domains,
    "nvl72": _domains,
    "scale-up": lambda spec: scale_up_domain(spec.num_chips, spec.wire),
}
