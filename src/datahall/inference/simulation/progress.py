"""How far a long run is, and how long it will take, said on the log while it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter

from datahall.units import fmt
from datahall.workload.traffic.requests import Requests

log = logging.getLogger("datahall")
SILENT_S = 1.0  # a shorter run says nothing; after that at 2, 4, 8 … times as long


def reported(
    chunks: Iterable[Requests], num_requests: int, now: Callable[[], float] = perf_counter
) -> Iterator[Requests]:
    """The same chunks; each is asked for when those before it have nearly been simulated.

    The pace is that of all but the first, with which the loop may have been compiled.
    """
    start_s, seen, due_s = now(), 0, SILENT_S
    first, first_s = 0, 0.0
    for chunk in chunks:
        passed_s = now() - start_s
        if seen and not first:
            first, first_s = seen, passed_s
        elif seen and passed_s >= due_s:
            log.info(sentence(seen, num_requests, passed_s, (passed_s - first_s) / (seen - first)))
            due_s = 2.0 * passed_s
        seen += len(chunk)
        yield chunk


def sentence(seen: int, num_requests: int, passed_s: float, request_s: float) -> str:
    """How far it is; where the number of requests is known, how long the rest takes at this pace.

    >>> sentence(1_000_000, 4_000_000, 40.0, 1e-5)
    '1,000,000 of 4,000,000 requests simulated; the others take about 30 s, Ctrl-C stops it'
    >>> sentence(1_000_000, 0, 10.0, 1e-5)
    '1,000,000 requests simulated in 10 s; Ctrl-C stops it'
    """
    if num_requests <= seen:
        return f"{seen:,} requests simulated in {fmt(passed_s, 's', 2)}; Ctrl-C stops it"
    left_s = request_s * (num_requests - seen)
    return (
        f"{seen:,} of {num_requests:,} requests simulated; the others take about {fmt(left_s, 's', 2)}, "
        "Ctrl-C stops it"
    )
