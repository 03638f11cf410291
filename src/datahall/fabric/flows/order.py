"""Who waits for whom: the rounds of a job's phases as rows, each with the rows that must have ended before it
starts.

Alike: all rounds of a phase are one row per flow, and a phase starts when the one before has ended
everywhere.  That is exact while rates stay the same, for the longest chain through a ring stays at its
slowest hop.  In full a row is sent in each round anew, and waits only for the last round in which its sender
had a part.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from datahall.fabric.collectives.algorithms.steps import Phase
from datahall.fabric.topology.graph import Floats, Ints, Longs, Paths, select

JOIN = -1  # a row that carries nothing and ends when all it waits for has ended
MOST_WAITS = 4  # rows that a send waits for by itself; more meet in a join of their rank


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Rows as they were written; `wait_s` is a pause before a row."""

    phase: Ints
    member: Ints  # which flow of the phase
    num_rounds: Ints  # that one row stands for
    num_times: Ints  # that a row is sent, round after round
    sender: (
        Ints  # rank and phase of who sends a row several times, as one number; -1 for a row that is sent once
    )
    receiver: Ints
    wait_s: Floats
    after: Ints
    after_offsets: Longs


class _Sheet:
    """Rows as they are written down."""

    def __init__(self) -> None:
        self.rows: list[tuple[Ints, Ints, Ints, Ints, int, int, float]] = []
        self.after: list[Ints] = []
        self.num_after: list[Ints] = []
        self.size = 0

    def write(
        self,
        phase: int,
        num_rows: int,
        after: Ints,
        num_after: Ints,
        *,
        num_rounds: int = 1,
        num_times: int = 1,
        ends: tuple[Ints, Ints] | None = None,
        wait_s: float = 0.0,
    ) -> Ints:
        member = np.arange(num_rows, dtype=np.int32)
        sender, receiver = ends or (np.full(num_rows, -1, np.int32),) * 2
        self.rows.append(
            (np.full(num_rows, phase, np.int32), member, sender, receiver, num_rounds, num_times, wait_s)
        )
        self.after.append(after.astype(np.int32, copy=False))
        self.num_after.append(num_after)
        self.size += num_rows
        return member + np.int32(self.size - num_rows)

    def order(self) -> Order:
        sizes = [member.size for _, member, *_ in self.rows]

        def column(values: list[float], kind: type) -> Ints:
            return np.repeat(np.asarray(values, kind), sizes)

        return Order(
            phase=_joined([phase for phase, *_ in self.rows]),
            member=_joined([member for _, member, *_ in self.rows]),
            num_rounds=column([rounds for *_, rounds, _, _ in self.rows], np.int32),
            num_times=column([times for *_, times, _ in self.rows], np.int32),
            sender=_joined([sender for _, _, sender, *_ in self.rows]),
            receiver=_joined([receiver for _, _, _, receiver, *_ in self.rows]),
            wait_s=column([wait_s for *_, wait_s in self.rows], float).astype(float),
            after=_joined(self.after),
            after_offsets=np.concatenate([[0], np.cumsum(_joined(self.num_after), dtype=np.int64)]),
        )


def alike_order(phases: Sequence[Phase], repeat: int, pause_s: float, *, in_step: bool = False) -> Order:
    """One row per flow of each phase, and a join between phases.

    `in_step` it is sent in every round, which begins when all have the one before: with rates that stay the same each
    lasts as long as the first, and all together as long as the one row that stands for them.
    """
    sheet = _Sheet()
    join = np.empty(0, np.int32)
    for turn in range(repeat):
        for index, phase in enumerate(phases):
            size = phase.source.size
            together = np.full(size, turn * len(phases) + index, np.int32), np.full(size, -1, np.int32)
            rows = sheet.write(
                index, size, np.repeat(join, size), np.full(size, join.size, np.int32),
                num_rounds=1 if in_step else phase.num_rounds, num_times=phase.num_rounds if in_step else 1,
                ends=together if in_step and phase.num_rounds > 1 else None,
                wait_s=pause_s if turn and not index else 0.0,
            )  # fmt: skip
            join = sheet.write(JOIN, 1, rows, np.array([size], np.int32))
    return sheet.order()


def full_order(phases: Sequence[Phase], num_ranks: int, repeat: int, pause_s: float) -> Order:
    """One row per flow of each phase, sent in every round; it waits for the last one that its sender had a part in."""
    sheet = _Sheet()
    # rank r's last round: rows[starts[r]:starts[r + 1]]
    rows, starts = np.empty(0, np.int32), np.zeros(num_ranks + 1, np.int64)
    for turn in range(repeat):
        for index, phase in enumerate(phases):
            ranks = np.concatenate([phase.source, phase.target])
            by_rank = np.argsort(ranks, kind="stable")
            part = np.bincount(ranks, minlength=num_ranks)
            after, num_after = _of(rows, starts, phase.source)
            shift = np.int32((turn * len(phases) + index) * num_ranks)
            new = sheet.write(
                index, phase.source.size, after, num_after, num_times=phase.num_rounds,
                ends=(phase.source + shift, phase.target + shift) if phase.num_rounds > 1 else None,
                wait_s=pause_s if turn and not index else 0.0,
            )  # fmt: skip
            rows, starts = _next(rows, starts, np.concatenate([new, new])[by_rank], part)
            if ranks.size > MOST_WAITS * num_ranks:
                after, num_after = _of(rows, starts, np.arange(num_ranks))
                rows = sheet.write(JOIN, num_ranks, after, num_after)
                starts = np.arange(num_ranks + 1)
    sheet.write(JOIN, 1, rows, np.array([rows.size], np.int32))
    return sheet.order()


def folded(split: list[Phase], paths: Paths) -> tuple[list[Phase], Longs, Floats]:
    """Phases with one flow for those that are sent several times between the same ends the same way.

    With them the row of each flow that is left, and for how many each row stands.
    """
    num_alike, fewer, kept, first = np.ones(paths.num_flows), [], [np.empty(0, np.int64)], 0
    for phase in split:
        size = phase.source.size
        rows = np.arange(first, first + size)
        first += size
        if phase.num_rounds > 1:
            rows, count = _distinct(phase, paths, rows)
            num_alike[rows] = count
        some = rows - (first - size)
        fewer.append(msgspec.structs.replace(phase, source=phase.source[some], target=phase.target[some]))
        kept.append(rows)
    return fewer, np.concatenate(kept), num_alike


def _distinct(phase: Phase, paths: Paths, rows: Longs) -> tuple[Longs, Longs]:
    """The first of the rows of each way between two ends, and how many there are."""
    hops = paths.hops[rows]
    way = np.full((rows.size, int(hops.max(initial=0)) + 2), -1, np.int32)
    way[:, 0], way[:, 1] = phase.source, phase.target
    links = select(paths, rows).links
    owner = np.repeat(np.arange(rows.size), hops)
    way[owner, 2 + np.arange(links.size) - np.repeat(np.cumsum(hops) - hops, hops)] = links
    _, one, count = np.unique(way, axis=0, return_index=True, return_counts=True)
    order = np.argsort(one)
    return rows[one[order]], count[order]


def _of(rows: Ints, starts: Longs, ranks: Ints | Longs) -> tuple[Ints, Ints]:
    """The rows of some ranks, and how many each has."""
    count = starts[ranks + 1] - starts[ranks]
    shift = np.repeat(starts[ranks] - (np.cumsum(count) - count), count)
    return rows[shift + np.arange(shift.size)], count.astype(np.int32)


def _next(rows: Ints, starts: Longs, new: Ints, part: Longs) -> tuple[Ints, Longs]:
    """Ranks that had a part in this round have its rows now, the others keep theirs."""
    if part.all():
        return new, np.concatenate([[0], np.cumsum(part)])
    old = np.where(part > 0, 0, np.diff(starts))
    kept, _ = _of(rows, starts, np.flatnonzero(part == 0))
    rank = np.concatenate([np.repeat(np.arange(part.size), part), np.repeat(np.arange(part.size), old)])
    order = np.argsort(rank, kind="stable")
    return np.concatenate([new, kept])[order], np.concatenate([[0], np.cumsum(part + old)])


def _joined(columns: list[Ints]) -> Ints:
    return np.concatenate(columns) if columns else np.empty(0, np.int32)
