"""What an algorithm sends out of some of its ranks, over the size of the array; as much comes back in.

Ranks stand in a row, g of them in a scale-up domain; a part [a, b) of them lies at an end of the row or inside it.

    ring: r (n−1)/n, r rounds of n − 1 steps        direct: m (n−m)/n, m ranks in the part
    two trees over domains, half of the array each: half of the edges that leave the part
    PAT: Σ over distances d of (steps of d in a tree) · min(d, n−d, m, n−m)/n

Reference: Sanders, Speck and Träff, 2009 (two trees); Jeaugey, "PAT", 2025.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from datahall.fabric.collectives.algorithms.bus import Floats
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.topology.graph import Ints
from datahall.scenario.words import Collective

Leaving = Callable[[Collective, int, int, Ints, Ints], Floats]


class Sending(NamedTuple):
    """What an algorithm sends over a narrow place, over the size of the array."""

    out: Leaving  # of each part [first, last) of the ranks
    between: Callable[[Collective, int, int, int], float]  # the most that a part of so many sends to another


def pat_steps(num_ranks: int, distance: int) -> int:
    """Pieces that each rank of PAT sends to the one so much further: the steps of that distance in a binomial tree.

    >>> [pat_steps(8, distance) for distance in (1, 2, 4)]
    [4, 2, 1]
    """
    return (num_ranks - 1 + distance) // (2 * distance)


def _pat_between(_: Collective, num_ranks: int, __: int, num_part: int) -> float:
    parts = -(-num_ranks // num_part)
    heard, distance = np.zeros(parts), 1
    while distance < num_ranks:
        further, over = divmod(distance, num_part)
        steps = pat_steps(num_ranks, distance)
        heard[further % parts] += steps * (num_part - over)
        heard[(further + 1) % parts] += steps * over
        distance *= 2
    return float(heard[1:].max(initial=0.0)) / num_ranks


def _ring(collective: Collective, num_ranks: int, _: int, first: Ints, __: Ints) -> Floats:
    row = MOVES[collective]
    return np.full(first.shape, 1.0 if row.is_rooted else row.num_rounds * (num_ranks - 1) / num_ranks)


def _direct(collective: Collective, num_ranks: int, _: int, first: Ints, last: Ints) -> Floats:
    inside = last - first
    return (
        np.ones(first.shape) if MOVES[collective].is_pairwise else inside * (num_ranks - inside) / num_ranks
    )


def _pat(_: Collective, num_ranks: int, __: int, first: Ints, last: Ints) -> Floats:
    inside = last - first
    ends = np.minimum(inside, num_ranks - inside)
    total, distance = np.zeros(first.shape), 1
    while distance < num_ranks:
        total = total + pat_steps(num_ranks, distance) * np.minimum(ends, min(distance, num_ranks - distance))
        distance *= 2
    return np.asarray(total / num_ranks, dtype=np.float64)


def _trees(_: Collective, num_ranks: int, num_domain: int, first: Ints, last: Ints) -> Floats:
    domains = -(-num_ranks // num_domain)
    # a domain that lies across the end of a part counts where most of its ranks are
    begin, end = ((rank + num_domain // 2) // num_domain for rank in (first, last))
    end = np.where(last == num_ranks, domains, np.maximum(end, begin + 1))
    begin = np.minimum(begin, end - 1)
    ranges, index = np.unique(np.stack([begin, end]), axis=1, return_inverse=True)
    edges = [_leaving(domains, int(one), int(other)) for one, other in ranges.T]
    return np.asarray(edges, dtype=np.float64)[index.reshape(first.shape)] / 2


def _trees_between(_: Collective, num_ranks: int, num_domain: int, num_part: int) -> float:
    # a domain is in the part where most of its ranks are
    parts = [
        (ends * num_domain + num_domain // 2) // num_part for ends in two_trees(-(-num_ranks // num_domain))
    ]
    both = np.sort(np.stack(parts), axis=0)
    count = np.unique(both[:, both[0] != both[1]], axis=1, return_counts=True)[1]
    return float(count.max(initial=0)) / 2


@lru_cache(maxsize=65536)
def _leaving(num_domains: int, begin: int, end: int) -> int:
    """Edges of both trees with one end in [begin, end)."""
    child, parent = two_trees(num_domains)
    return int((((child >= begin) & (child < end)) != ((parent >= begin) & (parent < end))).sum())


@lru_cache(maxsize=1024)
def two_trees(num_domains: int) -> tuple[Ints, Ints]:
    """Children and parents of NCCL's two trees, one after the other: inner domains of one are leaves of the other.

    >>> [column.tolist() for column in two_trees(4)]
    [[1, 2, 3, 2, 1, 0], [2, 0, 2, 1, 3, 1]]
    """
    child = np.arange(1, num_domains, dtype=np.int32)
    bit = child & -child
    parent = (child ^ bit) | (bit << 1)
    parent = np.where(parent >= num_domains, child ^ bit, parent).astype(np.int32)

    def second(place: Ints) -> Ints:
        return ((place + 1) % num_domains if num_domains % 2 else num_domains - 1 - place).astype(np.int32)

    return np.concatenate([child, second(child)]), np.concatenate([parent, second(parent)])


def _ring_between(collective: Collective, num_ranks: int, num_domain: int, num_part: int) -> float:
    """What passes along goes to the next part whole."""
    return _of_first(_ring, collective, num_ranks, num_domain, num_part)


def _direct_between(collective: Collective, num_ranks: int, num_domain: int, num_part: int) -> float:
    """Of pieces another part gets as many as it has ranks of the others."""
    out = _of_first(_direct, collective, num_ranks, num_domain, num_part)
    return out if MOVES[collective].is_pairwise else out * min(1.0, num_part / (num_ranks - num_part))


def _of_first(out: Leaving, collective: Collective, num_ranks: int, num_domain: int, num_part: int) -> float:
    first = np.zeros(1, np.int32)
    return float(out(collective, num_ranks, num_domain, first, first + num_part)[0])


RING, DIRECT = Sending(_ring, _ring_between), Sending(_direct, _direct_between)
PAT, TREES = Sending(_pat, _pat_between), Sending(_trees, _trees_between)
