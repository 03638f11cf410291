"""Requests that share a prefix go to one replica, and prefixes are spread over all of them."""

from collections import Counter

import pytest

from datahall.inference.fleet.balancing import jump_hash
from datahall.inference.memory.prefix_cache import mixed

KEYS = [mixed(group * 2 + 1, 1) for group in range(4000)]


@pytest.mark.parametrize("num", [2, 4, 7, 64])
def test_keys_are_spread_evenly(num: int) -> None:
    held = Counter(jump_hash(key, num) for key in KEYS)
    assert set(held) == set(range(num))
    expected = len(KEYS) / num
    deviation = 5 * expected**0.5
    assert all(abs(count - expected) < deviation for count in held.values())


def test_one_more_replica_moves_only_its_own_share() -> None:
    moved = [(jump_hash(key, 8), jump_hash(key, 9)) for key in KEYS]
    others = [pair for pair in moved if pair[0] != pair[1]]
    assert all(after == 8 for _, after in others)
    assert len(others) == pytest.approx(len(KEYS) / 9, rel=0.2)
