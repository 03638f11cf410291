"""How far a long question is, and how long the rest takes, said on the log while it is answered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import TypeVar

from datahall.units import fmt

log = logging.getLogger("datahall")
SILENT_S, RARE_S = (
    2.0,
    30.0,
)  # a shorter one says nothing; after that at 2, 4, 8 … s, and each 30 s in the end
T = TypeVar("T")


def reported(
    answers: Iterable[T],
    num_points: int,
    num_before: int = 0,
    now: Callable[[], float] = perf_counter,
    *,
    what: str = "points",
) -> Iterator[T]:
    """The same answers; `num_before` of the points were answered by a run before this one.

    The pace is that of all but the first, with which much is loaded.
    """
    start_s, first_s, due_s = now(), 0.0, SILENT_S
    for done, one in enumerate(answers, 1):
        passed_s = now() - start_s
        if done == 1:
            first_s = passed_s
        elif passed_s >= due_s and num_before + done < num_points:
            each_s = (passed_s - first_s) / (done - 1)
            log.info(sentence(num_before + done, num_points, each_s, what))
            due_s = passed_s + min(passed_s, RARE_S)
        yield one


def sentence(num_done: int, num_points: int, point_s: float, what: str = "points") -> str:
    """How far it is.

    >>> sentence(500, 2000, 0.01)
    '500 of 2,000 points; the others take about 15 s, Ctrl-C stops it'
    """
    left_s = (num_points - num_done) * point_s
    return (
        f"{num_done:,} of {num_points:,} {what}; the others take about {fmt(left_s, 's', 2)}, Ctrl-C stops it"
    )
