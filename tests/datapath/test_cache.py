"""What a cache answers, beside one that is played through sample by sample."""

from __future__ import annotations

import random
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.datapath.cache import hit_fraction


def played(num_samples: int, num_cached: int, num_hosts: int, num_epochs: int, seed: int) -> float:
    """Hits of the first of some hosts with an LRU cache; every epoch deals all samples out anew."""
    draw, cache = random.Random(seed), OrderedDict[int, None]()
    hits = reads = 0
    for epoch in range(num_epochs):
        order = list(range(num_samples))
        draw.shuffle(order)
        for sample in order[: num_samples // num_hosts]:
            found = sample in cache
            if epoch >= num_epochs // 2:
                reads, hits = reads + 1, hits + found
            cache[sample] = None
            cache.move_to_end(sample)
            if len(cache) > num_cached:
                cache.popitem(last=False)
    return hits / reads


@pytest.mark.parametrize("share", [0.1, 0.35, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("num_hosts", [1, 2, 5])
def test_lru_played_through_agrees(share: float, num_hosts: int) -> None:
    expected = hit_fraction(share, 1.0, "lru", "random", num_hosts)
    found = played(3000, round(3000 * share), num_hosts, 8 + 12 * num_hosts, seed=1)
    assert found == pytest.approx(expected, abs=0.012)


def test_the_same_order_every_time_is_answered_by_all_or_nothing() -> None:
    assert hit_fraction(0.99, 1.0, "lru", "none") == 0.0
    assert hit_fraction(1.0, 1.0, "lru", "none") == 1.0
    assert hit_fraction(0.99, 1.0, "pinned", "none") == 0.99


@given(st.floats(0.0, 1.5), st.floats(1.0, 1.5), st.integers(1, 300))
def test_a_larger_cache_answers_more_and_keeping_a_part_is_best(
    share: float, times: float, num_hosts: int
) -> None:
    found = hit_fraction(share, 1.0, "lru", "random", num_hosts)
    assert 0.0 <= found <= hit_fraction(share, 1.0, "pinned") + 1e-12
    assert hit_fraction(share * times, 1.0, "lru", "random", num_hosts) >= found - 1e-12
    assert hit_fraction(share, 1.0, "lru", "random", num_hosts + 1) >= found - 1e-9


def test_no_cache_answers_nothing_and_many_hosts_are_like_chance() -> None:
    assert hit_fraction(0.0, 1.0, "lru") == 0.0
    assert hit_fraction(0.4, 1.0, "lru", "random", 100_000) == pytest.approx(0.4, abs=1e-4)
