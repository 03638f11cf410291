"""Published algorithms with a machine's own hop and rate, beside what NCCL runs.

Each is bounded, as NCCL's are, by what it sends over every narrow place; that is counted message by message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from datahall.fabric.collectives.algorithms import all_gather, all_reduce, all_to_all, rooted
from datahall.fabric.collectives.algorithms.bus import Collective, Number
from datahall.fabric.collectives.algorithms.sent import pat_steps, two_trees
from datahall.fabric.collectives.algorithms.steps import Domains, Phase, filled, phases
from datahall.fabric.collectives.crossing import Sends, crossed, crossing_s
from datahall.fabric.collectives.nccl import network
from datahall.fabric.collectives.system import System
from datahall.fabric.topology.cuts import Cut
from datahall.fabric.topology.graph import Ints

Model = Callable[..., Number]
Stepping = Callable[[int, Domains], Iterator[Phase]]  # of an array of one byte


def _stepped(collective: Collective, algorithm: str) -> Stepping:
    def sending(num_ranks: int, domains: Domains) -> Iterator[Phase]:
        yield from phases(collective, algorithm, num_ranks, 1.0, domains)

    return sending


def _first_ranks(domains: Domains) -> Ints:
    return np.asarray(np.cumsum(domains) - np.asarray(domains), dtype=np.int32)


def _numbers(counts: Sequence[int]) -> Ints:
    """0 so many times as the first says, 1 as the second …"""
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


def _along_trees(num_trees: int) -> Stepping:
    """Trees over domains, one rank of each for all of it, up and down."""

    def sending(_: int, domains: Domains) -> Iterator[Phase]:
        first = _first_ranks(domains)
        child, parent = (first[ends[: num_trees * (len(domains) - 1)]] for ends in two_trees(len(domains)))
        for source, target in ((child, parent), (parent, child)):
            yield Phase(name="tree", source=source, target=target, num_bytes=1.0 / num_trees)

    return sending


def _round_domains(num_bytes: Callable[[int], float]) -> Stepping:
    """From each domain to the next."""

    def sending(_: int, domains: Domains) -> Iterator[Phase]:
        first = _first_ranks(domains)
        yield Phase(name="ring", source=first, target=np.roll(first, -1), num_bytes=num_bytes(len(domains)))

    return sending


def _shifted(chunks: Callable[[int, int], int]) -> Stepping:
    """From every rank to those 1, 2, 4, … further, so many pieces each time."""

    def sending(num_ranks: int, _: Domains) -> Iterator[Phase]:
        rank, distance = np.arange(num_ranks, dtype=np.int32), 1
        while distance < num_ranks:
            pieces = chunks(num_ranks, distance) / num_ranks
            yield Phase(name="shift", source=rank, target=(rank + distance) % num_ranks, num_bytes=pieces)
            distance *= 2

    return sending


class Published(NamedTuple):
    """An algorithm: its closed form, and what it sends; None where that is a piece from each rank to each."""

    name: str
    model: Model
    sending: Stepping | None


_BRUCK = _shifted(lambda ranks, distance: min(distance, ranks - distance))
_PAT = _shifted(pat_steps)
FLAT: dict[str, tuple[Published, ...]] = {
    "all-reduce": (
        Published(
            "halving-doubling",
            all_reduce.halving_doubling_all_reduce_time,
            _stepped("all-reduce", "halving-doubling"),
        ),
        Published("double binary tree", all_reduce.double_binary_tree_all_reduce_time, _along_trees(2)),
        Published("pipelined tree", all_reduce.pipelined_tree_all_reduce_time, _along_trees(1)),
        Published("plain tree", all_reduce.tree_all_reduce_time, _stepped("all-reduce", "tree")),
    ),
    "all-gather": (
        Published("Bruck", all_gather.bruck_all_gather_time, _BRUCK),
        Published("PAT", all_gather.pat_all_gather_time, _PAT),
    ),
    "reduce-scatter": (
        Published("recursive halving", all_gather.halving_reduce_scatter_time, _BRUCK),
        Published("PAT", all_gather.pat_reduce_scatter_time, _PAT),
    ),
    "broadcast": (Published("tree", rooted.tree_broadcast_time, _stepped("broadcast", "tree")),),
    "reduce": (Published("tree", rooted.tree_reduce_time, _stepped("reduce", "tree")),),
}
TWO_LEVEL: dict[str, tuple[Published, ...]] = {
    "all-reduce": (
        Published(
            "two-level",
            all_reduce.two_level_all_reduce_time,
            _round_domains(lambda domains: 2.0 * (domains - 1) / domains),
        ),
        Published(
            "InfiniBand SHARP", all_reduce.infiniband_sharp_all_reduce_time, _round_domains(lambda _: 1.0)
        ),
    ),
    "all-to-all": (Published("hierarchical", all_to_all.hierarchical_all_to_all_time, None),),
}


class Textbook(NamedTuple):
    """A published algorithm and its time [s]."""

    name: str
    time_s: float


class Steps(NamedTuple):
    """What an all-reduce of ranks that are all alike takes: steps of one phase, of both, bytes on the busiest path."""

    name: str
    one_phase: float
    both: float
    num_bytes: float


def textbook_times(
    system: System, collective: Collective, size_bytes: float, num_ranks: int
) -> tuple[Textbook, ...]:
    """Times [s] of the closed forms of textbooks on this machine."""
    inside, domains = system.shape(num_ranks)
    near = system.inside.ll.hop_s
    rate = system.inside.simple.bytes_per_s
    hop, slowest = near, rate
    if domains > 1:
        across = network(system)
        hop = across.hop_s[2]
        slowest = min(rate, system.nic_bytes_per_s * inside * across.share[2])
    found = []
    for one in FLAT.get(collective, ()):
        time_s = float(one.model(size_bytes, float(num_ranks), hop_s=hop, bytes_per_s=slowest))
        over_s = size_bytes * _over_cuts_s(system, collective, num_ranks, one.sending)
        found.append(Textbook(one.name, max(time_s, over_s)))
    if domains > 1 and inside > 1:
        port = system.nic_bytes_per_s * network(system).share[2]
        for one in TWO_LEVEL.get(collective, ()):
            time_s = float(
                one.model(
                    size_bytes, float(num_ranks), hop_s=near, bytes_per_s=rate, num_domain=float(inside),
                    across_hop_s=hop, across_bytes_per_s=_port_rate(system, collective, num_ranks, one.sending, port),
                )
            )  # fmt: skip
            found.append(Textbook(one.name, time_s))
    return tuple(found)


def _port_rate(
    system: System, collective: Collective, num_ranks: int, sending: Stepping | None, port: float
) -> float:
    """What a port of a domain gets of the narrowest place that its bytes pass, or all of its own [B/s]."""
    inside, _ = system.shape(num_ranks)
    over_s = _over_cuts_s(system, collective, num_ranks, sending)
    each = (num_ranks - inside) / num_ranks  # of pieces
    if sending is not None:
        number = _numbers(filled(num_ranks, inside))
        each = (
            sum(_passing(phase, number, number) for phase in sending(num_ranks, filled(num_ranks, inside)))
            / inside
        )
    return min(port, each / over_s) if over_s > 0 else port


def _over_cuts_s(system: System, collective: Collective, num_ranks: int, sending: Stepping | None) -> float:
    """The time [s] that the narrowest place needs for each byte of the array."""
    narrow = crossed(system, num_ranks)
    if sending is None:
        return float(max((crossing_s(Sends(collective), 1.0, num_ranks, cut) for cut in narrow), default=0.0))
    domains = filled(num_ranks, system.shape(num_ranks)[0])
    number = _numbers(domains)
    return max(
        (
            sum(_passing_s(phase, number, cut) for phase in sending(num_ranks, domains))
            for cut in narrow
            if cut.sizes
        ),
        default=0.0,
    )


def _passing_s(phase: Phase, domain: Ints, cut: Cut) -> float:
    """How long the ways out of parts, and the links between two, take for a phase that goes over the network [s]."""
    part = _numbers([size for size, count in cut.sizes for _ in range(count)])[: domain.size]
    took = _passing(phase, part, domain) / cut.bytes_per_s
    if cut.pair_bytes_per_s > 0:
        took = max(took, _passing(phase, part, domain, between=True) / cut.pair_bytes_per_s)
    return took


def _passing(phase: Phase, part: Ints, domain: Ints, *, between: bool = False) -> float:
    """The most that leaves one part, or comes into one, or goes from one to another."""
    source, target = part[phase.source], part[phase.target]
    apart = (source != target) & (domain[phase.source] != domain[phase.target])
    columns = [source[apart], target[apart]]
    if between:
        columns = [np.unique(columns[0].astype(np.int64) * part.size + columns[1], return_inverse=True)[1]]
    most = max(int(np.bincount(column).max(initial=0)) for column in columns)
    return phase.num_bytes * phase.num_rounds * most


def all_reduce_steps(num_ranks: int, size_bytes: float) -> tuple[Steps, ...]:
    """O(n) against O(log n): both phases counted, and the bytes that decide for large arrays.

    >>> [(one.name, one.both) for one in all_reduce_steps(10_000, 1e9)]
    [('ring', 19998.0), ('double binary tree', 28.0), ('plain tree', 28.0)]
    """
    ring = float(all_reduce.ring_all_reduce_steps(float(num_ranks)))
    tree = float(all_reduce.tree_all_reduce_steps(float(num_ranks)))
    return (
        Steps("ring", ring / 2, ring, ring / num_ranks * size_bytes),
        Steps("double binary tree", tree / 2, tree, 2.0 * size_bytes),
        Steps("plain tree", tree / 2, tree, tree * size_bytes),
    )
