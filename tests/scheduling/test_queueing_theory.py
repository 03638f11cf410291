"""Long streams of jobs of one chip wait as queueing theory says: Erlang C, Pollaczek–Khinchine, Kiefer–Wolfowitz."""

from __future__ import annotations

import heapq
from math import factorial

import numpy as np
import pytest

from datahall.scheduling.jobs import jobs_of
from datahall.scheduling.machine import plain_machine
from datahall.scheduling.run import Conditions, simulate_queue

NUM = 400_000
MEAN_S = 100.0


def erlang_c_wait(servers: int, load: float) -> float:
    """Mean wait of M/M/k in service times, for a load of each server."""
    offered = servers * load
    top = offered**servers / factorial(servers) / (1 - load)
    waits = top / (sum(offered**n / factorial(n) for n in range(servers)) + top)
    return waits / (servers * (1 - load))


def waits(servers: int, load: float, run_s: np.ndarray, seed: int = 5) -> np.ndarray:
    draws = np.random.default_rng(seed)
    submit_s = np.cumsum(draws.exponential(run_s.mean() / (servers * load), run_s.size))
    jobs = jobs_of(submit_s, run_s, np.ones(run_s.size, np.int64))
    run = simulate_queue(jobs, plain_machine(1, servers), "fifo", Conditions())
    np.testing.assert_allclose(run.first_s, kiefer_wolfowitz(submit_s, run_s, servers), rtol=1e-9)
    return run.first_s - submit_s


def kiefer_wolfowitz(submit_s: np.ndarray, run_s: np.ndarray, servers: int) -> list[float]:
    """Starts of a first-come first-served queue, by when each server is free next: another way to the same times."""
    free, starts = [0.0] * servers, []
    for submit, run in zip(submit_s.tolist(), run_s.tolist(), strict=True):
        start = max(submit, heapq.heappop(free))
        heapq.heappush(free, start + run)
        starts.append(start)
    return starts


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (4, 0.8), (8, 0.75)])
def test_exponential_runs_on_many_chips_wait_as_erlang_says(servers: int, load: float) -> None:
    run_s = np.random.default_rng(1).exponential(MEAN_S, NUM)
    expected = erlang_c_wait(servers, load) * run_s.mean()
    assert waits(servers, load, run_s).mean() == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("shape", ["fixed", "uniform", "lognormal"])
def test_any_runs_on_one_chip_wait_as_pollaczek_and_khinchine_say(shape: str) -> None:
    draws = np.random.default_rng(2)
    run_s = {
        "fixed": np.full(NUM, MEAN_S),
        "uniform": draws.uniform(0, 2 * MEAN_S, NUM),
        "lognormal": draws.lognormal(4.0, 0.7, NUM),
    }[shape]
    load = 0.7
    squared = (run_s**2).mean() / run_s.mean() ** 2
    expected = load / (2 * (1 - load)) * squared * run_s.mean()
    assert waits(1, load, run_s).mean() == pytest.approx(expected, rel=0.03)


def test_runs_of_one_length_on_several_chips_wait_about_half_of_erlangs_time() -> None:
    """M/D/k by Lee and Longton's rule, (1 + c²) / 2 of M/M/k, with Cosmetatos' correction; within 3 %."""
    servers, load = 4, 0.8
    expected = erlang_c_wait(servers, load) * MEAN_S / 2
    correction = 1 + (1 - load) * (servers - 1) * ((4 + 5 * servers) ** 0.5 - 2) / (16 * load * servers)
    assert waits(servers, load, np.full(NUM, MEAN_S)).mean() == pytest.approx(expected * correction, rel=0.03)
