"""A fabric by name: the topology a person asks for, of the parts that the catalogue has.

design("fat-tree", 16384, catalog=catalog, chip="h100-sxm", oversubscription="1:1")
"""

from __future__ import annotations

import re

import msgspec
import numpy as np

from datahall.catalog import Catalog
from datahall.errors import ScenarioError, option
from datahall.fabric.design.parts import Parts, machine, network_parts, port_note
from datahall.fabric.design.topologies import Spec, Topology, topology_of_parts
from datahall.fabric.topology.counts import Counts, counts
from datahall.fabric.topology.cuts import Cut, cuts
from datahall.fabric.topology.graph import FABRIC, Fabric, Wire
from datahall.fabric.topology.scale_up import check_whole_domains
from datahall.fabric.topology.tpu_pod import PODS


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
    kind = topology_of_parts(topology)
    if num_chips < 1:
        raise ScenarioError(f"a fabric of {num_chips} chips", field="chips", hint="ask for 1 chip or more")
    ratios = read_oversubscription(oversubscription)
    shown_chip, home = machine(catalog, chip or ("" if server else kind.chip), server)
    if kind.kind == "direct":
        parts = Parts(
            chip=shown_chip,
            server=home,
            scale_up=catalog.link(home.scale_up_link) if home.scale_up_link else None,
        )
        fabric, notes = _direct(kind, num_chips, parts, read_sides(sides) if sides else ())
    else:
        parts = network_parts(
            catalog, shown_chip, home, switch=switch, radix=radix, nic_bytes_per_s=nic_bytes_per_s,
            domain=domain, named=bool(server),
        )  # fmt: skip
        fabric, notes = _switched(kind, num_chips, parts, tiers, ratios, pod_chips)
        notes = (*notes, *(() if server or nic_bytes_per_s else port_note(parts)))
    return Design(
        topology=kind.name,
        fabric=fabric,
        counts=counts(fabric),
        parts=parts,
        oversubscription=ratios,
        cuts=cuts(fabric),
        notes=notes,
    )


def _switched(
    kind: Topology,
    num_chips: int,
    parts: Parts,
    tiers: int | None,
    ratios: tuple[float, ...],
    pod_chips: int | None,
) -> tuple[Fabric, tuple[str, ...]]:
    size = kind.domain or parts.num_domain
    if parts.num_domain != size:
        raise ScenarioError(
            f"{parts.server.title} has scale-up domains of {parts.num_domain}, not {size}",
            field="chip",
            hint=f"leave {option('chip')} out, or name a chip of such a machine, e.g. gb200 or h100-sxm",
        )
    check_whole_domains(num_chips, size)
    spec = Spec(
        num_chips, parts.access, scale_up=parts.domain_wire if size > 1 else None, domain=size, radix=parts.radix,
        tiers=tiers, ratios=ratios, pod_chips=pod_chips,
    )  # fmt: skip
    fabric = kind.lay(spec)
    if kind.domain == num_chips:
        return fabric, ("one scale-up domain, so it needs no network",)
    _check_tiers(fabric, ratios)
    between = fabric.link_kind == FABRIC
    latency = np.where(between, parts.trunk_latency_s, fabric.link_latency_s)
    name = _name(kind.name, fabric, size, ratios)
    return msgspec.structs.replace(fabric, name=name, topology=kind.name, link_latency_s=latency), ()


def _check_tiers(fabric: Fabric, ratios: tuple[float, ...]) -> None:
    """A ratio is of a tier with another above it; one too many would say nothing."""
    tiers = getattr(fabric.shape, "num_levels", len(ratios) + 1)
    if set(ratios[max(0, tiers - 1) :]) - {1.0}:
        spoken = ", ".join(f"{ratio:g}:1" for ratio in ratios)
        fitting = ",".join(f"{ratio:g}:1" for ratio in ratios[: tiers - 1]) or "1:1"
        raise ScenarioError(
            f"{spoken} speaks of {len(ratios) + 1} tiers, and {fabric.num_hosts:,} chips make {tiers}",
            field="oversubscription",
            hint=f"one ratio for each tier below the top: {option('oversubscription', fitting)}",
        )


def _name(kind: str, fabric: Fabric, size: int, ratios: tuple[float, ...]) -> str:
    tiers = getattr(fabric.shape, "num_levels", 0)
    taper = "" if set(ratios) == {1.0} else f", {' then '.join(f'{ratio:g}:1' for ratio in ratios)}"
    match kind:
        case "fat-tree":
            return f"{tiers}-tier fat tree{taper}"
        case "clos" | "leaf-spine":
            return f"{tiers}-tier Clos network{taper}"
        case "hgx" | "nvl72":
            return f"{fabric.num_hosts // size:,} domains of {size} under a {tiers}-tier fat tree{taper}"
        case "rail-optimised":
            return f"{tiers}-tier rail-optimised network{taper}"
        case _:
            return fabric.name


def _direct(
    kind: Topology, num_chips: int, parts: Parts, sides: tuple[int, ...]
) -> tuple[Fabric, tuple[str, ...]]:
    wire, notes = _direct_wire(parts, kind.name, num_chips)
    pod = PODS.get(parts.chip.name)
    if kind.name == "tpu-pod" and pod is None:
        raise ScenarioError(
            f"{parts.chip.title} has no pods of cubes", field="chip", hint=f"one of {', '.join(PODS)}"
        )
    axes = 2 if parts.scale_up is not None and "2D" in parts.scale_up.note else 3
    return kind.lay(Spec(num_chips, wire, sides=sides, axes=axes, pod=pod)), notes


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
