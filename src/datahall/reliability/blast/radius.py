"""The parts of a fabric that fail, and what each takes of it.

A chip that fails takes its node, which one operating system drives: eight chips of an HGX server, a tray of four in an
NVL72, a machine of four in a TPU pod and with it the cube of 64 whose copper cannot be rewired.  What nodes share takes
all of them: the switch trays and the backplane of a scale-up domain of several hosts, a rack's power shelves, its
coolant.  Cables and switches of the network take nobody who has another way, and slow those who share what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np

from datahall.breakdown import Breakdown, given
from datahall.catalog import Catalog
from datahall.fabric.design.bill import has_circuit_switches
from datahall.fabric.design.design import Design
from datahall.fabric.flows.failures import BlastRadius, blast_radius
from datahall.fabric.topology.graph import ACCESS, FABRIC
from datahall.fabric.topology.grids.sides import CUBE_SIDE
from datahall.fabric.topology.grids.tpu_pod import CUBE_CHIPS, crosses_cubes, num_circuit_switches
from datahall.reliability.asked import process_asked
from datahall.reliability.blast.part import Part
from datahall.reliability.blast.rates import Rates
from datahall.reliability.process import SHOCK, Cause
from datahall.reliability.survival import survivals
from datahall.scenario.sections.failure import Failure
from datahall.scenario.sections.operations.failures import FailureRates

TRAY_CHIPS = 8  # for each tray of switches of a scale-up domain: an NVL72 has nine of two switch chips each
# switches and what they meet in, where the links of a domain are not NVLink
OTHERWISE = {"nvlink-switch": "scale-up switch tray", "backplane": "scale-up backplane"}
OF_CIRCUITS, OF_PACKETS = (
    ("ici-cable", "ocs"),
    ("nic", "optics", "switch"),
)  # the parts of networks that have a row
OCS_LINKS = 64  # cables that pass one optical circuit switch of 128 ports


def blast_parts(made: Design, asked: FailureRates, catalog: Catalog) -> tuple[Part, ...]:
    """Every part of a fabric whose failures somebody counted or estimated, those of a node first."""
    rates = rates_of(made, asked, catalog)
    network = _circuits(made, rates) if has_circuit_switches(made) else _packets(made, rates)
    return (
        *_of_nodes(made, rates),
        *_of_racks(made, rates),
        *_of_domains(made, rates),
        *_shocks(made, asked, rates),
        *network,
    )


def rates_of(made: Design, asked: FailureRates, catalog: Catalog) -> Rates:
    """The failures of all chips of a fabric."""
    chip, server = made.parts.chip, made.parts.server
    return Rates(
        process=process_asked(asked, chip, catalog, made.counts.num_hosts, server=server),
        catalog=catalog,
        stated=asked.failure_rate_per_node_day is not None,
    )


def without_row(made: Design, rates: Rates) -> tuple[Cause, ...]:
    """Causes that blame a part of a network which stands in no row: this one has none of it, or nobody knows where."""
    of_network = OF_CIRCUITS if has_circuit_switches(made) else OF_PACKETS if _has_switches(made) else ()
    those = (one for one in rates.catalog.components() if one.takes == "network" and not one.part_of)
    return tuple(cause for one in those if one.name not in of_network for cause in rates.blamed(one.name))


def _of_nodes(made: Design, rates: Rates) -> Iterator[Part]:
    """What takes its node, and where chips are wired to each other all of a cube."""
    process, lost = rates.process, _taken_with_node(made)
    called = {"chip": _chip_word(made), "host": _node_word(made, process.num_node_chips)}
    alone = ("node", "nodes") if _joins_hosts(made) else ("node", "nodes", "domain")
    for one in rates.catalog.components():
        if one.part_of or one.in_rack or one.takes not in alone:
            continue
        name, by_chip = called.get(one.name, one.title), one.per == "chip"
        in_node = process.num_node_chips if by_chip else 1
        rate = rates.of_causes(f"failures of a {name} per day", one.name, in_node)
        if rate is not None:
            num = made.counts.num_hosts if by_chip else process.num_nodes
            yield Part(name=name, num=num, rate=rate, num_lost=lost, out=rates.out(one.name))


def _chip_word(made: Design) -> str:
    chip = made.parts.chip
    return "TPU" if chip.family == "tpu" else "GPU" if chip.vendor in ("NVIDIA", "AMD") else "chip"


def _node_word(made: Design, size: int) -> str:
    word = "tray" if made.parts.server.form == "rack" else "machine" if made.kind.cubes else "server"
    return f"{word} of {size}"


def stops_all(made: Design) -> bool:
    """Whether chips are wired to their neighbours alone: a torus with a hole is none, and nothing can close it."""
    return made.kind.kind == "direct" and not made.kind.meshed and not has_circuit_switches(made)


def _taken_with_node(made: Design) -> int:
    """Chips that go when one of a node does."""
    if has_circuit_switches(made):
        return CUBE_CHIPS
    if stops_all(made):
        return made.counts.num_hosts
    return min(made.parts.server.num_host_chips, made.counts.num_hosts)


def _of_racks(made: Design, rates: Rates) -> Iterator[Part]:
    """What a node has for itself, or shares with all nodes of its rack: power and cooling."""
    process = rates.process
    shared = process.num_rack_nodes if (racked := process.num_rack_nodes > 1) else 1
    num_racks = ceil(process.num_nodes / shared)
    lost = min(made.parts.server.num_chips, made.counts.num_hosts) if racked else _taken_with_node(made)
    for one in rates.catalog.components():
        if one.part_of or not (one.in_rack or one.takes == "rack"):
            continue
        part = rates.catalog.component(one.in_rack) if racked and one.in_rack else one
        rate = rates.of_shared(f"failures of one {part.title} per day", one.name, shared)
        if rate is not None:
            yield Part(name=part.title, num=num_racks, rate=rate, num_lost=lost, out=rates.out(part.name))


def _of_domains(made: Design, rates: Rates) -> Iterator[Part]:
    """What joins the chips of a scale-up domain beyond one host: trays of switches, and what they meet in."""
    inside, size = made.parts.scale_up, min(made.parts.num_domain, made.counts.num_hosts)
    if not _joins_hosts(made) or inside is None:
        return
    num_domains, nodes = ceil(made.counts.num_hosts / size), size / rates.process.num_node_chips
    for one in rates.catalog.components():
        if one.part_of or one.takes != "domain":
            continue
        each = ceil(made.parts.num_domain / TRAY_CHIPS) if one.name == "nvlink-switch" else 1
        name = one.title if inside.technology == "nvlink" else OTHERWISE.get(one.name, one.title)
        told = f"failures of one {name} per day"
        rate = rates.of_causes(told, one.name, each / nodes)
        if rate is None and "rate_per_day" in one.facts:
            rate = rates.of_part(told, one.name)
        if rate is not None:
            yield Part(name=name, num=each * num_domains, rate=rate, num_lost=size, out=rates.out(one.name))


def _joins_hosts(made: Design) -> bool:
    """Whether switches join the chips of several hosts into one scale-up domain."""
    inside = made.parts.scale_up
    return is_beyond_host(made) and inside is not None and inside.wiring == "switched"


def is_beyond_host(made: Design) -> bool:
    """Whether a scale-up domain has chips of several hosts, none of which is there without what joins them."""
    return made.parts.server.num_host_chips < min(made.parts.num_domain, made.counts.num_hosts)


def _shocks(made: Design, asked: FailureRates, rates: Rates) -> Iterator[Part]:
    """What nodes share on top, as somebody says."""
    for cause in rates.process.causes:
        if cause.is_shock:
            rate = given("shock rate", asked.shock_rate_per_day, "per_day", field="shock_rate")
            lost = cause.num_nodes_lost * rates.process.num_node_chips
            yield Part(
                name=cause.name,
                num=ceil(rates.process.num_nodes / cause.num_nodes_lost),
                rate=rate,
                num_lost=max(min(lost, made.counts.num_hosts), _taken_with_node(made)),
                out=rates.out(SHOCK),
            )


def _has_switches(made: Design) -> bool:
    """Whether chips have a network of packets beyond their domain."""
    return made.parts.switch is not None and made.counts.num_switches > 0


def _packets(made: Design, rates: Rates) -> Iterator[Part]:
    """NICs, cables and switches of a network of packets."""
    fabric, found = made.fabric, {one.part: one for one in survivals(made, rates.catalog)}
    if not _has_switches(made):
        return
    port = found.pop("NIC")
    rate = rates.of_causes("failures of a NIC per day", "nic", rates.process.num_node_chips)
    if rate is not None:
        yield _slowing("NIC", made.counts.num_hosts, rate, rates.out("nic"), port.blast, port.reroute_s)
    switches = [one for name, one in found.items() if name.endswith("switch")]
    around = switches[0].reroute_s
    cable = rates.of_part("failures of a cable per day", "optics")
    out = rates.out_until_repaired("optics")
    for name, kind in (("cable of a NIC", ACCESS), ("cable between switches", FABRIC)):
        links = np.flatnonzero(fabric.link_kind == kind)
        if links.size:
            blast = blast_radius(fabric, Failure(links=(int(links[0]),)))
            yield _slowing(name, links.size // 2, cable, out, blast, around)
    for one, num in zip(switches, made.counts.switches_by_tier, strict=True):
        rate = rates.of_part(f"failures of a {one.part} per day", "switch")
        yield _slowing(one.part, num, rate, rates.out("switch"), one.blast, one.reroute_s)


def _circuits(made: Design, rates: Rates) -> Iterator[Part]:
    """Cables inside cubes and between them, and optical circuit switches."""
    fabric, around = made.fabric, rates.catalog.reroute("optical-circuit").reroute_s
    optical = crosses_cubes(fabric, fabric.traits.grid)
    inside, between = (~optical).sum() // 2, optical.sum() // 2
    cable = rates.of_part("failures of a cable per day", "ici-cable")
    out = rates.out("ici-cable")
    yield Part(name="cable in a cube", num=int(inside), rate=cable, num_lost=CUBE_CHIPS, out=out)
    one = blast_radius(fabric, Failure(links=(int(np.flatnonzero(optical)[0]),)))
    yield _slowing("cable between cubes", int(between), cable, out, one, around)
    several = blast_radius(fabric, Failure(links=_through_one_switch(made)))
    num = num_circuit_switches(fabric.num_hosts // CUBE_CHIPS)
    rate = rates.of_part("failures of an optical circuit switch per day", "ocs")
    yield _slowing("optical circuit switch", num, rate, rates.out("ocs"), several, around)


def _through_one_switch(made: Design) -> tuple[int, ...]:
    """The cables that pass one optical circuit switch: one place on the faces of all cubes, along one axis."""
    fabric = made.fabric
    _, middle, last = fabric.traits.grid
    source, target = fabric.link_source, fabric.link_target
    place = (source // last % middle % CUBE_SIDE == 0) & (source % last % CUBE_SIDE == 0)
    along = ((target - source) % (middle * last) == 0) & (source < target)
    links = np.flatnonzero(crosses_cubes(fabric, fabric.traits.grid) & place & along)
    return tuple(links[:OCS_LINKS].tolist())


def _slowing(
    name: str, num: int, rate: Breakdown, out: Breakdown, blast: BlastRadius, reroute_s: float
) -> Part:
    """A part of a network: whom it cuts off, whom it slows and by how much."""
    return Part(
        name=name,
        num=num,
        rate=rate,
        num_lost=blast.num_cut_off,
        num_slowed=blast.num_slowed,
        slowed_chips=float((1.0 - blast.share_left[blast.slowed]).sum()),
        out=out,
        reroute_s=reroute_s,
    )
