"""The tables of a collective: its algorithms, the two phases counted, and the sizes at which it changes its mind."""

from __future__ import annotations

from datahall.answer import Cell, Column, Table
from datahall.cluster.cluster import Cluster
from datahall.cluster.collective import same_array
from datahall.fabric.collectives.algorithms.bus import bus_bandwidth
from datahall.fabric.collectives.choice import Choice, spoken
from datahall.fabric.collectives.nccl import num_steps
from datahall.fabric.collectives.system import System
from datahall.fabric.collectives.textbook import all_reduce_steps, textbook_times


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
                     num_steps(system, found.collective, one.algorithm, found.num_ranks)))  # fmt: skip
    if every:
        rows += [
            (f"{one.name} (textbook)", one.time_s, None, *_rates(found, one.time_s), None)
            for one in textbook_times(system, found.collective, found.size_bytes, found.num_ranks)
        ]
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


def phases(found: Choice, system: System) -> tuple[Table, ...]:
    """O(n) against O(log n): both phases counted, and the bytes that decide for large arrays."""
    if found.collective != "all-reduce":
        return ()
    why = {
        "ring": "fewest bytes: wins for large arrays",
        "double binary tree": "fewest steps: wins for small arrays",
        "plain tree": "whole arrays at each level",
    }
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (one.name, one.one_phase, one.both, one.num_bytes, why[one.name])
        for one in all_reduce_steps(found.num_ranks, found.size_bytes)
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


def every_collective(cluster: Cluster, found: Choice) -> Table:
    """The same array with every collective that a torus has."""
    times = same_array(cluster, found.size_bytes)
    return Table(
        title="the same array",
        columns=(Column("collective"), Column("time", "s")),
        rows=tuple(times.items()),
        marked=list(times).index(found.collective),
    )
