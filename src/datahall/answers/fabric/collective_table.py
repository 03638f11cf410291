"""The tables of a collective: its algorithms, the two phases counted, and the sizes at which it changes its mind."""

from __future__ import annotations

from collections.abc import Callable

from datahall.answer import Cell, Column, Table
from datahall.fabric.collectives.algorithms import all_gather, all_reduce, all_to_all, rooted
from datahall.fabric.collectives.algorithms.bus import Collective, Number, bus_bandwidth
from datahall.fabric.collectives.choice import Choice, spoken
from datahall.fabric.collectives.nccl import network
from datahall.fabric.collectives.system import System

Model = Callable[..., Number]
TEXTBOOK: dict[str, tuple[tuple[str, Model], ...]] = {
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


def steps_of(algorithm: str, collective: Collective, system: System, num_ranks: int) -> float:
    """Steps that follow one another: a ring counts ranks, a tree levels, a switch none."""
    inside, domains = system.shape(num_ranks)
    rounds = 2 if collective == "all-reduce" else 1
    if algorithm == "ring":
        return float(rounds * (num_ranks - 1))
    if algorithm in {"tree", "NVLS tree"}:
        local = inside - 1 if algorithm == "tree" else 1
        return float(2 * (local + (all_reduce.tree_depth(float(domains)) if domains > 1 else 0)))
    if algorithm == "PAT":
        return float(all_reduce.tree_depth(float(num_ranks)))
    return {"NVLS": 2.0, "direct": float(1 if collective == "send-recv" else num_ranks - 1)}.get(
        algorithm, 1.0
    )


def algorithms(found: Choice, system: System, *, every: bool) -> Table:
    """What NCCL has for it, and with `every` each protocol and what textbooks add."""
    chosen = (found.algorithm, found.protocol)
    rows: list[tuple[Cell, ...]] = []
    marked = None
    seen: set[str] = set()
    for one in found.candidates:
        pair = (one.algorithm, one.protocol)
        if not every and pair != chosen and (one.algorithm in seen or one.algorithm == found.algorithm):
            continue
        seen.add(one.algorithm)
        if pair == chosen:
            marked = len(rows)
        rows.append((spoken(pair), one.time_s, one.estimate_s, *_rates(found, one.time_s),
                     steps_of(one.algorithm, found.collective, system, found.num_ranks)))  # fmt: skip
    if every:
        rows += _textbook(found, system)
    return Table(
        title="algorithms",
        columns=(
            Column("algorithm"), Column("time", "s"), Column("NCCL thinks", "s"), Column("algbw", "bytes_per_s"),
            Column("busbw", "bytes_per_s"), Column("steps", "count"),
        ),
        rows=tuple(rows),
        marked=marked,
    )  # fmt: skip


def _rates(found: Choice, time_s: float) -> tuple[Cell, Cell]:
    if found.collective == "barrier":
        return None, None
    bus = float(bus_bandwidth(found.collective, found.size_bytes, time_s, float(found.num_ranks)))
    return found.size_bytes / time_s, bus


def _textbook(found: Choice, system: System) -> list[tuple[Cell, ...]]:
    """Closed forms that NCCL does not run, with the system's own hop and rate."""
    ranks = float(found.num_ranks)
    inside, domains = system.shape(found.num_ranks)
    own = system.inside.simple
    rows: list[tuple[Cell, ...]] = []
    if domains == 1:
        hop, rate = system.inside.ll.hop_s, own.bytes_per_s
    else:
        across = network(system)
        hop, rate = across.hop_s[2], min(own.bytes_per_s, system.nic_bytes_per_s * inside * across.share[2])
    for name, model in TEXTBOOK.get(found.collective, ()):
        time = float(model(found.size_bytes, ranks, hop_s=hop, bytes_per_s=rate))
        rows.append((f"{name} (textbook)", time, None, *_rates(found, time), None))
    if domains > 1 and inside > 1:
        across = network(system)
        local = {"hop_s": system.inside.ll.hop_s, "bytes_per_s": own.bytes_per_s, "num_domain": float(inside)}
        remote = {
            "across_hop_s": across.hop_s[2],
            "across_bytes_per_s": system.nic_bytes_per_s * across.share[2],
        }
        for name, model in TWO_LEVEL.get(found.collective, ()):
            time = float(model(found.size_bytes, ranks, **local, **remote))
            rows.append((f"{name} (textbook)", time, None, *_rates(found, time), None))
    return rows


def phases(found: Choice, system: System) -> tuple[Table, ...]:
    """O(n) against O(log n): both phases counted, and the bytes that decide for large arrays."""
    if found.collective != "all-reduce":
        return ()
    ranks = float(found.num_ranks)
    ring = float(all_reduce.ring_all_reduce_steps(ranks))
    tree = float(all_reduce.tree_all_reduce_steps(ranks))
    share = 2.0 * (ranks - 1.0) / ranks
    rows: tuple[tuple[Cell, ...], ...] = (
        ("ring", ring / 2, ring, share * found.size_bytes, "fewest bytes: wins for large arrays"),
        ("double binary tree", tree / 2, tree, 2.0 * found.size_bytes, "fewest steps: wins for small arrays"),
        ("plain tree", tree / 2, tree, tree * found.size_bytes, "whole arrays at each level"),
    )
    columns = (
        Column("of ranks alone"), Column("steps of one phase", "count"), Column("steps", "count"),
        Column("bytes on the busiest rank's path", "bytes"), Column("so"),
    )  # fmt: skip
    inside, _ = system.shape(found.num_ranks)
    note = f"{found.num_ranks:,} ranks as if all hops were alike; {inside} share a scale-up domain here"
    return (Table(title="steps: O(n) against O(log n)", columns=columns, rows=rows, note=note),)


def crossings(found: Choice) -> tuple[Table, ...]:
    """Sizes from which something else runs."""
    rows = tuple((one.size_bytes, one.before, one.after) for one in found.crossovers)
    if not rows:
        return ()
    columns = (Column("from", "bytes"), Column("instead of"), Column("runs"))
    return (Table(title="crossover sizes", columns=columns, rows=rows),)
