"""Trees over scale-up domains where a part ends inside one, or the last domain is not full: messages counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.fabric.collectives.test_sent import tree_messages

from datahall.fabric.collectives.algorithms.table import sent


def carried(num_ranks: int, num_domain: int, inside: set[int]) -> float:
    """What the messages of both trees carry out of some domains."""
    return sum(
        share
        for source, target, share in tree_messages(num_ranks, num_domain)
        if source // num_domain in inside and target // num_domain not in inside
    )


def out_of(num_ranks: int, num_domain: int, first: int, last: int) -> float:
    return float(sent("all-reduce", "tree", num_ranks, num_domain, np.array([first]), np.array([last]))[0])


@given(domains=st.integers(2, 9), size=st.integers(2, 6), data=st.data())
def test_a_domain_across_the_end_of_a_part_counts_where_most_of_its_ranks_are(
    domains: int, size: int, data: st.DataObject
) -> None:
    """Rank by rank; of two halves the first has it."""
    ranks = domains * size
    first = data.draw(st.integers(0, ranks - 1))
    last = data.draw(st.integers(first + 1, ranks))
    assume(last - first < ranks)
    inside = set()
    for domain in range(domains):
        held = [first <= rank < last for rank in range(domain * size, (domain + 1) * size)]
        if 2 * sum(held) > size or (2 * sum(held) == size and held[0]):
            inside.add(domain)
    assume(inside)
    assert out_of(ranks, size, first, last) == pytest.approx(carried(ranks, size, inside))


@given(domains=st.integers(2, 9), size=st.integers(2, 6), data=st.data())
def test_the_last_domain_counts_however_few_ranks_are_in_it(
    domains: int, size: int, data: st.DataObject
) -> None:
    ranks = (domains - 1) * size + data.draw(st.integers(1, size))
    begin = data.draw(st.integers(1, domains - 1))
    inside = set(range(begin, domains))
    assert out_of(ranks, size, begin * size, ranks) == pytest.approx(carried(ranks, size, inside))


@pytest.mark.parametrize("size", [2, 3, 4, 8])
@pytest.mark.parametrize("domains", [2, 3, 4, 7])
def test_the_last_ranks_of_all_send_what_their_domain_does(domains: int, size: int) -> None:
    """A part of less than half of a domain has none for the most part, and yet its ranks are of one."""
    ranks = domains * size
    for few in range(1, size):
        assert out_of(ranks, size, ranks - few, ranks) == pytest.approx(carried(ranks, size, {domains - 1}))
