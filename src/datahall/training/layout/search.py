"""The best layouts of a space: memory first, then time; why the others lost; what the winner hangs on."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.cluster.cluster import Cluster
from datahall.scenario.words import CONTEXT_EXCHANGES, RECOMPUTES
from datahall.training.layout.codes import offload_names
from datahall.training.layout.layout import Column, Layout, Space
from datahall.training.layout.space import USUAL, Options, layout_space
from datahall.training.memory.bookkeeping import Bookkeeping, bookkeeping_of
from datahall.training.memory.peak import Memory, peak_memory
from datahall.training.memory.remedy import host_holds
from datahall.training.step.framework import Framework
from datahall.training.step.parts import PARTS
from datahall.training.step.step import Job, StepTimes, step_times
from datahall.units import fmt

DEGREES = (
    "tp", "pp", "vpp", "cp", "ep", "etp", "zero", "shard", "micro_batch", "context", "recompute", "offload",
)  # fmt: skip


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """A whole space, what each of its layouts takes, and those that fit in order of their step time."""

    job: Job
    cluster: Cluster
    framework: Framework
    books: Bookkeeping
    space: Space
    memory: Memory
    step_s: Column  # infinite where it does not fit
    order: NDArray[np.intp]  # rows that fit, fastest first
    times: StepTimes  # of the rows of `order`
    options: Options = USUAL  # what was searched

    @property
    def num_fitting(self) -> int:
        return int(self.order.size)

    def layout(self, place: int) -> Layout:
        """The layout at a place of the ranking."""
        return self.space.row(int(self.order[place]))

    def parts(self, place: int) -> dict[str, float]:
        """What the step at a place of the ranking is made of [s]."""
        here = StepTimes(**{name: getattr(self.times, name)[place] for name in self.times.__struct_fields__})
        return {name: float(value) for name, value in step_parts(here).items()}

    def best(self, count: int) -> list[int]:
        """Places of the fastest layouts, one for each way of cutting the model (tp, pp, cp, ep)."""
        seen: set[tuple[float, ...]] = set()
        found: list[int] = []
        for place, row in enumerate(self.order):
            cut = tuple(float(getattr(self.space, name)[row]) for name in ("tp", "pp", "cp", "ep"))
            if cut not in seen:
                seen.add(cut)
                found.append(place)
                if len(found) == count:
                    break
        return found


def search(
    job: Job,
    cluster: Cluster,
    framework: Framework,
    *,
    options: Options = USUAL,
    books: Bookkeeping | None = None,
    schedule: str = "1f1b",
) -> Search:
    """Rank every legal layout of a job on a cluster."""
    kept = books or bookkeeping_of(framework)
    space = layout_space(job, cluster.num_chips, options)
    memory = peak_memory(job, cluster.chip, space, kept, schedule=schedule)
    fitting = np.flatnonzero((memory.headroom_bytes >= 0) & host_holds(job, cluster, space, kept))
    times = step_times(job, cluster, space.keep(fitting), framework)
    # equal times: the layout that leaves more memory comes first
    ranked = np.lexsort((memory.total_bytes[fitting], times.step_s))
    step_s = np.full(len(space), np.inf)
    step_s[fitting] = times.step_s
    return Search(
        job=job,
        cluster=cluster,
        framework=framework,
        books=kept,
        space=space,
        memory=memory,
        step_s=step_s,
        order=fitting[ranked],
        times=StepTimes(**{name: getattr(times, name)[ranked] for name in times.__struct_fields__}),
        options=options,
    )


def step_parts(times: StepTimes) -> dict[str, Column]:
    """The parts of a step [s]; they add up to it."""
    shown = times.slot_s - times.compute_s - times.tensor_s - times.expert_s - times.pipeline_s
    micro = times.num_micro
    once = times.data_s + times.optimizer_s + times.offload_s + times.fixed_s
    alone = times.slot_s * micro + times.bubble_s + once
    return {
        "kernels": micro * times.compute_s,
        "tensor": micro * times.tensor_s,
        "expert": micro * times.expert_s,
        "messages": micro * times.pipeline_s,
        "gather": micro * np.where(times.gathered_s > 0, np.maximum(0.0, shown), 0.0),
        "beside": micro * np.where(times.gathered_s > 0, 0.0, np.maximum(0.0, shown)),
        "bubble": times.bubble_s,
        "data": times.data_s,
        "optimizer": times.optimizer_s,
        "offload": times.offload_s,
        "fixed": times.fixed_s,
        "slowest": times.step_s - alone,
    }


def pareto(*columns: Column) -> NDArray[np.intp]:
    """Rows that no other beats in every column (less is better), in order of the first.

    >>> pareto(np.array([1.0, 2.0, 3.0, 2.5]), np.array([9.0, 5.0, 1.0, 6.0])).tolist()
    [0, 1, 2]
    """
    table = np.stack(columns, axis=1)
    order = np.lexsort(tuple(reversed(columns)))
    front: list[int] = []
    for row in order:
        known = table[front]
        beaten = (
            (known <= table[row]).all(axis=1) & (known < table[row]).any(axis=1) if front else np.array([])
        )
        same = (known == table[row]).all(axis=1) if front else np.array([])
        if not bool(np.any(beaten)) and not bool(np.any(same)):
            front.append(int(row))
    return np.array(front, dtype=np.intp)


def front(found: Search) -> NDArray[np.intp]:
    """Places of the ranking that trade time for memory: no other fits with less of both."""
    rows = found.order
    if not rows.size:
        return rows
    memory = found.memory.total_bytes[rows]
    leanest = np.minimum.accumulate(memory)
    best_so_far = np.concatenate(([np.inf], leanest[:-1]))
    return np.flatnonzero(memory < best_so_far)


class Loss(NamedTuple):
    """Why a layout is not the best: what it lacks, or how much slower it is and in which part."""

    layout: Layout
    fits: bool
    over_bytes: float
    slower_ratio: float  # of the winner's step
    part: str
    more_s: float

    @property
    def reason(self) -> str:
        """One clause for a person."""
        if not self.fits and self.over_bytes <= 0:
            return "the host does not hold what it moves there"
        if not self.fits:
            return f"does not fit by {fmt(self.over_bytes, 'bytes', 3)}"
        if self.slower_ratio < 1.0005:
            return "equally fast with less memory to spare"
        return f"{fmt(self.slower_ratio - 1, 'fraction')} slower: {fmt(self.more_s, 's', 3)} more {PARTS[self.part]}"


def loss(found: Search, row: int) -> Loss:
    """Why a row of the space lost to the winner."""
    layout = found.space.row(row)
    over = float(-found.memory.headroom_bytes[row])
    places = np.flatnonzero(found.order == row)
    if over > 0 or not places.size:
        return Loss(layout, False, max(0.0, over), np.inf, "", 0.0)
    place = int(places[0])
    mine, best = found.parts(place), found.parts(0)
    part = max(mine, key=lambda name: mine[name] - best[name])
    return Loss(
        layout,
        True,
        0.0,
        float(found.step_s[row] / found.step_s[found.order[0]]),
        part,
        mine[part] - best[part],
    )


def sensitivity(found: Search, place: int = 0) -> list[tuple[str, Loss]]:
    """What changes if one choice of a layout changes and data parallelism takes up the difference.

    For each degree the nearest legal value below and above; several where only one exists.
    """
    row = int(found.order[place])
    columns = {name: np.asarray(getattr(found.space, name), dtype=np.float64) for name in DEGREES}
    same = {name: column == column[row] for name, column in columns.items()}
    changed = []
    for name in DEGREES:
        others = np.logical_and.reduce([same[other] for other in DEGREES if other != name])
        rows = np.flatnonzero(others & ~same[name])
        values = columns[name][rows]
        here = columns[name][row]
        below, above = rows[values < here], rows[values > here]
        near = [below[np.argmax(columns[name][below])]] if below.size else []
        near += [above[np.argmin(columns[name][above])]] if above.size else []
        changed += [(_change(found.space, name, row, int(one)), loss(found, int(one))) for one in near]
    return changed


def _change(space: Space, name: str, row: int, other: int) -> str:
    def said(value: float) -> str:
        match name:
            case "recompute":
                return RECOMPUTES[int(value)]
            case "context":
                return CONTEXT_EXCHANGES[int(value)]
            case "offload":
                return " and ".join(offload_names(int(value))) or "nothing"
            case "etp" | "shard":
                return f"{value:g}" if value else "usual"
            case _:
                return f"{value:g}"

    before, after = (said(float(getattr(space, name)[at])) for at in (row, other))
    return f"{name.replace('_', '-')} {before} → {after}"


CHANGE = 0.2  # of the network's bandwidth, up and down


def machine_sensitivity(found: Search, place: int = 0, rivals: int = 6) -> list[tuple[str, float, Layout]]:
    """The step at a place of the ranking on a somewhat different machine, and who is then the fastest.

    The network is a fifth slower or faster, a scale-up domain half or twice as large; each is followed by the step
    [s] and the fastest of this layout and the best other cuts of the model.
    """
    rows = [int(found.order[place]), *(int(found.order[one]) for one in found.best(rivals) if one != place)]
    space, system = found.space.keep(np.array(rows)), found.cluster.system
    replace = msgspec.structs.replace
    machines = {
        f"network {100.0 * (factor - 1.0):+.0f} %": system.with_network(factor)
        for factor in (1.0 - CHANGE, 1.0 + CHANGE)
    }
    if system.num_domain > 1 and not system.torus:
        sizes = (system.num_domain // 2, 2 * system.num_domain)
        machines |= {f"scale-up domain of {size}": replace(system, num_domain=size) for size in sizes}
    changed = []
    for name, other in machines.items():
        cluster = replace(found.cluster, system=other)
        step_s = step_times(found.job, cluster, space, found.framework).step_s
        changed.append((name, float(step_s[0]), space.row(int(np.argmin(step_s)))))
    return changed
