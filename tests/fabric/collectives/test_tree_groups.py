"""Trees of groups over narrow places: which domains they join, which ranks of a group a part has, and the least."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.fabric.collectives.test_by_hand import changed
from tests.fabric.collectives.test_sent import tree_messages

from datahall.fabric.collectives.crossing import Sends, crossing_share, least_s, straddling_share
from datahall.fabric.topology.cuts import Cut


def row(*sizes: int, rate: float = 1.0, stride: int = 1) -> Cut:
    return Cut(
        name="leaf", num_below=min(sizes), num_full=max(sizes), bytes_per_s=rate, link_bytes_per_s=rate,
        sizes=tuple((size, 1) for size in sizes), widest_bytes_per_s=rate, stride=stride,
    )  # fmt: skip


def carried(num_ranks: int, num_domain: int, inside: set[int]) -> float:
    return sum(
        share
        for source, target, share in tree_messages(num_ranks, num_domain)
        if source in inside and target not in inside
    )


@pytest.mark.parametrize("num_domain", [1, 2, 4])
@pytest.mark.parametrize(("below", "parts"), [(4, 4), (4, 8), (8, 3), (8, 5), (12, 3)])
def test_a_tree_joins_the_domains_of_the_machine(num_domain: int, below: int, parts: int) -> None:
    """The bytes of all messages out of the busiest leaf, one from each domain to another, over its 2 B/s."""
    ranks = below * parts
    machine = changed(num_domain=num_domain, cuts=(row(*[below] * parts, rate=2.0),))
    most = max(
        carried(ranks, num_domain, set(range(first, first + below))) for first in range(0, ranks, below)
    )
    assert least_s(machine, "all-reduce", np.array([60.0]), ranks, "tree")[0] == pytest.approx(most * 60 / 2)


@pytest.mark.parametrize("ranks", [3, 4, 5, 8, 11])
@pytest.mark.parametrize("stride", [1, 2, 3, 5])
def test_ranks_at_either_end_of_their_groups_send_what_their_messages_carry(ranks: int, stride: int) -> None:
    """Groups between each other's ranks on two leaves, the first as large as it may be: group by group."""
    for held in range(1, ranks * stride):
        sizes = (held, ranks * stride - held)
        ends = [0, held, ranks * stride]
        out = [
            sum(
                carried(ranks, 1, {rank for rank in range(ranks) if begin <= first + rank * stride < end})
                for first in range(stride)
            )
            for begin, end in pairwise(ends)
        ]
        share = straddling_share(Sends("all-reduce", "tree"), ranks, row(*sizes, stride=stride))
        assert share == pytest.approx(max(out))


@pytest.mark.parametrize("num_domain", [4, 8])
@pytest.mark.parametrize("below", [1, 2])
def test_a_tree_of_domains_sends_no_less_than_any_where_leaves_are_smaller(
    num_domain: int, below: int
) -> None:
    """Two domains on k leaves: the two halves of the array pass between the domains once each way, yet k leaves must
    hand 2(k − 1) arrays out among them."""
    ranks = 2 * num_domain
    leaves = ranks // below
    share = crossing_share(Sends("all-reduce", "tree", num_domain), ranks, row(*[below] * leaves))
    assert share == pytest.approx(2 * (leaves - 1) / leaves)
