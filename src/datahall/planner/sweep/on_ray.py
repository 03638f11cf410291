"""Points answered by a Ray cluster: one that runs, one elsewhere, or a new one on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice

from datahall.errors import UnsupportedError
from datahall.planner.sweep.processes import Point
from datahall.planner.sweep.worker import Answerer, answerer

AHEAD = 4  # points a core that wait on the cluster, so that none is idle and a stop loses little


def answered(place: str, context: bytes, points: Iterable[Point], address: str) -> Iterator[Point]:
    """What was found of each point, in the order in which they end."""
    try:
        import ray
    except ImportError as error:
        raise UnsupportedError(
            "Ray is not installed",
            field="workers",
            hint='pip install "datahall[ray]", or a number of processes',
        ) from error
    ray.init(
        address=address if "://" in address else None, ignore_reinit_error=True, log_to_driver=False,
        configure_logging=False,
    )  # fmt: skip
    remote = ray.remote(_found)
    waiting = iter(points)
    most = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    under_way = [remote.remote(place, context, *point) for point in islice(waiting, most)]
    while under_way:
        done, under_way = ray.wait(under_way, num_returns=1)
        under_way += [remote.remote(place, context, *point) for point in islice(waiting, len(done))]
        yield from ray.get(done)


def _found(place: str, context: bytes, index: int, point: bytes) -> Point:
    return index, _kept(place, context)(point)


@cache
def _kept(place: str, context: bytes) -> Answerer:
    """What answers, made once in a process of the cluster."""
    return answerer(place, context)
