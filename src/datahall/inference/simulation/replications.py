"""The same question under several seeds, on as many processes as there are; the answers do not depend on how many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from datahall.inference.fleet.fleet import Fleet
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.scenario.sections.promise import Promise
from datahall.workload.traffic.requests import Requests

Traffic = Callable[[int], Requests | Iterable[Requests]]  # of a seed


def replicate_serving(
    fleet: Fleet,
    traffic: Traffic,
    seeds: Sequence[int],
    *,
    users: int = 0,
    slo: Promise | None = None,
    workers: int = 1,
) -> list[ServingRun]:
    """One run for each seed, in the order of the seeds; with workers, `traffic` is a function of a module."""
    one = partial(_run, fleet, traffic, users, slo)
    if workers <= 1 or len(seeds) <= 1:
        return [one(seed) for seed in seeds]
    one(seeds[0])  # compiles, so that no two workers do
    with ProcessPoolExecutor(min(workers, len(seeds)), mp_context=get_context("spawn")) as pool:
        return list(pool.map(one, seeds))


def _run(fleet: Fleet, traffic: Traffic, users: int, slo: Promise | None, seed: int) -> ServingRun:
    return simulate_serving(fleet, traffic(seed), users=users, slo=slo, seed=seed)
