"""A fabric by name: the topology a person asks for, of the parts that the catalogue has.

design("fat-tree", 16384, catalog=catalog, chip="h100-sxm", oversubscription="1:1")
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

import msgspec
import numpy as np

from datahall.catalog import Catalog
from datahall.errors import ScenarioError, nearest, option
from datahall.fabric.design.parts import Parts, machine, network_parts, port_note
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.counts import Counts, counts
from datahall.fabric.topology.cuts import Cut, cuts
from datahall.fabric.topology.dragonfly import dragonfly, dragonfly_plus
from datahall.fabric.topology.graph import FABRIC, Fabric, Wire
from datahall.fabric.topology.hyperx import full_mesh, hyperx_for
from datahall.fabric.topology.rail import rail_only, rail_optimised
from datahall.fabric.topology.scale_up import check_whole_domains, scale_up_domain, with_scale_up
from datahall.fabric.topology.torus import torus, torus_for
from datahall.fabric.topology.tpu_pod import PODS, slice_for, tpu_pod, tpu_slice
from datahall.fabric.topology.tree import tree

SWITCHED = (
    "tree",
    "fat-tree",
    "clos",
    "rail-optimised",
    "rail-only",
    "dragonfly",
    "dragonfly-plus",
    "hyperx",
)
DIRECT = ("torus", "mesh", "tpu-pod", "full-mesh")
DOMAINS = ("hgx", "nvl72")
TOPOLOGIES = (*SWITCHED, *DIRECT, *DOMAINS)

USUAL_CHIP = "h100-sxm"  # where nobody says one
_USUAL_CHIP = {
    "nvl72": "gb200",
    "torus": "tpu-v7x",
    "mesh": "tpu-v7x",
    "tpu-pod": "tpu-v5p",
    "full-mesh": "mi300x",
}
OTHER_NAMES = {
    "fattree": "fat-tree",
    "rail": "rail-optimised",
    "rail-optimized": "rail-optimised",
    "dragonfly+": "dragonfly-plus",
    "leaf-spine": "clos",
    "3d-torus": "torus",
    "fullmesh": "full-mesh",
}


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """A fabric, what it is made of and what it counts."""

    topology: str
    fabric: Fabric
    counts: Counts
    parts: Parts
    oversubscription: tuple[float, ...] = (1.0,)
    cuts: tuple[Cut, ...] = ()  # where it is narrow
    notes: tuple[str, ...] = ()

    @property
    def injection_bytes_per_s(self) -> float:
        """What one chip can send into the network, one way."""
        half = self.counts.num_hosts / 2
        full = self.counts.full_bisection_fraction
        return self.counts.bisection_bytes_per_s / (full * half) if full else 0.0

    @property
    def all_to_all_bytes_per_s(self) -> float:
        """What each chip gets when all send to all: of its port, or of the way out of a leaf, a pod or a half.

        Each of the m chips of a part sends (N − m)/N of what it has out of it: R = width · N / (m (N − m)).
        """
        return min((self.injection_bytes_per_s, *(self._each(cut) for cut in self.cuts)))

    @property
    def narrowest(self) -> Cut | None:
        """The place that binds an all-to-all; None where the ports of the chips do."""
        cut = min(self.cuts, key=self._each, default=None)
        return cut if cut is not None and self._each(cut) < 0.999 * self.injection_bytes_per_s else None

    def _each(self, cut: Cut) -> float:
        hosts = self.counts.num_hosts
        return cut.bytes_per_s * hosts / (cut.num_below * (hosts - cut.num_below))


def design(
    topology: str,
    num_chips: int,
    *,
    catalog: Catalog,
    chip: str = "",
    server: str = "",
    switch: str = "",
    radix: int | None = None,
    tiers: int | None = None,
    oversubscription: str = "1:1",
    sides: str = "",
    pod_chips: int | None = None,
    domain: int | None = None,
    nic_bytes_per_s: float | None = None,
) -> Design:
    """Build the smallest fabric of a topology for so many chips, or say what the nearest legal one is."""
    kind = topology_name(topology)
    if num_chips < 1:
        raise ScenarioError(f"a fabric of {num_chips} chips", field="chips", hint="ask for 1 chip or more")
    ratios = read_oversubscription(oversubscription)
    shown_chip, home = machine(catalog, chip or ("" if server else chip_for(kind)), server)
    if kind in DIRECT:
        parts = Parts(
            chip=shown_chip,
            server=home,
            scale_up=catalog.link(home.scale_up_link) if home.scale_up_link else None,
        )
        fabric, notes = _direct(kind, num_chips, catalog, parts, sides)
        return Design(
            topology=kind, fabric=fabric, counts=counts(fabric), parts=parts, cuts=cuts(fabric), notes=notes
        )
    parts = network_parts(
        catalog, shown_chip, home, switch=switch, radix=radix, nic_bytes_per_s=nic_bytes_per_s, domain=domain,
        named=bool(server),
    )  # fmt: skip
    fabric, notes = _switched(kind, num_chips, parts, tiers, ratios, pod_chips)
    return Design(
        topology=kind,
        fabric=fabric,
        counts=counts(fabric),
        parts=parts,
        oversubscription=ratios,
        cuts=cuts(fabric),
        notes=(*notes, *(() if server or nic_bytes_per_s else port_note(parts))),
    )


def _switched(
    kind: str,
    num_chips: int,
    parts: Parts,
    tiers: int | None,
    ratios: tuple[float, ...],
    pod_chips: int | None,
) -> tuple[Fabric, tuple[str, ...]]:
    size = {"nvl72": 72, "hgx": 8}.get(kind, parts.num_domain)
    if kind in DOMAINS and parts.num_domain != size:
        raise ScenarioError(
            f"{parts.server.title} has scale-up domains of {parts.num_domain}, not {size}",
            field="chip",
            hint=f"leave {option('chip')} out, or name a chip of such a machine, e.g. gb200 or h100-sxm",
        )
    check_whole_domains(num_chips, size)
    if kind in DOMAINS and num_chips == size:
        return scale_up_domain(num_chips, parts.domain_wire), ("one scale-up domain, so it needs no network",)
    wire, radix = parts.access, parts.radix
    makers: dict[str, Callable[[], Fabric]] = {
        "tree": lambda: tree(num_chips, wire, radix=radix),
        "dragonfly": lambda: dragonfly(num_chips, wire, radix=radix),
        "dragonfly-plus": lambda: dragonfly_plus(num_chips, wire, radix=radix),
        "hyperx": lambda: hyperx_for(num_chips, wire, radix=radix),
    }
    if kind in {"rail-optimised", "rail-only"}:
        make = rail_optimised if kind == "rail-optimised" else rail_only
        fabric = make(
            num_chips, wire, parts.domain_wire, radix=radix, rails=size, tiers=tiers, oversubscription=ratios
        )
    else:
        flat = (
            makers[kind]()
            if kind in makers
            else clos(num_chips, wire, radix=radix, tiers=tiers, oversubscription=ratios, pod_chips=pod_chips)
        )
        fabric = with_scale_up(flat, size, parts.domain_wire) if size > 1 else flat
    _check_tiers(fabric, ratios)
    between = fabric.link_kind == FABRIC
    latency = np.where(between, parts.trunk_latency_s, fabric.link_latency_s)
    name = _name(kind, fabric, size, ratios)
    return msgspec.structs.replace(fabric, name=name, topology=kind, link_latency_s=latency), ()


def _check_tiers(fabric: Fabric, ratios: tuple[float, ...]) -> None:
    """A ratio is of a tier with another above it; one too many would say nothing."""
    tiers = getattr(fabric.shape, "num_levels", len(ratios) + 1)
    if set(ratios[max(0, tiers - 1) :]) - {1.0}:
        spoken = ", ".join(f"{ratio:g}:1" for ratio in ratios)
        raise ScenarioError(
            f"{spoken} speaks of {len(ratios) + 1} tiers, and {fabric.num_hosts:,} chips make {tiers}",
            field="oversubscription",
            hint=f"one ratio for each tier below the top, or {option('tiers', len(ratios) + 1)}",
        )


def _name(kind: str, fabric: Fabric, size: int, ratios: tuple[float, ...]) -> str:
    tiers = getattr(fabric.shape, "num_levels", 0)
    taper = "" if set(ratios) == {1.0} else f", {' then '.join(f'{ratio:g}:1' for ratio in ratios)}"
    match kind:
        case "fat-tree":
            return f"{tiers}-tier fat tree{taper}"
        case "clos":
            return f"{tiers}-tier Clos network{taper}"
        case "hgx" | "nvl72":
            return f"{fabric.num_hosts // size:,} domains of {size} under a {tiers}-tier fat tree{taper}"
        case "rail-optimised":
            return f"{tiers}-tier rail-optimised network{taper}"
        case _:
            return fabric.name


def _direct(
    kind: str, num_chips: int, catalog: Catalog, parts: Parts, sides: str
) -> tuple[Fabric, tuple[str, ...]]:
    wire, notes = _direct_wire(parts, kind, num_chips)
    if kind == "full-mesh":
        return full_mesh(num_chips, wire), notes
    if kind == "tpu-pod":
        pod = PODS.get(parts.chip.name)
        if pod is None:
            raise ScenarioError(
                f"{parts.chip.title} has no pods of cubes", field="chip", hint=f"one of {', '.join(PODS)}"
            )
        if sides and read_sides(sides) != pod.sides:
            return tpu_slice(read_sides(sides), wire, pod), notes
        whole = num_chips == pod.num_chips
        return (tpu_pod(pod, wire) if whole else tpu_slice(slice_for(num_chips, pod), wire, pod)), notes
    wrap = kind == "torus"
    del catalog
    if not sides:
        axes = 2 if parts.scale_up is not None and "2D" in parts.scale_up.note else 3
        return torus_for(num_chips, wire, axes=axes, wrap=wrap), notes
    given = read_sides(sides)
    if prod(given) != num_chips:
        raise ScenarioError(
            f"{sides} has {prod(given):,} chips, not {num_chips:,}",
            field="sides",
            hint=f"{option('chips', prod(given))}, or other sides",
        )
    return torus(given, wire, wrap=wrap), notes


def _direct_wire(parts: Parts, kind: str, num_chips: int) -> tuple[Wire, tuple[str, ...]]:
    """A link from chip to chip: the chip's own scale-up link, or its ports spread over all neighbours."""
    link = parts.scale_up
    if link is not None and not link.name.startswith(("nvlink", "pcie")):
        latency = link.latency_s if link.latency_s == link.latency_s else 0.0
        return Wire(link.bytes_per_s, latency), ()
    neighbours = max(num_chips - 1, 1) if kind == "full-mesh" else 6
    speed = parts.server.network_bytes_per_s_per_chip
    if not speed > 0:
        raise ScenarioError(
            f"{parts.chip.title} has no links for a {kind}",
            field="chip",
            hint="a TPU, or a chip with NICs",
        )
    note = f"{parts.chip.title} has no torus links: its network ports are spread over {neighbours} neighbours"
    return Wire(speed / neighbours, 1e-6), (note,)


def chip_for(topology: str) -> str:
    """The chip that a topology is usually made of."""
    return _USUAL_CHIP.get(topology_name(topology), USUAL_CHIP)


def topology_name(text: str) -> str:
    """The name of a topology in any spelling, or an error with the nearest."""
    folded = re.sub(r"[\s_]+", "-", text.strip().lower())
    name = OTHER_NAMES.get(folded, folded)
    if name not in TOPOLOGIES:
        close = nearest(name, TOPOLOGIES, 3)
        guess = f"did you mean: {', '.join(close)}?   " if close else ""
        raise ScenarioError(
            f'"{text}" is not a topology',
            field="on",
            hint=f"{guess}all of them: {', '.join(TOPOLOGIES)}",
        )
    return name


def read_oversubscription(text: str) -> tuple[float, ...]:
    """Down : up of each tier from the leaves, e.g. "3:1" or "1:1,7:1".

    >>> read_oversubscription("1:1, 7:1"), read_oversubscription("9:8")
    ((1.0, 7.0), (1.125,))
    """
    ratios = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*:\s*(\d+(?:\.\d+)?)\s*", part)
        if match is None or float(match[2]) == 0:
            raise ScenarioError(
                f'"{text}" is not an oversubscription',
                field="oversubscription",
                hint='write down:up for each tier, e.g. "1:1" or "1:1,7:1"',
            )
        ratio = float(match[1]) / float(match[2])
        if ratio < 1:
            raise ScenarioError(
                f"{part.strip()} has more bandwidth up than down",
                field="oversubscription",
                hint=f"did you mean {match[2]}:{match[1]}?",
            )
        ratios.append(ratio)
    return tuple(ratios)


def read_sides(text: str) -> tuple[int, ...]:
    """Sides of a torus, e.g. "16x16x24"."""
    parts = re.split(r"[x×*]", text.strip().lower())
    if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise ScenarioError(f'"{text}" are not the sides of a torus', field="sides", hint="e.g. 16x16x24")
    return tuple(int(part) for part in parts)
