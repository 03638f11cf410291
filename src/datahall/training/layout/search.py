"""The best layouts of a space: memory first, then time; why the others lost; what the winner hangs on."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.cluster.cluster import Cluster
from datahall.scenario.sections.training import USUAL_SCHEDULE
from datahall.training.layout.columns import Column, Space
from datahall.training.layout.layout import Layout
from datahall.training.layout.space import USUAL, WEIGHED, Options, layout_space
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.memory.peak import Memory, peak_memory
from datahall.training.memory.remedy import host_holds
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job, StepTimes, step_times


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
    def margin_bytes(self) -> float:
        """What must stay free on each chip."""
        return margin_bytes(self.options, self.memory)

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
    schedule: str = USUAL_SCHEDULE,
) -> Search:
    """Rank every legal layout of a job on a cluster."""
    kept = books or job.books(framework)
    space = layout_space(job, cluster.num_chips, options)
    memory = peak_memory(job, cluster.chip, space, kept, schedule=schedule)
    fits = memory.headroom_bytes >= margin_bytes(options, memory)
    fitting = np.flatnonzero(fits & host_holds(job, cluster, space, kept))
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


def margin_bytes(options: Options, memory: Memory) -> float:
    """What a search leaves free on each chip."""
    return options.margin_fraction * memory.limit_bytes


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
    """How a layout compares with another: what it lacks to fit, or how much longer it takes and in which part."""

    layout: Layout
    fits: bool
    over_bytes: float  # beyond what a chip has less its margin; 0 where it is the host that does not hold it
    slower_fraction: float  # of the other's step; negative: faster
    part: str  # of the step, a key of `PARTS`
    more_s: float

    @property
    def faster_fraction(self) -> float:
        """How much faster it is, where it is: by so much the other is slower."""
        return 1.0 / (1.0 + self.slower_fraction) - 1.0


class Change(NamedTuple):
    """One choice of a layout changed: which, from what to what, and what comes of it."""

    name: str
    before: object
    after: object
    loss: Loss


def loss(found: Search, row: int, place: int = 0) -> Loss:
    """How a row of the space compares in closed form with the layout at a place of the ranking."""
    layout = found.space.row(row)
    over = found.margin_bytes - float(found.memory.headroom_bytes[row])
    places = np.flatnonzero(found.order == row)
    if over > 0 or not places.size:
        return Loss(layout, False, max(0.0, over), np.inf, "", 0.0)
    mine, other = found.parts(int(places[0])), found.parts(place)
    part = max(mine, key=lambda name: mine[name] - other[name])
    slower = float(found.step_s[row] / found.step_s[found.order[place]]) - 1.0
    return Loss(layout, True, 0.0, slower, part, mine[part] - other[part])


def sensitivity(found: Search, place: int) -> list[Change]:
    """What changes if one choice of a layout changes and data parallelism takes up the difference.

    For each degree the nearest legal value below and above; several where only one exists.
    """
    row = int(found.order[place])
    here = found.space.row(row)
    columns = {name: np.asarray(getattr(found.space, name), dtype=np.float64) for name in WEIGHED}
    same = {name: column == column[row] for name, column in columns.items()}
    changed = []
    for name, column in columns.items():
        others = np.logical_and.reduce([same[other] for other in WEIGHED if other != name])
        rows = np.flatnonzero(others & ~same[name])
        below, above = rows[column[rows] < column[row]], rows[column[rows] > column[row]]
        near = [below[np.argmax(column[below])]] if below.size else []
        near += [above[np.argmin(column[above])]] if above.size else []
        for other in near:
            lost = loss(found, int(other), place)
            changed.append(Change(name, getattr(here, name), getattr(lost.layout, name), lost))
    return changed


CHANGE = 0.2  # of the network's bandwidth, up and down


class Elsewhere(NamedTuple):
    """A layout on a somewhat different machine: another network, or a scale-up domain of another size."""

    layout: Layout
    step_s: float
    difference_fraction: float  # from the step of the layout that was asked about, on the machine as it is
    chosen: bool  # the layout that was asked about; else one that is faster there
    fastest: bool  # of it and the best other cuts of the model
    network_fraction: float  # change of its bandwidth
    num_domain: int  # chips of a scale-up domain where that is what is changed


def machine_sensitivity(found: Search, place: int, rivals: int = 6) -> list[Elsewhere]:
    """The layout at a place of the ranking on a somewhat different machine, and who is faster there.

    The network is a fifth slower or faster, a scale-up domain half or twice as large; the fastest of this layout and
    the best other cuts of the model follows where it is another one.  Where nothing joins the domains, nothing of it
    can be changed.
    """
    if not found.cluster.system.torus and not found.cluster.system.nic_bytes_per_s:
        return []
    rows = [int(found.order[place]), *(int(found.order[one]) for one in found.best(rivals) if one != place)]
    space, system = found.space.keep(np.array(rows)), found.cluster.system
    replace = msgspec.structs.replace
    machines = [(system.with_network(1.0 + change), change, 0) for change in (-CHANGE, CHANGE)]
    if system.num_domain > 1 and not system.torus:
        sizes = (system.num_domain // 2, 2 * system.num_domain)
        machines += [(replace(system, num_domain=size), 0.0, size) for size in sizes]
    now_s, changed = float(found.step_s[rows[0]]), []
    for other, change, size in machines:
        cluster = replace(found.cluster, system=other)
        step_s = step_times(found.job, cluster, space, found.framework).step_s
        fastest = int(np.argmin(step_s))
        for row in dict.fromkeys((0, fastest)):
            taken_s = float(step_s[row])
            away = taken_s / now_s - 1.0
            changed.append(Elsewhere(space.row(row), taken_s, away, row == 0, row == fastest, change, size))
    return changed
