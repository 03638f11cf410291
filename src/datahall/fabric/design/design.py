"""A fabric as it is asked for: a topology of the parts that the catalogue has, with what it counts."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from datahall.catalog import Catalog
from datahall.counted import counted
from datahall.errors import ScenarioError, option
from datahall.fabric.collectives.crossing import Crossing, Sends, crossing
from datahall.fabric.design.lay import LAYING, Spec
from datahall.fabric.design.parts import Parts, parts_of, port_note
from datahall.fabric.design.tiers import check_tiers
from datahall.fabric.design.topologies import Topology, topology_of_parts
from datahall.fabric.topology.counts import Counts, counts
from datahall.fabric.topology.cuts import Cut, cuts
from datahall.fabric.topology.graph import FABRIC, Fabric, Wire
from datahall.fabric.topology.grids.tpu_pod import PODS
from datahall.fabric.topology.scale_up import check_whole_domains
from datahall.scenario.sections.fabric import FabricDesign
from datahall.units import fmt

ONE_DOMAIN = "one scale-up domain, so it needs no network"


class Narrow(NamedTuple):
    """A narrow place, and what of an all-to-all passes it."""

    cut: Cut
    passing: Crossing

    @property
    def each_bytes_per_s(self) -> float:
        """What it leaves each chip."""
        return self.passing.bytes_per_s / self.passing.share


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """A fabric, what it is made of and what it counts."""

    topology: str
    fabric: Fabric
    counts: Counts
    parts: Parts
    cuts: tuple[Cut, ...] = ()  # where it is narrow
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> Topology:
        """Its row in the table of topologies."""
        return topology_of_parts(self.topology)

    @property
    def injection_bytes_per_s(self) -> float:
        """What one chip can send into the network, one way."""
        half = self.counts.num_hosts / 2
        full = self.counts.full_bisection_fraction
        return self.counts.bisection_bytes_per_s / (full * half) if full else 0.0

    @property
    def all_to_all_bytes_per_s(self) -> float:
        """What each chip gets when all send to all: of its port, or of the narrowest place, as a collective has it.

        Each of the m chips of a part sends (N − m)/N of what it has out of it, R = width · N / (m (N − m)), and m/N to
        another part, R = links between the two · N / m².
        """
        return min((self.injection_bytes_per_s, *(narrow.each_bytes_per_s for narrow in self._places())))

    @property
    def narrowest(self) -> Narrow | None:
        """The place that binds an all-to-all; None where the ports of the chips do."""
        found = min(self._places(), key=lambda narrow: narrow.each_bytes_per_s, default=None)
        binds = found is not None and found.each_bytes_per_s < 0.999 * self.injection_bytes_per_s
        return found if binds else None

    def _places(self) -> list[Narrow]:
        hosts = self.counts.num_hosts
        found = [Narrow(cut, crossing(Sends("all-to-all"), hosts, cut)) for cut in self.cuts]
        return [narrow for narrow in found if narrow.passing.share > 0]


def design(asked: FabricDesign, catalog: Catalog, *, pod_chips: int | None = None) -> Design:
    """Build the smallest fabric of a topology for so many chips, or say what the nearest legal one is."""
    kind = topology_of_parts(asked.topology)
    parts = parts_of(asked, catalog)
    if kind.kind == "direct":
        fabric, notes = _direct(kind, asked, parts)
    else:
        fabric, notes = _switched(kind, asked, parts, pod_chips)
        notes = (*notes, *(() if asked.server or asked.nic_bytes_per_s else port_note(parts)))
    return Design(
        topology=kind.name,
        fabric=fabric,
        counts=counts(fabric),
        parts=parts,
        cuts=cuts(fabric),
        notes=notes,
    )


def _switched(
    kind: Topology, asked: FabricDesign, parts: Parts, pod_chips: int | None
) -> tuple[Fabric, tuple[str, ...]]:
    size, num_chips = parts.num_domain, asked.chips or 0
    _check_domains(asked, num_chips, size)
    check_tiers(asked, parts, num_chips)
    inside = Wire(parts.chip.scale_up_bytes_per_s, parts.domain_latency_s) if size > 1 else None
    spec = Spec(
        asked, num_chips, Wire(parts.port_bytes_per_s, parts.access_latency_s), scale_up=inside, domain=size,
        radix=parts.radix, pod_chips=pod_chips,
    )  # fmt: skip
    fabric = LAYING[kind.name](spec)
    if kind.domain == num_chips:
        return fabric, (ONE_DOMAIN,)
    between = fabric.link_kind == FABRIC
    # where a tier may be tapered, its ratio says how wide it is beside the ports of the chips
    wide = fabric.link_bytes_per_s if kind.tapered else parts.trunk_bytes_per_s
    laid = msgspec.structs.replace(
        fabric,
        name=_name(kind, fabric, size, asked.ratios),
        topology=kind.name,
        link_bytes_per_s=np.where(between, wide, fabric.link_bytes_per_s),
        link_latency_s=np.where(between, parts.trunk_latency_s, fabric.link_latency_s),
    )
    return laid, _uplink_note(kind, laid, parts)


def _uplink_note(kind: Topology, fabric: Fabric, parts: Parts) -> tuple[str, ...]:
    """Of a plain tree, how many share an uplink: that follows from the switch, which a NIC's rate chooses."""
    if kind.name != "tree" or fabric.num_tiers < 2 or parts.switch is None:
        return ()
    trunk = fmt(parts.trunk_bytes_per_s, "bytes_per_s", 3)
    return (
        f"a plain tree has one uplink a switch: {parts.radix - 1} chips share {trunk} one way, as the "
        f"{parts.radix} ports of {parts.switch.title} have it; of more ports, more would",
    )


def _check_domains(asked: FabricDesign, num_chips: int, size: int) -> None:
    """Chips fill their domains; where somebody chose the domain, it is that which does not fit."""
    try:
        check_whole_domains(num_chips, size)
    except ScenarioError as error:
        if asked.domain is None:
            raise
        sizes = [n for n in range(1, num_chips + 1) if num_chips % n == 0]
        below, above = max(n for n in sizes if n < size), min((n for n in sizes if n > size), default=0)
        near = " or ".join(option("domain", n) for n in (below, above) if n)
        raise ScenarioError(error.message, field="domain", hint=f"{near}; of chips, {error.hint}") from error


def _name(kind: Topology, fabric: Fabric, size: int, ratios: tuple[float, ...]) -> str:
    if not kind.title:
        return fabric.name
    taper = "" if set(ratios) == {1.0} else f", {' then '.join(f'{ratio:g}:1' for ratio in ratios)}"
    domains = f"{counted(fabric.num_hosts // size, 'domain')} of {size}"
    return kind.title.format(tiers=fabric.num_tiers, domains=domains) + taper


def _direct(kind: Topology, asked: FabricDesign, parts: Parts) -> tuple[Fabric, tuple[str, ...]]:
    num_chips = asked.chips or 0
    wire, notes = _direct_wire(parts, kind, num_chips, len(asked.sides) or parts.num_axes)
    if kind.meshed and not notes and num_chips > parts.num_domain:
        raise ScenarioError(
            f"{parts.chip.title} has links to {parts.num_domain - 1} others, not to {num_chips - 1:,}",
            field="chips",
            hint=f"a full mesh of it joins at most {option('chips', parts.num_domain)}",
        )
    pod = PODS.get(parts.chip.name)
    if kind.cubes and pod is None:
        raise ScenarioError(
            f"{parts.chip.title} has no pods of cubes", field="chip", hint=f"one of {', '.join(PODS)}"
        )
    return LAYING[kind.name](Spec(asked, num_chips, wire, axes=parts.num_axes, pod=pod)), notes


def _direct_wire(parts: Parts, kind: Topology, num_chips: int, num_axes: int) -> tuple[Wire, tuple[str, ...]]:
    """A link from chip to chip: the chip's own scale-up link, or its ports spread over all neighbours."""
    link = parts.scale_up
    if link is not None and link.is_direct:
        latency = link.latency_s if link.latency_s == link.latency_s else 0.0
        return Wire(link.bytes_per_s, latency), ()
    neighbours = max(num_chips - 1, 1) if kind.meshed else 2 * num_axes
    speed = parts.server.network_bytes_per_s_per_chip
    if not speed > 0:
        raise ScenarioError(
            f"{parts.chip.title} has no links for a {kind.name}",
            field="chip",
            hint="a TPU, or a chip with NICs",
        )
    note = f"{parts.chip.title} has no torus links: its network ports are spread over {neighbours} neighbours"
    return Wire(speed / neighbours, 1e-6), (note,)
