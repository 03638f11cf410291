"""Runs of the prefix cache: the list by last use against a plain list, the table of chains against a dictionary."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.inference.memory.lru import insert, remove
from datahall.inference.memory.prefix_cache import mixed
from datahall.inference.memory.runs import add_run, find, forget, join, link_newest, new_runs, split, unlink
from datahall.inference.simulation.state import NONE, NUM_TIERS, RUN, TIER


def listed(runs: np.ndarray, ends: Any) -> tuple[list[int], list[int]]:
    """The list read from either end."""
    forward, back = [], []
    at = int(ends["oldest"])
    while at != NONE:
        forward.append(at)
        at = int(runs[at]["newer"])
    at = int(ends["newest"])
    while at != NONE:
        back.append(at)
        at = int(runs[at]["older"])
    return forward, back[::-1]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(-1, 7)), max_size=60))
def test_the_list_is_in_the_order_of_use(used: list[tuple[int, int]]) -> None:
    """Runs that come again go behind all others, or before one that is there."""
    runs, ends = np.zeros(8, RUN), np.zeros(1, TIER)[0]
    ends["oldest"] = ends["newest"] = NONE
    expected: list[int] = []
    for run, beside in used:
        if run in expected:
            remove(runs, ends, run)
            expected.remove(run)
        elif beside in expected:
            insert(runs, ends, run, int(runs[beside]["older"]), beside)
            expected.insert(expected.index(beside), run)
        else:
            insert(runs, ends, run, int(ends["newest"]), NONE)
            expected.append(run)
        assert listed(runs, ends) == (expected, expected)


def cache(num_blocks: int) -> Any:
    """An empty cache of two replicas."""
    runs, chains = new_runs(num_blocks)
    state = SimpleNamespace(runs=runs, chains=chains, tiers=np.zeros(2 * NUM_TIERS, TIER))
    state.tiers["oldest"] = state.tiers["newest"] = NONE
    return state


@pytest.mark.parametrize("tier", range(NUM_TIERS))
def test_a_run_that_is_cut_and_joined_is_what_it_was(tier: int) -> None:
    state = cache(40)
    row = state.tiers[NUM_TIERS + tier]
    before, run = (add_run(state, key, NONE, 3, 20, 0) for key in (7, 8))
    for one in (before, run):
        link_newest(state, 1, one, tier)
    assert row["held"] == 34
    upper = split(state, 1, run, 12)
    assert [state.runs[upper][name] for name in ("first", "last", "users", "before")] == [12, 20, -tier, run]
    assert listed(state.runs, row)[0] == [before, upper, run]  # the end is older
    unlink(state, 1, before)
    link_newest(state, 1, before, tier)
    assert join(state, 1, run)
    assert [state.runs[run][name] for name in ("first", "last", "after")] == [3, 20, NONE]
    assert listed(state.runs, row) == ([run, before], [run, before])
    assert row["held"] == 34
    assert not join(state, 1, run)


def test_runs_that_were_used_at_other_times_are_not_joined() -> None:
    state = cache(40)
    run = add_run(state, 7, NONE, 0, 20, 0)
    link_newest(state, 0, run, 0)
    upper = split(state, 0, run, 12)
    other = add_run(state, 8, NONE, 0, 4, 0)
    link_newest(state, 0, other, 0)
    unlink(state, 0, run)
    link_newest(state, 0, run, 0)
    assert listed(state.runs, state.tiers[0])[0] == [upper, other, run]
    assert not join(state, 0, run)
    state.runs[run]["users"], state.runs[upper]["users"] = 2, 1
    assert not join(state, 0, run)
    state.runs[upper]["users"] = 2
    assert join(state, 0, run)


# keys that fall on few places of a table of 16, so that they push each other on and around its end
KEYS = [place + 16 * turn for place in (0, 1, 14, 15) for turn in range(4)]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(KEYS), max_size=60))
def test_chains_are_found_whatever_was_forgotten(asked: list[int]) -> None:
    state = cache(4)
    assert (state.chains.size, state.runs.size) == (16, 9)
    held: dict[int, int] = {}
    for key in asked:
        if key in held:
            forget(state, held.pop(key))
        elif len(held) < 8:
            held[key] = add_run(state, key, NONE, 0, 1, 3)
            assert state.runs[held[key]]["users"] == 3
        for other in KEYS:
            assert find(state, other) == held.get(other, NONE)
        assert np.count_nonzero(state.chains) == len(held) == len(set(held.values()))


def test_a_chain_is_forgotten_from_its_end() -> None:
    state = cache(8)
    first = add_run(state, 5, NONE, 0, 4, 1)
    second = add_run(state, 5, first, 4, 6, 0)
    forget(state, second)
    assert find(state, 5) == first
    assert state.runs[first]["after"] == NONE
    assert add_run(state, 6, NONE, 0, 1, 0) == second  # nothing is wasted
    forget(state, first)
    assert find(state, 5) == NONE


def test_no_more_than_half_of_the_table_is_ever_in_use() -> None:
    for num in (0, 1, 2, 3, 100, 1000):
        runs, chains = new_runs(num)
        assert chains.size >= max(4, 4 * num)
        assert chains.size < max(5, 8 * num)
        assert chains.size & (chains.size - 1) == 0
        assert runs.size - 1 == 2 * num <= chains.size / 2


def test_keys_of_different_numbers_differ_and_fit_62_bits() -> None:
    keys = {mixed(left, right) for left in range(300) for right in range(300)}
    assert len(keys) == 90_000
    assert all(0 <= key < 1 << 62 for key in keys)
    assert mixed(1, 2) != mixed(2, 1)
    far = {mixed(1 << bit, 5) for bit in range(62)} | {mixed(5, 1 << bit) for bit in range(62)}
    assert len(far) >= 122  # every bit of either one counts
