"""How long many points would take, from how long one does."""

from __future__ import annotations

from time import perf_counter

from datahall.planner.sweep.processes import num_cores
from datahall.planner.sweep.run import Work
from datahall.planner.sweep.worker import answerer


def estimated_s(work: Work) -> tuple[float, float]:
    """Seconds of one point, and of all of them on every core; the first is answered twice, for what it loads."""
    answer = answerer(work.place, work.context)
    answer(work.point(0))
    start_s = perf_counter()
    answer(work.point(0))
    point_s = perf_counter() - start_s
    return point_s, point_s * work.num_points / num_cores()
