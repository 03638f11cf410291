"""The tables of a collective: its algorithms, the two phases counted, and the sizes at which it changes its mind."""

from __future__ import annotations

from datahall.answer import Cell, Column, Table
from datahall.cluster.collective import CollectiveTime
from datahall.fabric.collectives.algorithms.table import spoken
from datahall.fabric.collectives.choice import Choice
from datahall.fabric.collectives.system import System


def algorithms(found: CollectiveTime, *, every: bool) -> Table:
    """What NCCL has for it, the fastest first, and with `every` each protocol and what textbooks add.

    Without, it has the best of each algorithm, what was chosen and what NCCL thinks comes next.
    """
    choice = found.choice
    chosen = spoken((choice.algorithm, choice.protocol))
    kept = {chosen, *runner_up(choice)}
    rows: list[tuple[Cell, ...]] = []
    marked = None
    seen = {choice.algorithm}
    for index, way in enumerate(found.ways):
        own = not way.is_textbook
        if not every and index and not (own and (way.name in kept or way.algorithm not in seen)):
            continue
        seen.add(way.algorithm)
        if own and way.name == chosen:
            marked = len(rows)
        rows.append((way.name if own else f"{way.name} (textbook)", way.time_s, way.estimate_s,
                     way.algbw_bytes_per_s, way.busbw_bytes_per_s, way.num_steps))  # fmt: skip
    return Table(
        title="algorithms",
        columns=(
            Column("algorithm"), Column("time", "s"), Column("NCCL thinks", "s"), Column("algbw", "bytes_per_s"),
            Column("busbw", "bytes_per_s"), Column("steps", "count"),
        ),
        rows=tuple(rows),
        marked=marked,
    )  # fmt: skip


def runner_up(found: Choice) -> tuple[str, ...]:
    """What NCCL would take next by its own estimates, if it has any."""
    chosen = spoken((found.algorithm, found.protocol))
    others = [
        (one.estimate_s, name)
        for one in found.candidates
        if one.estimate_s is not None and (name := spoken((one.algorithm, one.protocol))) != chosen
    ]
    return (min(others)[1],) if others else ()


def phases(found: CollectiveTime, system: System) -> tuple[Table, ...]:
    """O(n) against O(log n): both phases counted, and the bytes that decide for large arrays."""
    if not found.phases:
        return ()
    why = {
        "ring": "fewest bytes: wins for large arrays",
        "double binary tree": "fewest steps: wins for small arrays",
        "plain tree": "whole arrays at each level",
    }
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (one.name, one.one_phase, one.both, one.num_bytes, why[one.name]) for one in found.phases
    )
    columns = (
        Column("of ranks alone"), Column("steps of one phase", "count"), Column("steps", "count"),
        Column("bytes on the busiest rank's path", "bytes"), Column("so"),
    )  # fmt: skip
    ranks = found.choice.num_ranks
    inside, _ = system.shape(ranks)
    note = f"{ranks:,} ranks as if all hops were alike; {inside} share a scale-up domain here"
    return (Table(title="steps: O(n) against O(log n)", columns=columns, rows=rows, note=note),)


def crossings(found: Choice) -> tuple[Table, ...]:
    """Sizes from which something else runs."""
    rows = tuple((one.size_bytes, one.before, one.after) for one in found.crossovers)
    if not rows:
        return ()
    columns = (Column("from", "bytes"), Column("instead of"), Column("runs"))
    return (Table(title="crossover sizes", columns=columns, rows=rows),)


def every_collective(found: CollectiveTime) -> Table:
    """The same array with every collective that a torus has."""
    return Table(
        title="the same array",
        columns=(Column("collective"), Column("time", "s")),
        rows=tuple(found.same_array_s.items()),
        marked=list(found.same_array_s).index(found.choice.collective),
    )
