"""Entries of the prefix cache: the list by last use against a plain list, the table of keys against a dictionary."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.inference.memory.lru import append, remove
from datahall.inference.memory.prefix_cache import (
    find,
    forget,
    insert,
    link_newest,
    mixed,
    new_entries,
    unlink,
)
from datahall.inference.simulation.state import ENTRY, FLEET, NONE, REPLICA


def listed(entries: np.ndarray, ends: Any) -> tuple[list[int], list[int]]:
    """The list read from either end."""
    forward, back = [], []
    at = int(ends["oldest"])
    while at != NONE:
        forward.append(at)
        at = int(entries[at]["newer"])
    at = int(ends["newest"])
    while at != NONE:
        back.append(at)
        at = int(entries[at]["older"])
    return forward, back[::-1]


@given(st.lists(st.integers(0, 7), max_size=60))
def test_the_list_is_in_the_order_of_use(used: list[int]) -> None:
    state: Any = SimpleNamespace(entries=np.zeros(8, ENTRY), replicas=np.zeros(2, REPLICA))
    state.replicas["oldest"] = state.replicas["newest"] = NONE
    expected: list[int] = []
    for entry in used:
        if entry in expected:
            unlink(state, 1, entry)
            expected.remove(entry)
        if entry % 3:
            link_newest(state, 1, entry)
            expected.append(entry)
        assert listed(state.entries, state.replicas[1]) == (expected, expected)
        assert state.replicas[1]["cached"] == len(expected)
    plain = np.zeros(1, REPLICA)
    plain["oldest"] = plain["newest"] = NONE
    append(state.entries, plain[0], 3)
    remove(state.entries, plain[0], 3)
    assert plain[0]["oldest"] == plain[0]["newest"] == NONE


# keys that fall on few places of a table of 16, so that they push each other on and around its end
KEYS = [place + 16 * turn for place in (0, 1, 14, 15) for turn in range(4)]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(KEYS), max_size=60))
def test_keys_are_found_whatever_was_forgotten(asked: list[int]) -> None:
    state: Any = SimpleNamespace(entries=new_entries(4), fleet=np.zeros(1, FLEET))
    assert state.entries.size == 16
    state.fleet["num_spare"] = 8
    held: dict[int, int] = {}
    for key in asked:
        if key in held:
            forget(state, held.pop(key))
        elif len(held) < 8:
            state.entries["users"] = 7  # of those before
            held[key] = insert(state, key)
            assert state.entries[held[key]]["users"] == 0
        for other in KEYS:
            assert find(state, other) == held.get(other, NONE)
        assert state.fleet[0]["num_spare"] == 8 - len(held)
        assert len(set(held.values())) == len(held)


def test_no_more_than_half_of_the_table_is_ever_in_use() -> None:
    for num in (0, 1, 2, 3, 100, 1000):
        size = new_entries(num).size
        assert size >= max(4, 4 * num)
        assert size < max(5, 8 * num)
        assert size & (size - 1) == 0


def test_keys_of_different_numbers_differ_and_fit_62_bits() -> None:
    keys = {mixed(left, right) for left in range(300) for right in range(300)}
    assert len(keys) == 90_000
    assert all(0 <= key < 1 << 62 for key in keys)
    assert mixed(1, 2) != mixed(2, 1)
    far = {mixed(1 << bit, 5) for bit in range(62)} | {mixed(5, 1 << bit) for bit in range(62)}
    assert len(far) >= 122  # every bit of either one counts
