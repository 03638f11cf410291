"""Why a layout does not fit, and the cheapest single change that makes it fit."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.cluster.cluster import Cluster
from datahall.scenario.sections.training import USUAL_SCHEDULE
from datahall.scenario.words import OFFLOADS, TIERS
from datahall.training.layout.codes import offload_parts
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.memory.offload import Line, held_bytes, offload_lines, traffic_of
from datahall.training.memory.peak import PARTS, Memory, peak_memory
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job, step_times
from datahall.units import fmt
from datahall.workload.memory.recompute import RECOMPUTES

NAMES = {
    "weight_bytes": "weights",
    "gradient_bytes": "gradients",
    "optimizer_bytes": "optimizer states",
    "activation_bytes": "activations",
    "working_bytes": "loss and layer at work",
    "buffer_bytes": "buffers",
}


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a layout: what it becomes, what it leaves free and how long a step then takes."""

    change: str
    layout: Layout
    headroom_bytes: float
    step_s: float

    @property
    def fits(self) -> bool:
        return self.headroom_bytes >= 0


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """What is too much on which stage, and every single change with its effect: those that fit first, fastest first."""

    layout: Layout
    over_bytes: float
    total_bytes: float
    limit_bytes: float
    stage: int
    part: str  # the largest
    part_bytes: float
    remedies: tuple[Remedy, ...]

    @property
    def cheapest(self) -> Remedy | None:
        """The change that fits and costs the least time."""
        return next((one for one in self.remedies if one.fits), None)

    @property
    def sentence(self) -> str:
        """The shortage for a person."""
        return (
            f"stage {self.stage} needs {fmt(self.total_bytes, 'bytes')} of {fmt(self.limit_bytes, 'bytes')}, "
            f"{fmt(self.over_bytes, 'bytes', 3)} too much; {fmt(self.part_bytes, 'bytes', 3)} of it are {self.part}"
        )

    @property
    def advice(self) -> str:
        """What to do about it."""
        if self.cheapest is not None:
            free = fmt(self.cheapest.headroom_bytes, "bytes", 3)
            return f"cheapest change: {self.cheapest.change}, step {fmt(self.cheapest.step_s, 's', 3)}, {free} free"
        if not self.remedies:
            return "no single change is legal; more chips, or a smaller model"
        nearest = max(self.remedies, key=lambda one: one.headroom_bytes)
        short = fmt(-nearest.headroom_bytes, "bytes", 3)
        return f"no single change is enough; the nearest is {nearest.change}, still {short} short"


def why_not(
    job: Job,
    cluster: Cluster,
    layout: Layout,
    framework: Framework,
    books: Bookkeeping,
    *,
    schedule: str = USUAL_SCHEDULE,
) -> Shortage | None:
    """What does not fit, by how much, and the changes ranked by step time; None where it fits."""
    memory = peak_memory(job, cluster.chip, Space.of(layout), books, schedule=schedule)
    if memory.headroom_bytes[0] >= 0:
        return None
    part = max(PARTS, key=lambda name: float(getattr(memory, name)[0]))
    return Shortage(
        layout=layout,
        over_bytes=float(-memory.headroom_bytes[0]),
        total_bytes=float(memory.total_bytes[0]),
        limit_bytes=memory.limit_bytes,
        stage=int(memory.stage[0]),
        part=NAMES[part],
        part_bytes=float(getattr(memory, part)[0]),
        remedies=remedies(job, cluster, layout, framework, books, schedule=schedule),
    )


def remedies(
    job: Job,
    cluster: Cluster,
    layout: Layout,
    framework: Framework,
    books: Bookkeeping,
    *,
    schedule: str = USUAL_SCHEDULE,
) -> tuple[Remedy, ...]:
    """Every legal single change: those that fit by step time, then the others by what they still lack."""
    changes = list(_legal(job, cluster, layout))
    if not changes:
        return ()
    space = Space.of([changed for _, changed in changes])
    memory: Memory = peak_memory(job, cluster.chip, space, books, schedule=schedule)
    times = step_times(job, cluster, space, framework).step_s
    holds = host_holds(job, cluster, space, books, schedule=schedule)
    found = [
        Remedy(change=name, layout=changed, headroom_bytes=float(free), step_s=float(step_s))
        for (name, changed), free, step_s, held in zip(
            changes, memory.headroom_bytes, times, holds, strict=True
        )
        if held
    ]
    return tuple(
        sorted(found, key=lambda one: (not one.fits, one.step_s if one.fits else -one.headroom_bytes))
    )


def _legal(job: Job, cluster: Cluster, layout: Layout) -> Iterator[tuple[str, Layout]]:
    for name, changed in _changes(layout):
        if changed.offload and not isfinite(cluster.host.link_bytes_per_s):
            continue
        if changed.is_legal(job.model, cluster.num_chips, job.global_batch):
            yield name, changed


def _changes(layout: Layout) -> Iterator[tuple[str, Layout]]:
    """Single changes on the same chips; what a degree takes, data parallelism gives."""

    def change(name: str, **fields: object) -> tuple[str, Layout]:
        return name, msgspec.structs.replace(layout, **fields)

    for level in RECOMPUTES[RECOMPUTES.index(layout.recompute) + 1 :]:
        yield change(f"recompute {level}", recompute=level, modules=())
    if layout.zero < 3 and layout.dp * layout.cp > 1:
        yield change(f"zero {layout.zero + 1}", zero=layout.zero + 1)
    for part in OFFLOADS:
        if part not in dict(map(offload_parts, layout.offload)):
            yield change(f"{part} on the host", offload=(*layout.offload, part))
    if layout.micro_batch % 2 == 0:
        yield change(f"micro-batch {layout.micro_batch // 2}", micro_batch=layout.micro_batch // 2)
    if layout.ep * 2 <= layout.tp * layout.cp * layout.dp:
        yield change(f"ep {layout.ep * 2}", ep=layout.ep * 2)
    if layout.dp % 2 == 0:
        for name in ("tp", "pp", "cp"):
            degree = 2 * getattr(layout, name)
            yield change(f"{name} {degree}", **{name: degree, "dp": layout.dp // 2})
        if layout.vpp > 1:
            yield change(f"pp {2 * layout.pp} with vpp 1", pp=2 * layout.pp, vpp=1, dp=layout.dp // 2)


def host_holds(
    job: Job, cluster: Cluster, space: Space, books: Bookkeeping, *, schedule: str = USUAL_SCHEDULE
) -> NDArray[np.bool_]:
    """Whether host and drives hold what each layout puts there; a size nobody published is no limit."""
    if not space.offload.any():
        return np.ones(len(space), np.bool_)
    num_micro = space.num_micro(job.global_batch)
    traffic = traffic_of(job, space, books, num_micro, schedule=schedule)
    held = held_bytes(traffic)
    fits = np.ones(len(space), np.bool_)
    for at, tier in enumerate(TIERS, start=1):
        there = cluster.host.tier_bytes(tier)
        needed = sum(
            (np.where(space.offloaded(part) == at, held[part], 0.0) for part in OFFLOADS), np.zeros(1)
        )
        fits &= ~(needed > there)
    return fits


def layout_offload(
    job: Job,
    cluster: Cluster,
    layout: Layout,
    framework: Framework,
    books: Bookkeeping,
    *,
    schedule: str = USUAL_SCHEDULE,
) -> tuple[Line, ...]:
    """What one layout keeps outside its chips, and whether the way there is wide enough."""
    if not layout.offload:
        return ()
    space = Space.of(layout)
    num_micro = space.num_micro(job.global_batch)
    traffic = traffic_of(job, space, books, num_micro, schedule=schedule)
    slot_s = step_times(job, cluster, space, framework).slot_s
    return offload_lines(cluster.host, framework, space, traffic, slot_s, num_micro)


def least_bytes(memory: Memory) -> int:
    """The row of a space that comes nearest to fitting."""
    return int(np.argmin(memory.total_bytes))
