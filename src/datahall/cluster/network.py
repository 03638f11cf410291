"""What a design leaves collectives: domains, ports, narrow places, and less of them where parts have failed."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose, isfinite, prod
from typing import NamedTuple

import msgspec
import numpy as np

from datahall.breakdown import Breakdown, derived, fact, product, quotient
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.server import Server
from datahall.catalog.fact import Fact
from datahall.errors import InfeasibleError, ScenarioError, UnsupportedError, option
from datahall.fabric.collectives.algorithms.torus import HOP_S
from datahall.fabric.collectives.figure import LEFT, Wires
from datahall.fabric.collectives.system import System, TorusLink, part_filled, system_of
from datahall.fabric.design.design import Design
from datahall.fabric.flows.failures import compared, each_of, failed, ports, shares_of_ports
from datahall.fabric.topology.cuts import Cut, cuts
from datahall.fabric.topology.graph import SCALE_UP as SCALE_UP_LINK
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.grids.tpu_pod import Pod, slice_shapes, tpu_slice
from datahall.scenario.sections.failure import Failure

SCALE_UP = "scale-up links of a chip, one way"
NAMED = 5  # endpoints that an error names
DOMAIN = "scale-up domain"


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """The system of a design, and its links with where their rates are from."""

    system: System
    wires: Wires


def network_of_design(
    made: Design,
    failures: Sequence[Failure] = (),
    *,
    catalog: Catalog,
    version: tuple[int, int],
    level: str | None = None,
    num_ranks: int,
) -> Network:
    """The system that collectives run on, on a design of which some parts may be out.

    `num_ranks`: the first so many chips take part, and what failed of the others is nobody's; 0: any may.
    """
    if made.kind.meshed and made.counts.num_hosts > made.parts.num_domain:
        raise UnsupportedError(
            f"collectives on a full mesh of ports are not modelled, only of the links of {made.parts.num_domain} chips",
            field="on",
            hint=f"at most {option('chips', made.parts.num_domain)}, or {option('on', 'fat-tree')}",
        )
    ranks = num_ranks or made.counts.num_hosts
    fabric = left_by(made.fabric, failures, ranks)
    port = made.parts.port
    shares = _ports_left(made.fabric, fabric, ranks) if failures else PortsLeft()
    share = shares.whole_fraction
    rate = made.injection_bytes_per_s * share if port is not None and made.counts.num_switches else 0.0
    if not isfinite(rate):
        rate = 0.0
    system = system_of(
        made.parts.chip,
        num_domain=made.parts.num_domain,
        nic_bytes_per_s=rate,
        fabric=port.technology if port is not None else "",
        version=version,
        level=level,
        catalog=catalog,
    )
    system = msgspec.structs.replace(
        system,
        ports_left_fraction=share,
        cuts=_cuts_left(made, fabric, shares, ranks) if failures else made.cuts,
    )
    nic = None
    if rate:
        nic = port_leaf(made.parts.chip, made.parts.server, made.injection_bytes_per_s)
    if nic is not None and share < 1.0:
        nic = _left(
            nic, share, "of the ports of the worst-off scale-up domain, of which a slow one keeps its part"
        )
    link, near = scale_up_leaf(made.parts.chip), _scale_up_share(made.fabric, fabric)
    if near < 1.0:
        system = system.with_scale_up(near)
        link = _left(link, near, "of the worst-off scale-up link")
    if made.fabric.traits.grid:
        return Network(system=_on_torus(system, made.fabric), wires=Wires(_torus_leaf(made)))
    return Network(system=system, wires=Wires(link, nic))


def scale_up_leaf(chip: Chip) -> Breakdown:
    """A chip's links into its scale-up domain, one way."""
    return _leaf(chip.facts.get("scale_up_bytes_per_s"), SCALE_UP, chip.scale_up_bytes_per_s)


def _torus_leaf(made: Design) -> Breakdown:
    """One link between two neighbours of a torus."""
    link, speed = made.parts.scale_up, float(made.fabric.link_bytes_per_s.max(initial=0.0))
    known = link.facts.get("bytes_per_s") if link is not None else None
    return _leaf(known if known is not None and known.value == speed else None, "a link, one way", speed)


def _leaf(known: Fact | None, name: str, value: float) -> Breakdown:
    if known is None:
        return derived(name, value, "bytes_per_s")
    return fact(name, known.value, known.unit, known.source, note=known.note)


def left_by(fabric: Fabric, failures: Sequence[Failure], num_ranks: int) -> Fabric:
    """The fabric with all failed parts out that its first chips use; whom they cut off is an `InfeasibleError`."""
    after = fabric
    for failure in failures:
        try:
            after = failed(after, failure)
        except ScenarioError as error:
            error.field = "failure"
            raise
    if not failures:
        return fabric
    after = _without_nobodys(fabric, after, num_ranks)
    gone = compared(fabric, after).cut_off
    gone = gone[gone < num_ranks]
    last = _ports_left(fabric, after, num_ranks)
    if not gone.size and last.num_last and last.last_fraction <= 0:
        gone = np.arange(num_ranks - last.num_last, num_ranks, dtype=np.int32)
    if gone.size:
        named = ", ".join(str(one) for one in gone[:NAMED].tolist()) + (" …" if gone.size > NAMED else "")
        raise InfeasibleError(
            f"the failure cuts off {gone.size:,} of {num_ranks:,} chips: {named}",
            field="failure",
            hint="a collective waits for every chip: leave those out, or take a fabric with a second way",
        )
    if _scale_up_share(fabric, after) <= 0:
        raise InfeasibleError(
            "the failure takes the scale-up links of a domain, so its chips no longer reach each other",
            field="failure",
            hint="a part that keeps a share of its bandwidth is possible, e.g. left = 50 %",
        )
    apart = next((cut for cut in cuts(after) if cut.bytes_per_s <= 0), None)
    if apart is not None and not _reach_each_other(after, num_ranks):
        raise InfeasibleError(
            f"the failure cuts a {apart.name} of {apart.num_below:,} chips off the rest",
            field="failure",
            hint="no way out of it is left",
        )
    return after


def _reach_each_other(fabric: Fabric, num_ranks: int) -> bool:
    """Whether links that work join the first chips, be it through the ports of others of their scale-up domains."""
    works = fabric.link_bytes_per_s > 0
    source, target = fabric.link_source[works], fabric.link_target[works]
    group = np.arange(fabric.num_nodes)
    while True:
        least = group.copy()
        np.minimum.at(least, source, group[target])
        np.minimum.at(least, target, group[source])
        if np.array_equal(least, group):
            return bool((group[:num_ranks] == group[0]).all())
        group = least


def _without_nobodys(before: Fabric, after: Fabric, num_ranks: int) -> Fabric:
    """The fabric with what failed of chips that take no part, and of leaves that have none but those, as it was.

    Where chips forward for each other those matter to the others, and so do switches that others' ways lead through.
    """
    if num_ranks >= before.num_hosts or not before.num_switches:
        return after
    idle = np.zeros(before.num_nodes, np.bool_)
    idle[num_ranks : before.num_hosts] = True
    if not before.traits.has_transit_leaves:
        held = before.link_target[before.link_source < before.num_hosts]
        used = before.link_target[before.link_source < num_ranks]
        idle[np.setdiff1d(held, used)] = True
    nobodys = idle[before.link_source] | idle[before.link_target]
    speed = np.where(nobodys, before.link_bytes_per_s, after.link_bytes_per_s)
    return msgspec.structs.replace(after, link_bytes_per_s=speed)


class PortsLeft(NamedTuple):
    """What failures leave of the ports of the worst-off full domain, and of a last one that its ranks do not fill."""

    whole_fraction: float = 1.0
    last_fraction: float = 1.0
    num_last: int = 0  # ranks in a domain that is not full, where there are others


def _ports_left(before: Fabric, after: Fabric, num_ranks: int) -> PortsLeft:
    """Chips share the ports of those of their scale-up domain that take part; inside one domain nobody needs them."""
    own = before.domain == before.domain[num_ranks - 1]
    size, last = int(own.sum()), int(own[:num_ranks].sum())
    if before.scale_up_start < 0 or last in {size, num_ranks}:
        last = 0
    full, rest = slice(num_ranks - last), slice(num_ranks - last, num_ranks)
    whole = [float(np.min(shares_of_ports(one)[full])) for one in (after, before)]
    if not last:
        return PortsLeft(whole[0] / whole[1])
    few = [
        float(each_of(np.minimum(*ports(one))[rest], np.zeros(last, np.int32))[0]) for one in (after, before)
    ]
    return PortsLeft(whole[0] / whole[1], few[0] / few[1], last)


def _cuts_left(made: Design, fabric: Fabric, shares: PortsLeft, num_ranks: int) -> tuple[Cut, ...]:
    """The narrow places after a failure, each with what it leaves; the ports of a domain are one where some are out."""

    def left(cut: Cut) -> float:
        alike = [one for one in made.cuts if one.name == cut.name]
        return min(
            cut.bytes_per_s / min(one.bytes_per_s for one in alike),
            cut.bytes_per_s / cut.num_below / min(one.bytes_per_s / one.num_below for one in alike),
            1.0,
        )

    def left_between(cut: Cut) -> float:
        alike = [
            one.pair_bytes_per_s for one in made.cuts if one.name == cut.name and one.pair_bytes_per_s > 0
        ]
        return min(1.0, cut.pair_bytes_per_s / min(alike)) if alike else 1.0

    found = [
        msgspec.structs.replace(cut, left_fraction=left(cut), pair_left_fraction=left_between(cut))
        for cut in cuts(fabric)
        if cut.bytes_per_s > 0
    ]
    # whom a dead place holds has other ways, through their domain's ports; the places like it are still as narrow
    dead = {cut.name for cut in cuts(fabric) if cut.bytes_per_s <= 0}
    found += [cut for cut in made.cuts if cut.name in dead]
    size, port, share = made.parts.num_domain, made.injection_bytes_per_s, shares.whole_fraction
    if share < 1.0 and made.parts.port is not None:
        found.insert(
            0,
            Cut(
                name=DOMAIN, num_below=size, num_full=size, bytes_per_s=size * port * share,
                link_bytes_per_s=port, left_fraction=share,
            ),
        )  # fmt: skip
    if shares.num_last and min(share, shares.last_fraction) < 1.0:
        found.append(part_filled(shares.num_last, num_ranks, port, shares.last_fraction))
    return tuple(found)


def _scale_up_share(before: Fabric, after: Fabric) -> float:
    """What is left of the scale-up links of the chip that lost most; of a mesh those out leave their part to others."""
    if before.traits.grid:
        return 1.0  # chips wired to their neighbours: what is left has other ways round
    links = before.link_kind == SCALE_UP_LINK
    share = after.link_bytes_per_s[links] / before.link_bytes_per_s[links]
    if before.num_switches:
        return float(share.min(initial=1.0))
    return float(each_of(share, before.link_source[links]).min(initial=1.0))


def _on_torus(system: System, fabric: Fabric) -> System:
    """Chips are numbered with the last axis fastest, groups with the first, so the sides are turned round."""
    return msgspec.structs.replace(
        system,
        torus=tuple(reversed(fabric.traits.grid)),
        num_domain=fabric.num_hosts,
        torus_link=TorusLink(
            bytes_per_s=float(fabric.link_bytes_per_s.max(initial=0.0)),
            hop_s=max(float(fabric.link_latency_s.max(initial=0.0)), HOP_S),
            wrapped=fabric.traits.is_closed,
        ),
    )


def part_of(system: System, made: Design, num_chips: int) -> System:
    """The system of some chips of a design: of a TPU pod the slice that its optical switches make of them.

    That is a torus of whole cubes, or a mesh inside one.  Chips that no slice has, and those of any other design, are
    the first ones, joined as they stand.
    """
    part = msgspec.structs.replace(system, cuts=tuple(cut.within(num_chips) for cut in system.cuts))
    link = system.torus_link
    if not made.kind.cubes or link is None or not 1 < num_chips < made.counts.num_hosts:
        return part
    first, second, third = sorted(system.torus)
    pod = Pod(name=made.parts.chip.name, sides=(first, second, third), largest=(first, second, third))
    shapes = [shape for shape in slice_shapes(pod) if prod(shape) == num_chips]
    if not shapes:
        return part
    fabric = tpu_slice(min(shapes, key=max), Wire(link.bytes_per_s, link.hop_s), pod)
    worse = (cut for cut in part.cuts if cut.left_fraction < 1.0)  # a slice may have to take what failed
    return msgspec.structs.replace(_on_torus(part, fabric), cuts=(*worse, *cuts(fabric)))


def port_leaf(chip: Chip, server: Server, rate: float) -> Breakdown:
    """A chip's share of the network, one way, unless somebody says it: a fact of the chip or of its server."""
    name = "network of a chip, one way"
    own = chip.facts.get("nic_bytes_per_s")
    if own is not None and isclose(own.value, rate):
        return fact(name, own.value, own.unit, own.source, note=own.note).unless_said("nic")
    known = [server.facts[key] for key in ("num_nics", "nic_bytes_per_s", "num_chips") if key in server.facts]
    if len(known) < 3 or not isclose(server.network_bytes_per_s_per_chip, rate):
        return derived(name, rate, "bytes_per_s", f"the ports of {server.title}").unless_said("nic")
    nics, speed, chips = (fact(one.label, one.value, one.unit, one.source, note=one.note) for one in known)
    whole = product("network of a server, one way", [nics, speed], "bytes_per_s")
    return quotient(name, whole, chips, "bytes_per_s").unless_said("nic")


def _left(whole: Breakdown, share: float, of: str) -> Breakdown:
    """What failures leave of something."""
    return product(
        f"{whole.name}, after the failure", [whole, derived(LEFT, share, "fraction", note=of)], whole.unit
    )
