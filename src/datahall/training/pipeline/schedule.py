"""The order in which each pipeline stage works: arrays of stage × slot, and the rules an order must keep.

A *place* is one chunk of the model on one stage, numbered stage · chunks + chunk.  Micro-batches go forward
from place to place and backward the other way; a stage does its slots strictly in order.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.training.layout.order import check_counts
from datahall.training.pipeline.orders import FULL, B, Counts, F, Row, W
from datahall.training.pipeline.table import Order, order_of

EMPTY = -1  # kind of a slot beyond a stage's last
NOWHERE = -1

Places = NDArray[np.int32]
Slots = NDArray[np.int32]


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Who does what in which order.  Columns have a row per stage and a slot per piece of work."""

    name: str
    num_stages: int
    num_chunks: int  # places on each stage
    num_micro: int
    kind: NDArray[np.int8]  # F, B, W, FULL or EMPTY
    micro: Slots
    chunk: Slots
    joined: NDArray[np.bool_]  # runs together with the next slot, as one
    position: Places  # by place: which part of the model it holds, 0 first
    before: Places  # by place: where its input comes from, or NOWHERE
    after: Places  # by place: where its output goes, or NOWHERE

    @property
    def order(self) -> Order:
        """What is known of the schedule by its name."""
        return order_of(self.name)

    @property
    def num_parts(self) -> int:
        """Parts that the model is cut into."""
        return self.num_stages * self.num_chunks // self.num_copies

    @property
    def num_copies(self) -> int:
        """Stages that hold each of them."""
        return self.order.num_copies

    @property
    def num_visits(self) -> NDArray[np.int32]:
        """By place: how many micro-batches it handles."""
        stages, slots = np.nonzero(self.kind == F)
        places = stages * self.num_chunks + self.chunk[stages, slots]
        return np.bincount(places, minlength=self.num_stages * self.num_chunks).astype(np.int32)

    def in_flight(self) -> NDArray[np.int64]:
        """By stage: the most activations held at once, in chunks; a backward, or its weight part, frees one."""
        steps = (self.kind == F).astype(np.int64) - ((self.kind == W) | (self.kind == FULL))
        return np.asarray(np.cumsum(steps, axis=1).max(axis=1))


def schedule(name: str, *, num_stages: int, num_micro: int, num_chunks: int = 1) -> Schedule:
    """An order of work by its name.

    >>> one = schedule("1f1b", num_stages=4, num_micro=8)
    >>> one.in_flight().tolist(), one.kind.shape
    ([4, 3, 2, 1], (4, 16))
    """
    order, counts = order_of(name), Counts(num_stages, num_micro, num_chunks)
    check_counts(order, counts)
    position = _both_ways(num_stages) if order.both_ways else _round_robin(num_stages, num_chunks)
    return _from_rows(order, order.rows(counts), num_micro, position)


def _from_rows(order: Order, rows: list[list[Row]], num_micro: int, position: Places) -> Schedule:
    """A schedule from each stage's list of work; `position` has a row per stage, a column per chunk."""
    num_stages, num_chunks = position.shape
    longest = max(len(row) for row in rows)
    table = np.zeros((num_stages, longest, 4), np.int32)
    table[:, :, 0] = EMPTY
    for stage, row in enumerate(rows):
        table[stage, : len(row)] = row
    before, after = _neighbours(position, mirrored=order.both_ways)
    return Schedule(
        name=order.name,
        num_stages=num_stages,
        num_chunks=num_chunks,
        num_micro=num_micro,
        kind=table[:, :, 0].astype(np.int8),
        micro=np.ascontiguousarray(table[:, :, 1]),
        chunk=np.ascontiguousarray(table[:, :, 2]),
        joined=table[:, :, 3] > 0,
        position=np.ravel(position),
        before=before,
        after=after,
    )


def _round_robin(num_stages: int, num_chunks: int) -> Places:
    """Chunk c of stage s holds part c · stages + s, as Megatron deals them out."""
    stages, chunks = np.arange(num_stages)[:, None], np.arange(num_chunks)[None, :]
    return (chunks * num_stages + stages).astype(np.int32)


def _both_ways(num_stages: int) -> Places:
    """Each stage holds two parts: one for each end that micro-batches come in at."""
    stages = np.arange(num_stages)
    return np.stack([stages, num_stages - 1 - stages], axis=1).astype(np.int32)


def _neighbours(position: Places, *, mirrored: bool) -> tuple[Places, Places]:
    """Where each place's input comes from and its output goes; mirrored, chunk c talks to chunk c only."""
    num_stages, num_chunks = position.shape
    where = {
        (int(position[s, c]), c if mirrored else 0): s * num_chunks + c
        for s in range(num_stages)
        for c in range(num_chunks)
    }
    before, after = np.full((2, num_stages * num_chunks), NOWHERE, np.int32)
    for (part, way), place in where.items():
        before[place] = where.get((part - 1, way), NOWHERE)
        after[place] = where.get((part + 1, way), NOWHERE)
    return before, after


def problems(plan: Schedule) -> list[str]:
    """What is wrong with an order: work missing, done twice or before what it needs, or a circle of waiting."""
    found: list[str] = []
    done: dict[tuple[int, int], set[int]] = {}
    for stage in range(plan.num_stages):
        for slot in np.flatnonzero(plan.kind[stage] != EMPTY).tolist():
            kind, micro = int(plan.kind[stage, slot]), int(plan.micro[stage, slot])
            seen = done.setdefault((stage * plan.num_chunks + int(plan.chunk[stage, slot]), micro), set())
            for one in (B, W) if kind == FULL else (kind,):
                name = f"{'FBW'[one]} of micro-batch {micro} on stage {stage}"
                if one in seen:
                    found.append(f"{name} is done twice")
                if one and one - 1 not in seen:
                    found.append(f"{name} comes before its {'FBW'[one - 1]}")
                seen.add(one)
    found += [
        f"micro-batch {m} at place {p} is not finished" for (p, m), seen in done.items() if len(seen) < 3
    ]
    found += _paths(plan, set(done))
    return found or _circles(plan)


def _paths(plan: Schedule, visited: set[tuple[int, int]]) -> list[str]:
    """Every micro-batch passes every part of the model once."""
    parts: dict[int, list[int]] = {micro: [] for micro in range(plan.num_micro)}
    for place, micro in sorted(visited):
        parts.setdefault(micro, []).append(int(plan.position[place]))
    whole = list(range(plan.num_parts))
    return [
        f"micro-batch {micro} passes parts {sorted(seen)}"
        for micro, seen in parts.items()
        if sorted(seen) != whole or micro >= plan.num_micro
    ]


def _circles(plan: Schedule) -> list[str]:
    """Whether the stages, each in its order, can come to the end."""
    at = [0] * plan.num_stages
    finished: set[tuple[int, int, int]] = set()
    moved = True
    while moved:
        moved = False
        for stage in range(plan.num_stages):
            while at[stage] < plan.kind.shape[1] and plan.kind[stage, at[stage]] != EMPTY:
                width = 2 if plan.joined[stage, at[stage]] else 1
                if not all(_may_start(plan, stage, at[stage] + k, finished) for k in range(width)):
                    break
                for k in range(width):
                    finished.add(_work(plan, stage, at[stage] + k))
                at[stage] += width
                moved = True
    stuck = [s for s in range(plan.num_stages) if at[s] < int((plan.kind[s] != EMPTY).sum())]
    return [f"stage {stage} waits for ever at slot {at[stage]}" for stage in stuck]


def _work(plan: Schedule, stage: int, slot: int) -> tuple[int, int, int]:
    place = stage * plan.num_chunks + int(plan.chunk[stage, slot])
    return min(1, int(plan.kind[stage, slot])), place, int(plan.micro[stage, slot])


def _may_start(plan: Schedule, stage: int, slot: int, finished: set[tuple[int, int, int]]) -> bool:
    kind, place, micro = _work(plan, stage, slot)
    source = int((plan.after if kind else plan.before)[place])
    return plan.kind[stage, slot] == W or source == NOWHERE or (kind, source, micro) in finished
