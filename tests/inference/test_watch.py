"""A fleet that is read over time: what was read is what its requests say of themselves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.inference.serving_case import fleet, poisson
from tests.inference.ticking_case import one_pool, rows, simulated

from datahall.inference.simulation.run import Records, ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.simulation.watch import FIRST_S, NUM_LOOKS

Floats = NDArray[np.float64]


def watched(
    num: int, rate_per_s: float, count: int = 2, *, compiled: bool = True, **options: int
) -> ServingRun:
    asked = poisson(num, rate_per_s, spread=0.5)
    return simulate_serving(fleet(count, **options), asked, watch=True, record=True, compiled=compiled)


def present(begin_s: Floats, end_s: Floats, at_s: Floats) -> Floats:
    """How many of some spans hold each moment."""
    return np.array([np.count_nonzero((begin_s < at) & (end_s >= at)) for at in at_s], np.float64)


def overlap(begin_s: Floats, end_s: Floats, edges_s: Floats) -> Floats:
    """What spans have in common with the times between edges [s]."""
    return np.array(
        [
            np.maximum(0.0, np.minimum(end_s, late) - np.maximum(begin_s, early)).sum()
            for early, late in pairwise(edges_s.tolist())
        ]
    )


def records(run: ServingRun) -> Records:
    assert run.records is not None
    return run.records


@pytest.mark.parametrize(("num", "rate"), [(60, 3.0), (400, 8.0), (900, 60.0)])
def test_requests_that_run_and_wait_are_those_of_the_records(num: int, rate: float) -> None:
    """Without preemption a request waits from its arrival to its first step, and runs from there to its end."""
    run = watched(num, rate, max_sequences=16)
    found, ended = run.watched, records(run)
    assert found is not None
    assert not run.num_preempted
    running = present(ended.scheduled_s, ended.end_s, found.time_s)
    assert np.array_equal(found.num_running, running)
    edges = np.append(0.0, found.time_s)
    waiting = overlap(ended.arrival_s, ended.scheduled_s, edges) / np.diff(edges)
    assert found.num_waiting == pytest.approx(waiting, abs=1e-6)


def test_caches_are_as_full_as_what_runs() -> None:
    """Two requests of 10 tokens in and 300 out, a token a second, in blocks of 16 tokens, of which there are 1,000."""
    run = simulated(one_pool(1), requests=rows((0.0, 10, 300), (0.0, 10, 300)), watch=True)
    assert run.watched is not None
    used, time_s = run.watched.cache_fraction * 1000, run.watched.time_s
    whole = 2 * np.ceil((10 + np.floor(time_s)) / 16)
    assert np.all(np.abs(used - whole) <= 2.0 + 1e-9)  # a block of each
    assert used[-1] > 30


@pytest.mark.parametrize("rate", [0.02, 1.0, 20.0, 400.0])
def test_a_run_of_any_length_has_so_many_readings_at_equal_distances(rate: float) -> None:
    run = watched(500, rate)
    assert run.watched is not None
    time_s = run.watched.time_s
    assert time_s.size <= NUM_LOOKS
    assert time_s.size >= min(NUM_LOOKS // 2, int(run.duration_s / FIRST_S))
    assert np.diff(time_s) == pytest.approx(np.full(time_s.size - 1, time_s[0]))
    assert run.duration_s - time_s[0] <= time_s[-1] <= run.duration_s


def test_being_read_changes_nothing() -> None:
    asked = poisson(500, 20.0, spread=0.5)
    plain, read = (simulate_serving(fleet(2), asked, watch=watch, record=True) for watch in (False, True))
    assert plain.watched is None
    assert np.array_equal(records(plain).end_s, records(read).end_s)
    assert plain.num_events == read.num_events


def test_as_interpreted_so_compiled() -> None:
    runs = [watched(60, 5.0, compiled=compiled).watched for compiled in (True, False)]
    for name in ("time_s", "num_waiting", "num_running", "cache_fraction"):
        assert np.array_equal(*(getattr(run, name) for run in runs))


def test_a_queue_that_grows_is_seen_to_grow() -> None:
    run = watched(3000, 200.0, 1)
    assert run.watched is not None
    coming = run.watched.time_s < 15.0
    waiting = run.watched.num_waiting[coming]
    thirds = [part.mean() for part in np.array_split(waiting, 3)]
    assert thirds == sorted(thirds)
    assert thirds[-1] > 100
