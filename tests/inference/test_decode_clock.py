"""The clock of decoding requests against counting every tick."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.inference.engine.replica import Speculation
from datahall.inference.engine.speculation import expected_tokens
from datahall.inference.simulation.decode_clock import (
    blocks_needed,
    blocks_since,
    leap_time,
    phase_of,
    push_finish,
    remove_finish,
    steps_until,
    ticks_that_fit,
)
from datahall.inference.simulation.replica_queue import speculated_steps
from datahall.inference.simulation.setup import renewal
from datahall.inference.simulation.state import NONE, REPLICA, SLOT, ceil_div

clocks = st.integers(0, 100)
periods = st.integers(1, 20)


def replica_of(phases: list[int], period: int) -> Any:
    """One replica whose decoding requests have these phases."""
    counts = np.bincount(np.array(phases, np.int64), minlength=period)
    replicas = np.zeros(1, REPLICA)
    replicas["phased"] = len(phases)
    return SimpleNamespace(replicas=replicas, phases=counts[None, :].astype(np.int64))


def takes_block(tick: int, phase: int, period: int) -> bool:
    """A request of a phase takes a block at every period-th tick."""
    return (tick + phase) % period == 0


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1, max_size=60), st.randoms())
def test_the_heap_always_has_the_request_that_ends_first_on_top(
    moves: list[tuple[int, bool]], random: Any
) -> None:
    state: Any = SimpleNamespace(
        replicas=np.zeros(2, REPLICA), slots=np.zeros(64, SLOT), heap=np.zeros((2, 128), np.int64)
    )
    held: dict[int, int] = {}
    for slot, (finish, leaves) in enumerate(moves):
        push_finish(state, 1, slot, finish)
        held[slot] = finish
        if leaves:
            gone = random.choice(sorted(held))
            remove_finish(state, 1, int(state.slots[gone]["place"]))
            del held[gone]
        assert state.replicas[1]["decoding"] == len(held)
        assert state.replicas[0]["decoding"] == 0
        for one, end in held.items():
            place = int(state.slots[one]["place"])
            assert state.heap[1, 2 * place : 2 * place + 2].tolist() == [end, one]
        if held:
            assert state.heap[1, 0] == min(held.values())
    while held:  # they leave in the order of their ends
        slot = int(state.heap[1, 1])
        assert held.pop(slot) == min([*held.values(), state.heap[1, 0]])
        remove_finish(state, 1, 0)


@given(clocks, st.integers(0, 40), periods)
def test_a_request_takes_its_next_block_when_its_last_is_full(clock: int, slack: int, period: int) -> None:
    """With so many steps left in its last block, the tick after them needs one, and then every period-th."""
    phase = phase_of(clock, slack, period)
    assert 0 <= phase < period
    assert takes_block(clock + slack, phase, period)


@given(clocks, st.integers(0, 60), st.integers(0, 19), periods)
def test_blocks_since_a_tick_are_those_counted_one_by_one(
    clock: int, steps: int, phase: int, period: int
) -> None:
    phase %= period
    counted = sum(takes_block(tick, phase, period) for tick in range(clock, clock + steps))
    assert blocks_since(clock, clock + steps, phase, period) == counted
    assert blocks_since(clock, clock + steps, NONE, period) == 0


@given(clocks, st.integers(0, 60), st.lists(st.integers(0, 19), max_size=12), periods, st.integers(0, 80))
def test_blocks_of_many_ticks_are_those_of_each(
    first: int, steps: int, phases: list[int], period: int, free: int
) -> None:
    phases = [phase % period for phase in phases]
    state = replica_of(phases, period)
    each = [sum(takes_block(tick, phase, period) for phase in phases) for tick in range(first, first + steps)]
    assert blocks_needed(state, 0, period, first, first + steps) == sum(each)
    fit = 0
    while fit < steps and sum(each[: fit + 1]) <= free:
        fit += 1
    assert ticks_that_fit(state, 0, period, first, steps, free) == fit


def test_no_ticks_need_no_blocks() -> None:
    assert blocks_needed(replica_of([0, 0], 1), 0, 1, 5, 5) == 0
    assert blocks_needed(replica_of([0, 0], 1), 0, 1, 5, 4) == 0


@given(st.floats(0.1, 10.0), st.floats(-0.01, 0.5), st.integers(1, 12))
def test_a_leap_takes_the_sum_of_its_steps(step_s: float, growth_s: float, num: int) -> None:
    assert leap_time(step_s, growth_s, num) == pytest.approx(sum(step_s + growth_s * i for i in range(num)))


@settings(max_examples=300)
@given(
    st.floats(0.1, 10.0),
    st.sampled_from([0.0, 1e-9, 0.01, 0.1, -0.001]),
    st.floats(0.0, 60.0),
    st.integers(1, 40),
)
def test_the_step_in_which_a_moment_falls_is_found(
    step_s: float, growth_s: float, elapsed_s: float, most: int
) -> None:
    count, done_s = 0, 0.0
    while count < most and (count == 0 or done_s < elapsed_s):
        done_s += step_s + growth_s * count
        count += 1
    found = steps_until(step_s, growth_s, elapsed_s, most)
    assert found == count or leap_time(step_s, growth_s, min(found, count)) == pytest.approx(elapsed_s)


def test_a_moment_at_the_end_of_a_step_is_in_it() -> None:
    assert [steps_until(2.0, 0.0, at, 5) for at in (0.0, 1.0, 2.0, 2.5, 4.0, 99.0)] == [1, 1, 1, 2, 2, 5]
    # steps of 2, 3, 4 s end at 2, 5 and 9 s
    assert [steps_until(2.0, 1.0, at, 5) for at in (2.0, 2.1, 5.0, 5.1, 9.0)] == [1, 2, 2, 3, 3]


@given(st.integers(0, 1000), st.integers(1, 64))
def test_whole_pieces(amount: int, size: int) -> None:
    assert ceil_div(amount, size) == math.ceil(amount / size)


@pytest.mark.parametrize(("num_draft", "acceptance"), [(1, 0.5), (3, 0.7), (4, 0.2), (2, 0.0)])
@pytest.mark.parametrize("tokens", [40, 300])
def test_steps_of_speculation_are_those_of_draws(num_draft: int, acceptance: float, tokens: int) -> None:
    """Tokens kept in each step, drawn until there are enough: mean and deviation of the number of steps."""
    draw = np.random.default_rng(3)
    kept = np.cumprod(draw.random((2000, tokens, num_draft)) < acceptance, axis=2).sum(axis=2) + 1
    drawn = (np.cumsum(kept, axis=1) < tokens).sum(axis=1) + 1
    mean = expected_tokens(acceptance, num_draft)
    excess, spread = renewal(Speculation(num_draft=num_draft, acceptance=acceptance), mean)
    steps = np.array(
        [
            speculated_steps(tokens, mean, excess, spread, num_draft + 1, luck)
            for luck in draw.standard_normal(4000)
        ]
    )
    assert steps.mean() == pytest.approx(drawn.mean(), rel=0.01, abs=0.15)
    assert steps.std() == pytest.approx(drawn.std(), rel=0.1, abs=0.15)
    assert steps.min() >= math.ceil(tokens / (num_draft + 1))
    assert steps.max() <= tokens


@pytest.mark.parametrize(("luck", "steps"), [(-99.0, 3), (99.0, 10), (0.0, 6)])
def test_luck_makes_neither_more_than_all_nor_less_than_one(luck: float, steps: int) -> None:
    """10 tokens, 2 a step on average and 4 at most: 5 steps and an excess of ¾."""
    assert speculated_steps(10, 2.0, 0.75, 1.0, 4, luck) == steps
    assert speculated_steps(1, 2.0, 0.75, 1.0, 4, -99.0) == 1
