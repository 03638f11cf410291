"""A layout of data parallelism over several kinds of chip: as one run, each step waiting for the slowest of them.

    step = (maxₖ (slotₖ · mₖ + bubbleₖ + optimizerₖ + offloadₖ + fixed) + maxₖ exchangeₖ) · (1 + jitter · ln chips)

All kinds are cut alike (tp, pp, micro-batch, ZeRO …), so that the ranks that exchange gradients hold the same shards.
Exchange between replicas is that of all chips on the slower network, as if all were of its kind; what does not fit on
one kind does not run.  Of all layouts that do, the one with the shortest step in proportion is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.cluster.cluster import Cluster
from datahall.training.layout.columns import Column, Space
from datahall.training.layout.layout import Layout
from datahall.training.layout.search import search
from datahall.training.layout.space import Options
from datahall.training.mixed.share import (
    Replicas,
    even_share,
    even_time,
    in_proportion,
    least_time,
    uneven_time,
)
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job, StepTimes, step_times

EXCHANGED_EACH_TIME = 2  # ZeRO: gradients leave with each micro-batch, from 3 on parameters come too


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The chips of one kind in the run."""

    chip: str
    num_chips: int
    replicas: Replicas
    num_micro: int  # of one of its replicas in proportion, at most
    data_s: float  # exchange of all replicas on its network


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """A run on several kinds of chip."""

    layout: Layout
    parts: tuple[Part, ...]
    num_micro: int  # of all replicas
    slowest_ratio: float  # waiting for the slowest rank of all

    @property
    def data_s(self) -> float:
        """Exchange between replicas, on the slower network [s]."""
        return max(one.data_s for one in self.parts)

    @property
    def kinds(self) -> tuple[Replicas, ...]:
        return tuple(one.replicas for one in self.parts)

    @property
    def last(self) -> Part:
        """The kind that is done last, in proportion."""
        return max(self.parts, key=lambda one: one.replicas.busy_s(one.num_micro))

    @property
    def num_even(self) -> int:
        """Micro-batches of every replica, were they equal."""
        return even_share(self.kinds, self.num_micro)

    @property
    def even_s(self) -> float:
        """A step with the batch split evenly [s]."""
        return (even_time(self.kinds, self.num_micro) + self.data_s) * self.slowest_ratio

    @property
    def step_s(self) -> float:
        """A step with the batch split in proportion to speed [s]."""
        busy_s = uneven_time(self.kinds, [one.num_micro for one in self.parts])
        return (busy_s + self.data_s) * self.slowest_ratio


def joined(
    job: Job, clusters: Sequence[Cluster], counts: Sequence[int], framework: Framework, options: Options
) -> Joined | None:
    """The layout with the shortest step in proportion; `clusters` are all chips, were they of each kind.

    None where no layout divides each kind's chips and fits on all of them.
    """
    total = sum(counts)
    # any replicas may share a batch, whose part each need not be equal: laid out for one that they divide
    divided = msgspec.structs.replace(job, global_batch=ceil(job.global_batch / total) * total)
    found = [search(divided, cluster, framework, options=options) for cluster in clusters]
    space = found[0].space
    replica = total // space.dp  # chips of one
    runs = np.all([np.isfinite(one.step_s) for one in found], axis=0)
    runs &= job.global_batch % space.micro_batch == 0
    for count in counts:
        runs &= (count % replica == 0) & _goes_apart(space, count // replica)
    rows = np.flatnonzero(runs)
    if not rows.size:
        return None
    kept = space.keep(rows)
    times = [step_times(divided, cluster, kept, framework) for cluster in clusters]
    nums = np.array([count / replica[rows] for count in counts]).astype(int)

    def kinds_at(row: int) -> list[Replicas]:
        multiple = int(kept.pp[row]) if kept.vpp[row] > 1 else 1
        return [
            Replicas(int(nums[at][row]), float(one.slot_s[row]), once_s(one, row), multiple)
            for at, one in enumerate(times)
        ]

    def whole(row: int) -> int:
        return int(job.global_batch // kept.micro_batch[row])

    data_s = np.max([one.data_s for one in times], axis=0)
    bound_s = np.array([least_time(kinds_at(row), whole(row)) for row in range(rows.size)]) + data_s
    best_s, best = np.inf, 0
    for row in map(int, np.argsort(bound_s, kind="stable")):
        if bound_s[row] >= best_s:
            break
        kinds = kinds_at(row)
        step_s = uneven_time(kinds, in_proportion(kinds, whole(row))) + data_s[row]
        if step_s < best_s:
            best_s, best = step_s, row
    kinds = kinds_at(best)
    shares = in_proportion(kinds, whole(best))
    return Joined(
        layout=space.row(int(rows[best])),
        parts=tuple(
            Part(
                chip=cluster.chip.name,
                num_chips=count,
                replicas=one,
                num_micro=share,
                data_s=float(time.data_s[best]),
            )
            for cluster, count, one, share, time in zip(clusters, counts, kinds, shares, times, strict=True)
        ),
        num_micro=whole(best),
        slowest_ratio=_slowest_ratio(times[0], best),
    )


def _goes_apart(space: Space, num: Column) -> NDArray[np.bool_]:
    """Whether so many replicas need none of another kind during a micro-batch.

    ZeRO-2 and 3 exchange with all that share a state in each of them, so that these must have equally many.
    """
    grouped = (space.shard > 0) & (num % np.maximum(1.0, space.shard) == 0)
    return np.asarray((space.zero < EXCHANGED_EACH_TIME) | grouped)


def once_s(times: StepTimes, row: int) -> float:
    """What a replica takes once a step, besides its micro-batches and the exchange between replicas [s]."""
    return float(times.bubble_s[row] + times.optimizer_s[row] + times.offload_s[row] + times.fixed_s[row])


def _slowest_ratio(times: StepTimes, row: int) -> float:
    alone_s = float(times.slot_s[row] * times.num_micro[row]) + once_s(times, row) + float(times.data_s[row])
    return float(times.step_s[row]) / alone_s
