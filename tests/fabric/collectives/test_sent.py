"""What algorithms send out of a part of their ranks, against counting their messages one by one."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.fabric.collectives.algorithms.sent import two_trees
from datahall.fabric.collectives.algorithms.steps import filled, phases
from datahall.fabric.collectives.algorithms.table import sent, sent_between
from datahall.fabric.collectives.crossing import Sends, crossing_share, straddling_share
from datahall.fabric.topology.cuts import Cut
from datahall.scenario.words import Collective

STEPPED: list[tuple[Collective, str]] = [
    ("all-reduce", "ring"), ("all-gather", "ring"), ("reduce-scatter", "ring"), ("all-to-all", "direct"),
    ("send-recv", "direct"),
]  # fmt: skip
Message = tuple[int, int, float]


def pat_messages(num_ranks: int) -> list[Message]:
    """All-gather by a binomial tree from every rank, the farthest steps first; everybody has all in the end."""
    held = {rank: {rank} for rank in range(num_ranks)}
    found: list[Message] = []
    for root in range(num_ranks):
        has, distance = [0], 1 << (num_ranks - 1).bit_length()
        while distance > 1:
            distance //= 2
            for place in [place + distance for place in has if place + distance < num_ranks]:
                there = (root + place) % num_ranks
                found.append(((there - distance) % num_ranks, there, 1 / num_ranks))
                held[there].add(root)
                has.append(place)
    assert all(len(pieces) == num_ranks for pieces in held.values())
    return found


def tree_messages(num_ranks: int, num_domain: int) -> list[Message]:
    """Up and down both trees, half of the array each, from the first rank of a domain to that of another."""
    ends = zip(*(column.tolist() for column in two_trees(-(-num_ranks // num_domain))), strict=True)
    up = [(child * num_domain, parent * num_domain, 0.5) for child, parent in ends]
    return up + [(parent, child, half) for child, parent, half in up]


def stepped_messages(kind: Collective, name: str, num_ranks: int, num_domain: int) -> list[Message]:
    return [
        (source, target, phase.num_bytes * phase.num_rounds)
        for phase in phases(kind, name, num_ranks, 1.0, filled(num_ranks, num_domain))
        for source, target in zip(phase.source.tolist(), phase.target.tolist(), strict=True)
    ]


def messages(kind: Collective, name: str, num_ranks: int, num_domain: int) -> list[Message]:
    if name == "PAT":
        return pat_messages(num_ranks)
    if name == "tree":
        return tree_messages(num_ranks, num_domain)
    return stepped_messages(kind, name, num_ranks, num_domain)


@given(
    what=st.sampled_from([*STEPPED, ("all-reduce", "tree"), ("all-gather", "PAT")]),
    domains=st.integers(2, 9), num_domain=st.integers(1, 4), data=st.data(),
)  # fmt: skip
def test_a_part_of_whole_domains_sends_what_its_messages_carry(
    what: tuple[Collective, str], domains: int, num_domain: int, data: st.DataObject
) -> None:
    kind, name = what
    size = 1 if name == "PAT" else num_domain  # which runs with one rank a node
    ranks = domains * size
    begin = data.draw(st.integers(0, domains - 1))
    end = data.draw(st.integers(begin + 1, domains))
    first, last = begin * size, end * size
    out = into = 0.0
    for source, target, share in messages(kind, name, ranks, size):
        leaves, enters = first <= source < last, first <= target < last
        out, into = out + share * (leaves and not enters), into + share * (enters and not leaves)
    counted = sent(kind, name, ranks, size, np.array([first]), np.array([last]))[0]
    assert counted == pytest.approx(out) == pytest.approx(into)


@given(
    what=st.sampled_from([*STEPPED, ("all-reduce", "tree"), ("all-gather", "PAT")]),
    parts=st.integers(3, 6), each=st.integers(1, 3), num_domain=st.integers(1, 3),
)  # fmt: skip
def test_a_part_sends_to_another_what_the_messages_between_them_carry(
    what: tuple[Collective, str], parts: int, each: int, num_domain: int
) -> None:
    kind, name = what
    size = 1 if name == "PAT" else num_domain
    below = each * size
    ranks = parts * below
    pairs = np.zeros((parts, parts))
    for source, target, share in messages(kind, name, ranks, size):
        pairs[source // below, target // below] += share
    np.fill_diagonal(pairs, 0.0)
    assert sent_between(kind, name, ranks, size, below) == pytest.approx(pairs.max())


def test_a_part_that_holds_most_ranks_sends_the_others_no_more_than_leaves_it() -> None:
    """Eight of ten ranks have pieces for two: all that leaves them goes there."""
    assert sent_between("all-to-all", "direct", 10, 1, 8) == pytest.approx(8 * 2 / 10)
    assert sent_between("all-to-all", "direct", 10, 1, 2) == pytest.approx(2 * 2 / 10)


@pytest.mark.parametrize("domains", [*range(2, 40), 64, 127])
def test_inner_domains_of_one_tree_are_leaves_of_the_other(domains: int) -> None:
    child, parent = two_trees(domains)
    trees = [nx.Graph(list(zip(*(c[half].tolist() for c in (child, parent)), strict=True)))
             for half in (slice(domains - 1), slice(domains - 1, None))]  # fmt: skip
    for tree in trees:
        assert nx.is_tree(tree)
        assert set(tree) == set(range(domains))
        assert max(degree for _, degree in tree.degree) <= 3
    inner = [{domain for domain, degree in tree.degree if degree > 1} for tree in trees]
    # of an odd number one is inner in both, or the first of either
    assert len(inner[0] & inner[1]) <= domains % 2


@given(
    what=st.sampled_from([*STEPPED, ("all-reduce", "tree"), ("all-gather", "PAT"), ("broadcast", "ring")]),
    ranks=st.integers(2, 40), below=st.integers(1, 40), num_domain=st.integers(1, 8),
)  # fmt: skip
def test_no_algorithm_sends_less_than_any_has_to(
    what: tuple[Collective, str], ranks: int, below: int, num_domain: int
) -> None:
    cut = Cut(
        name="part", num_below=below, num_full=below, bytes_per_s=1.0, link_bytes_per_s=1.0,
        sizes=((below, -(-ranks // below)),),
    )  # fmt: skip
    own, any_ = Sends(what[0], what[1], min(num_domain, ranks)), Sends(what[0])
    assert crossing_share(own, ranks, cut) >= crossing_share(any_, ranks, cut)
    assert straddling_share(own, ranks, cut) >= straddling_share(any_, ranks, cut)
