"""A sweep run: points that a journal has are taken from it, the others answered here, by processes or by a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from time import perf_counter

import msgspec

from datahall.events.progress import reported
from datahall.planner.sweep import processes
from datahall.planner.sweep.journal import Journal
from datahall.planner.sweep.processes import Point, num_cores
from datahall.planner.sweep.worker import answerer

WORTH_S = 3.0  # what is left to answer, below which starting processes takes longer than it saves
TRIED_S = 1.0  # for which points are answered here, to see how long they take


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The points of a sweep: by their numbers, and the function that answers them, made of a context."""

    place: str  # module:name under `datahall`
    context: bytes
    num_points: int
    point: Callable[[int], bytes]


def run(work: Work, journal: Journal, workers: str = "") -> list[bytes]:
    """What was found of every point, in their order; each is kept as it ends."""
    missing = [index for index in range(work.num_points) if index not in journal.found]
    for index, found in reported(_found(work, missing, workers), work.num_points, len(journal.found)):
        journal.keep(index, found)
    return [journal.found[index] for index in range(work.num_points)]


def _found(work: Work, missing: Sequence[int], workers: str) -> Iterator[Point]:
    points = ((index, work.point(index)) for index in missing)
    if workers and not workers.isdecimal():
        from datahall.planner.sweep import on_ray

        return on_ray.answered(work.place, work.context, points, workers)
    num = min(int(workers or num_cores()), len(missing))
    if num > 1 and workers:
        return processes.answered(work.place, work.context, points, num)
    here = _answered_here(work, points, len(missing), alone=num <= 1)
    return chain(here, _answered_there(work, points, num))


def _answered_here(work: Work, points: Iterable[Point], num_points: int, *, alone: bool) -> Iterator[Point]:
    """Points answered in this process: all, or until it is seen that the others take long; the first loads much."""
    answer, start_s = answerer(work.place, work.context), perf_counter()
    for done, (index, point) in enumerate(points):
        yield index, answer(point)
        if not done:
            start_s = perf_counter()
            continue
        passed_s = perf_counter() - start_s
        if not alone and passed_s >= TRIED_S and passed_s / done * (num_points - done) > WORTH_S:
            return


def _answered_there(work: Work, points: Iterator[Point], num_workers: int) -> Iterator[Point]:
    """The others, if there are any; processes are started when the first is asked for."""
    first = next(points, None)
    if first is not None:
        yield from processes.answered(work.place, work.context, chain([first], points), num_workers)
