"""Published algorithms that NCCL does not run, with a machine's own hop and rate, beside what it does run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from datahall.fabric.collectives.algorithms import all_gather, all_reduce, all_to_all, rooted
from datahall.fabric.collectives.algorithms.bus import Collective, Number
from datahall.fabric.collectives.nccl import network
from datahall.fabric.collectives.system import System

Model = Callable[..., Number]
FLAT: dict[str, tuple[tuple[str, Model], ...]] = {
    "all-reduce": (
        ("halving-doubling", all_reduce.halving_doubling_all_reduce_time),
        ("double binary tree", all_reduce.double_binary_tree_all_reduce_time),
        ("pipelined tree", all_reduce.pipelined_tree_all_reduce_time),
        ("plain tree", all_reduce.tree_all_reduce_time),
    ),
    "all-gather": (
        ("Bruck", all_gather.bruck_all_gather_time),
        ("PAT", all_gather.pat_all_gather_time),
    ),
    "reduce-scatter": (
        ("recursive halving", all_gather.halving_reduce_scatter_time),
        ("PAT", all_gather.pat_reduce_scatter_time),
    ),
    "broadcast": (("tree", rooted.tree_broadcast_time),),
    "reduce": (("tree", rooted.tree_reduce_time),),
}
TWO_LEVEL: dict[str, tuple[tuple[str, Model], ...]] = {
    "all-reduce": (
        ("two-level", all_reduce.two_level_all_reduce_time),
        ("InfiniBand SHARP", all_reduce.infiniband_sharp_all_reduce_time),
    ),
    "all-to-all": (("hierarchical", all_to_all.hierarchical_all_to_all_time),),
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
    found = [
        Textbook(name, float(model(size_bytes, float(num_ranks), hop_s=hop, bytes_per_s=slowest)))
        for name, model in FLAT.get(collective, ())
    ]
    if domains > 1 and inside > 1:
        far = {"across_hop_s": hop, "across_bytes_per_s": system.nic_bytes_per_s * network(system).share[2]}
        found += [
            Textbook(
                name,
                float(
                    model(
                        size_bytes,
                        float(num_ranks),
                        hop_s=near,
                        bytes_per_s=rate,
                        num_domain=float(inside),
                        **far,
                    )
                ),
            )
            for name, model in TWO_LEVEL.get(collective, ())
        ]
    return tuple(found)


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
