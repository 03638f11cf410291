"""The time of one collective on one machine, whatever joins its chips: what runs, why so long, what binds.

On switches it is what NCCL runs; on a torus it is buckets along the axes.  Either takes at least what the narrowest
place needs for the bytes that must cross it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isclose, prod
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from datahall.breakdown import Band, Breakdown, derived, given, maximum, product, quotient, total
from datahall.cluster.cluster import Cluster
from datahall.cluster.groups import leaving_fraction, machine_times
from datahall.counted import counted
from datahall.errors import ScenarioError, option
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.collectives.algorithms.table import closed_form, num_steps
from datahall.fabric.collectives.algorithms.torus import HOP_S, between_slices, group_axes, torus_steps
from datahall.fabric.collectives.choice import (
    Candidate,
    Choice,
    band_name,
    choose_collective,
    collective_times,
)
from datahall.fabric.collectives.constants import library
from datahall.fabric.collectives.crossing import (
    Crossing,
    Sends,
    crossed,
    crossing,
    crossing_s,
    floor_s,
    sends_on,
)
from datahall.fabric.collectives.figure import LEFT, Ask, Told
from datahall.fabric.collectives.textbook import Steps, all_reduce_steps
from datahall.fabric.collectives.torus_figure import ON_A_TORUS, check_on_torus, torus_algorithm, torus_form
from datahall.fabric.collectives.ways import Way, ways
from datahall.fabric.topology.cuts import Cut
from datahall.scenario.idle import does_nothing
from datahall.scenario.words import LEVELS
from datahall.silicon.calibration import weakest

SMALLEST_BYTES, LARGEST_BYTES, POINTS = 1e3, 64e9, 120
MOSTLY = 0.5  # of the time
TORUS_BAND = "two published figures of a TPU v5e"
BAND = "eight of ten public runs of such a machine fell in it"


class Bound(NamedTuple):
    """What a time is made of most: waiting, one of the links, or a narrow place of the fabric."""

    kind: Literal["latency", "scale-up", "NIC", "links", "cut"]
    cut: Cut | None = None
    passing: Crossing | None = None  # what passes it


class Curve(NamedTuple):
    """Times [s] over sizes [B]."""

    name: str
    size_bytes: tuple[float, ...]
    time_s: tuple[float, ...]


class CollectiveTime(msgspec.Struct, frozen=True, kw_only=True):
    """One collective on one machine."""

    choice: Choice
    figure: Breakdown
    bound: Bound
    num_steps: float
    ratios: tuple[float, float]  # measured over predicted at P10 and P90
    curves: tuple[Curve, ...]  # as it runs, and with each algorithm alone
    ways: tuple[Way, ...] = ()  # on switches: all of NCCL's and of textbooks
    phases: tuple[Steps, ...] = ()  # of an all-reduce on switches
    same_array_s: dict[Collective, float] = {}  # on a torus: the time of each collective

    @property
    def band(self) -> Band:
        """The range in which eight of ten runs are expected; never below what the narrowest place lets through."""
        assert self.figure.band is not None
        return self.figure.band


def time_collective(
    cluster: Cluster, collective: Collective, array: Breakdown | float, *, only: Iterable[str] = ()
) -> CollectiveTime:
    """The answer for one array [B] among all chips of a machine; `only` limits NCCL to some of its algorithms.

    Chips fill scale-up domains in order.  A figure says where the size of the array is from; a number is a given one.
    """
    cluster = msgspec.structs.replace(cluster, system=cluster.system.filled(cluster.num_chips))
    size = array if isinstance(array, Breakdown) else given("array", array, "bytes")
    if cluster.system.torus:
        return _on_torus(cluster, collective, size)
    system, ranks = cluster.system, cluster.num_chips
    found = choose_collective(system, collective, size.value, ranks, only=only)
    told = closed_form(Ask(system, cluster.wires, collective, size, ranks), found.algorithm, found.protocol)
    band = library().bands[band_name(system, ranks)]
    floor = floor_s(system, collective, found.size_bytes, ranks, found.algorithm)
    figure = _figure(cluster, found, size, told).with_band(*band, BAND, floor=floor)
    return CollectiveTime(
        choice=found,
        figure=figure.with_note(basis=found.level),
        bound=_bound(cluster, found, told),
        num_steps=num_steps(system, collective, found.algorithm, ranks),
        ratios=band,
        curves=_curves(cluster, found),
        ways=ways(system, found),
        phases=all_reduce_steps(ranks, found.size_bytes) if collective == "all-reduce" else (),
    )


def refuse_on_torus(cluster: Cluster, names: Iterable[str]) -> None:
    """Inputs that speak of NCCL say nothing of a torus."""
    for name in names:
        if cluster.system.torus:
            raise ScenarioError(
                does_nothing(name, "NCCL does not run on a torus"),
                field=name,
                hint=f"leave {option(name)} out",
            )


def check_level(cluster: Cluster, asked: str | None) -> None:
    """Refuse a level of constants that the network between domains has none of: weaker ones do not stand in."""
    system, ranks = cluster.system, cluster.num_chips
    if asked is None or system.torus or system.across is None:
        return
    found = system.level(ranks)
    if weakest((found, LEVELS[asked])) != LEVELS[asked]:
        raise ScenarioError(
            f"the network of {cluster.chip.name} has no {asked} constants: those of {system.fabric} are {found}, of "
            f"{system.across.fitted_on}",
            field="level",
            hint=f"leave {option('level')} out, or at most {option('chips', system.num_domain)}",
        )


def _on_torus(cluster: Cluster, collective: Collective, size: Breakdown) -> CollectiveTime:
    system, ranks, link = cluster.system, cluster.num_chips, cluster.system.torus_link
    system.shape(ranks)  # one chip sends to nobody
    check_on_torus(collective, cluster.design.topology if cluster.design is not None else "torus")
    group = group_axes(system.torus, ranks, 1, wrapped=link.wrapped if link else None)
    told = _among_neighbours(cluster, collective, size, ranks, 1)
    time, waiting = (
        float(machine_times(system, collective, np.array([moved]), ranks)[0]) for moved in (size.value, 0.0)
    )
    band = library().bands["torus"]
    algorithm = torus_algorithm(collective)
    found = Choice(
        collective=collective,
        size_bytes=size.value,
        num_ranks=ranks,
        algorithm=algorithm,
        protocol="",
        time_s=time,
        latency_s=waiting,
        level="datasheet only",
        candidates=(Candidate(algorithm, "", time, None),),
        crossovers=(),
    )
    return CollectiveTime(
        choice=found,
        figure=_figure(cluster, found, size, told)
        .with_band(*band, TORUS_BAND, floor=floor_s(system, collective, size.value, ranks))
        .with_note(basis="datasheet only"),
        bound=_bound(cluster, found, told, links=True),
        num_steps=float(torus_steps(collective, group)),
        ratios=band,
        curves=_curves(cluster, found),
        same_array_s=_same_array(cluster, size.value),
    )


def _figure(cluster: Cluster, found: Choice, size: Breakdown, told: Told) -> Breakdown:
    """The closed form, or the narrow place where that takes longer."""
    name = f"{found.collective} of {found.num_ranks:,} ranks"
    crossings = [
        _crossing(cluster, found, size, cut)
        for cut in crossed(cluster.system, found.num_ranks)
        if crossing(_sends(cluster, found), found.num_ranks, cut)[0]
    ]
    return maximum(name, [told.figure, *crossings]) if crossings else told.figure.named(name)


def _sends(cluster: Cluster, found: Choice) -> Sends:
    """What runs: one of NCCL's algorithms, or on a torus the best that can."""
    algorithm = None if cluster.system.torus else found.algorithm
    return sends_on(cluster.system, found.collective, algorithm, found.num_ranks)


def _crossing(cluster: Cluster, found: Choice, size: Breakdown, cut: Cut) -> Breakdown:
    sends, wires = _sends(cluster, found), cluster.wires
    passing = crossing(sends, found.num_ranks, cut)
    share, width = passing.share, passing.bytes_per_s
    fraction = cut.left_fraction if width == cut.bytes_per_s else 1.0
    if passing.between:
        fraction = cut.pair_left_fraction
    how = "the least that any algorithm moves there"
    if sends.algorithm is not None:
        how = f"what {sends.algorithm} sends there"
    place, way, moved = f"out of a {cut.name}", f"way out of a {cut.name}", f"bytes that leave a {cut.name}"
    if passing.between:
        place = f"from a {cut.name} to the next"
        way, moved = f"links {place}", f"bytes {place}"
    leaving = product(moved, [size, derived("passes of it", share, "ratio", note=how)], "bytes")
    speed = cut.link_bytes_per_s
    same = (leaf for leaf in (wires.nic, wires.scale_up) if leaf is not None and isclose(leaf.value, speed))
    link = next(same, derived("a link out of it", speed, "bytes_per_s"))
    num_links, chips = width / fraction / speed, counted(cut.num_below, "chip")
    links = "links from one to the next" if passing.between else "links out of it"
    if not isclose(
        num_links, round(num_links)
    ):  # a domain that hangs on several leaves has a share of their links
        links, chips = f"{links}, in the mean", f"{chips}, of all that share them"
    count = derived(links, num_links, "count", note=f"for {chips}")
    left = (derived(LEFT, fraction, "fraction"),) if fraction < 1.0 else ()
    return quotient(place, leaving, product(way, [count, link, *left], "bytes_per_s"), "s")


def _bound(cluster: Cluster, found: Choice, told: Told, *, links: bool = False) -> Bound:
    narrowest = max(
        crossed(cluster.system, found.num_ranks),
        key=lambda cut: crossing_s(_sends(cluster, found), 1.0, found.num_ranks, cut),
        default=None,
    )
    if narrowest is not None and found.time_s > told.figure.value * (1.0 + 1e-9):
        return Bound("cut", narrowest, crossing(_sends(cluster, found), found.num_ranks, narrowest))
    if found.latency_s >= MOSTLY * found.time_s:
        return Bound("latency")
    if links and told.across_s <= told.inside_s:
        return Bound("links")
    return Bound("NIC" if told.across_s > told.inside_s else "scale-up")


def _curves(cluster: Cluster, found: Choice) -> tuple[Curve, ...]:
    """Times over sizes: as it runs, and with each algorithm alone."""
    sizes = np.geomspace(SMALLEST_BYTES, LARGEST_BYTES, POINTS)
    columns = tuple(sizes.tolist())
    times = machine_times(cluster.system, found.collective, sizes, found.num_ranks)
    if cluster.system.torus:
        return (Curve(found.algorithm, columns, tuple(times.tolist())),)
    drawn = [Curve("as NCCL chooses", columns, tuple(times.tolist()))]
    for name in dict.fromkeys(one.algorithm for one in found.candidates):
        alone, _ = collective_times(cluster.system, found.collective, sizes, found.num_ranks, only=(name,))
        drawn.append(Curve(name, columns, tuple(alone.tolist())))
    return tuple(drawn)


def _same_array(cluster: Cluster, size_bytes: float) -> dict[Collective, float]:
    """Times [s] of every collective of a torus for an array of one size."""
    return {
        kind: float(machine_times(cluster.system, kind, np.array([size_bytes]), cluster.num_chips)[0])
        for kind in ON_A_TORUS
    }


def group_figure(
    cluster: Cluster, collective: Collective, size: Breakdown, num_ranks: int, stride: int = 1
) -> Breakdown:
    """The time of a collective among ranks `stride` apart, as `groups.group_times` computes it, as a chain."""
    near = msgspec.structs.replace(cluster, system=cluster.system.apart(stride))
    if cluster.system.torus:
        told = _among_neighbours(cluster, collective, size, num_ranks, stride)
        found = _chosen(collective, size, num_ranks, "", "")
    else:
        _, pairs = collective_times(near.system, collective, size.value, num_ranks)
        told = closed_form(
            Ask(near.system, cluster.wires, collective, size, num_ranks, grouped=True), *pairs[0]
        )
        found = _chosen(collective, size, num_ranks, *pairs[0])
    return _figure(near, found, size, told)


def stage_figure(cluster: Cluster, size: Breakdown, num_stages: int, chips: int) -> Breakdown:
    """A message from each stage of so many chips to the next in the mean, as `groups.stage_times` computes it."""
    leaving = float(leaving_fraction(cluster.system, np.array([num_stages]), np.array([chips]))[0])
    inside = group_figure(cluster, "send-recv", size, 2, chips)
    if leaving == 0.0:
        return inside
    across = group_figure(cluster, "send-recv", size, 2, max(chips, cluster.system.num_domain))
    if leaving == 1.0:
        return across
    how = f"{num_stages} stages of {counted(chips, 'chip')}, domains of {cluster.system.num_domain}"
    return total(
        "send-recv between stages",
        [
            product(
                "to another domain", (derived("share of neighbours", leaving, "fraction", how), across), "s"
            ),
            product("inside a domain", (derived("the others", 1.0 - leaving, "fraction", how), inside), "s"),
        ],
    )


def _chosen(collective: Collective, size: Breakdown, num_ranks: int, algorithm: str, protocol: str) -> Choice:
    """What runs among some ranks, without what else might."""
    return Choice(
        collective=collective, size_bytes=size.value, num_ranks=num_ranks, algorithm=algorithm, protocol=protocol,
        time_s=0.0, latency_s=0.0, level="", candidates=(), crossovers=(),
    )  # fmt: skip


def _among_neighbours(
    cluster: Cluster, collective: Collective, size: Breakdown, num_ranks: int, stride: int
) -> Told:
    """A group on the axes of a torus, and over the network where it spans several slices."""
    system, link = cluster.system, cluster.system.torus_link
    group = group_axes(system.torus, num_ranks, stride, wrapped=link.wrapped if link else None)
    links = derived("links of a chip", 2 * len(system.torus), "count", note="two an axis")
    one = (
        cluster.wires.scale_up
        if link
        else quotient("a link, one way", cluster.wires.scale_up, links, "bytes_per_s")
    )
    told = torus_form(collective, size, group, link=one, hop_s=link.hop_s if link else HOP_S)
    if group.num_slices == 1 or cluster.wires.nic is None:
        return told
    share = between_slices(collective, group)
    how = f"among {group.num_slices} slices of {counted(prod(group.axes), 'chip')}"
    passing = product(
        "bytes of a chip", [size, derived("share of the array", share, "ratio", note=how)], "bytes"
    )
    across = quotient("over the network", passing, cluster.wires.nic, "s")
    parts = [told.figure.named("inside a slice"), across]
    if MOVES[collective].on_torus == "buckets":
        return told._replace(figure=total("closed form", parts), across_s=across.value)
    if not group.axes:  # each rank is in a slice of its own
        return Told(across.named("closed form"), 0.0, across.value)
    return told._replace(figure=maximum("closed form", parts), across_s=across.value)
