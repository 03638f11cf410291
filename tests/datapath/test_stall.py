"""The wait for the next batch: limits, and an event-driven loader beside the closed form."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.datapath.stall import utilisation


def simulated(step_s: float, fetch_s: float, depth: int, phases: int, num_steps: int, seed: int) -> float:
    """A loader that puts batches into a store of so many places, and a chip that takes them."""
    env, draw = simpy.Environment(), random.Random(seed)
    ready: Any = simpy.Store(env, capacity=depth)
    worked = [0.0]

    def loader() -> Generator[Any, Any, None]:
        places: Any = room
        while True:
            yield places.get(1)  # a place is free
            yield env.timeout(sum(draw.expovariate(phases / fetch_s) for _ in range(phases)))
            yield ready.put(1)

    def chip() -> Generator[Any, Any, None]:
        for _ in range(num_steps):
            yield ready.get()
            yield room.put(1)
            yield env.timeout(step_s)
            worked[0] += step_s

    room: Any = simpy.Container(env, capacity=depth, init=depth)
    env.process(loader())
    env.run(env.process(chip()))
    return worked[0] / env.now


@pytest.mark.parametrize(
    ("fetch_s", "depth", "phases"),
    [(1.0, 1, 1), (0.7, 2, 1), (1.0, 4, 4), (1.3, 2, 4), (0.9, 1, 16), (0.5, 3, 2), (1.0, 8, 1)],
)
def test_a_simulated_loader_agrees_with_the_closed_form(fetch_s: float, depth: int, phases: int) -> None:
    closed = utilisation(1.0, fetch_s, depth, phases**-0.5)
    assert simulated(1.0, fetch_s, depth, phases, 12_000, seed=3) == pytest.approx(closed, abs=0.012)


def test_by_hand_one_batch_ahead_and_a_time_without_memory() -> None:
    """The loader begins as the chip does: it is missed by E[(X − 1)+] = 1/e."""
    assert utilisation(1.0, 1.0, 1, 1.0) == pytest.approx(1.0 / (1.0 + 0.36787944117))


@given(st.floats(0.01, 100.0), st.floats(0.01, 100.0))
def test_nothing_ahead_is_a_sum_and_no_variation_a_maximum(step_s: float, fetch_s: float) -> None:
    assert utilisation(step_s, fetch_s, 0, 0.0) == pytest.approx(step_s / (step_s + fetch_s))
    assert utilisation(step_s, fetch_s, 1, 0.0) == pytest.approx(min(1.0, step_s / fetch_s))


@settings(max_examples=80, deadline=None)
@given(st.floats(0.1, 10.0), st.integers(1, 6), st.floats(0.0, 2.0))
def test_variation_costs_and_depth_mends(fetch_s: float, depth: int, variation: float) -> None:
    found = utilisation(1.0, fetch_s, depth, variation)
    assert utilisation(1.0, fetch_s, depth, 0.0) >= found - 1e-9
    assert utilisation(1.0, fetch_s, depth + 1, variation) >= found - 1e-6
    assert utilisation(1.0, fetch_s, 0, variation) <= found + 1e-9
    assert utilisation(1.0, fetch_s, depth, variation * 1.3) <= found + 2e-3


def test_a_deep_buffer_is_as_good_as_times_that_never_vary() -> None:
    for fetch_s in (0.5, 0.8, 1.25, 2.0):
        assert utilisation(1.0, fetch_s, 200, 0.5) == pytest.approx(min(1.0, 1.0 / fetch_s), abs=2e-3)


@pytest.mark.parametrize("variation", [1.0, 0.7071067811865476, 0.5, 0.125, 1e-6])
@pytest.mark.parametrize("fetch_s", [0.8, 1.0, 1.2])
def test_it_is_continuous_where_the_number_of_phases_changes(fetch_s: float, variation: float) -> None:
    below, above = (utilisation(1.0, fetch_s, 2, variation * side) for side in (1 - 1e-9, 1 + 1e-9))
    assert below == pytest.approx(above, abs=1e-6)


def test_what_takes_no_time_or_forever() -> None:
    assert utilisation(1.0, 0.0, 0, 1.0) == 1.0
    assert utilisation(1.0, float("inf"), 4, 0.5) == 0.0
