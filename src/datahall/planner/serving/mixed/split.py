"""How many replicas of each kind hold a load at the least cost, where there are only so many of each.

    Σ nₖ · cₖ − what the s most capable of them hold ≥ offered,     nₖ ≤ most of kind k,     Σ ⌈nₖ / lₖ⌉ · lₖ · uₖ least

c is what a replica holds with its headroom left free, s the spare replicas, whichever they are that are out, u the cost
of one, l those that are paid together because they share a server.  Whole replicas of up to three kinds are tried, all
numbers of them that lie within reach of where fractions of replicas would end: fill the cheapest for what it holds,
then the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_KINDS = 3  # of one fleet
REACH = 200  # replicas more or fewer than fractions of them would be
LEAST_PART = 1e-9  # of a replica: less is none

Ints = NDArray[np.int64]


class Kind(NamedTuple):
    """Replicas of one kind of chip."""

    rate_per_s: float  # that one holds, with its headroom left free
    most: int  # that there can be
    usd: float  # of one, or whatever is to be least
    num_together: int = 1  # that are paid together

    @property
    def rate_usd(self) -> float:
        """The cost of holding a request a second."""
        return self.usd / self.rate_per_s


def cheapest_split(
    kinds: Sequence[Kind], offered_per_s: float, num_spare: int, *, least_kinds: int
) -> tuple[int, ...] | None:
    """The numbers of replicas of each kind that cost the least, 0 where there are none; None where all are too few.

    >>> cheapest_split([Kind(10.0, 3, 1.0), Kind(14.0, 100, 2.0)], 60.0, 0, least_kinds=1)
    (2, 3)
    """
    best: tuple[float, int, tuple[int, ...]] | None = None
    for places in _subsets(len(kinds), least_kinds):
        found = _within([kinds[place] for place in places], offered_per_s, num_spare)
        if found is None:
            continue
        usd, counts = found
        whole = [0] * len(kinds)
        for place, count in zip(places, counts, strict=True):
            whole[place] = count
        tried = (float(f"{usd:.10g}"), len(places), tuple(whole))
        best = tried if best is None or tried < best else best
    return None if best is None else best[2]


def all_hold(kinds: Sequence[Kind], num_spare: int) -> float:
    """Requests per second that all that can be had holds, the most capable spare ones out."""
    return held_by([one.rate_per_s for one in kinds], [one.most for one in kinds], num_spare)


def held_by(rates_per_s: Sequence[float], counts: Sequence[int], num_spare: int) -> float:
    """Requests per second that replicas hold with so many of the most capable out."""
    held, left = 0.0, num_spare
    for rate, count in sorted(zip(rates_per_s, counts, strict=True), reverse=True):
        out = min(left, count)
        held, left = held + (count - out) * rate, left - out
    return held


def spare_of(rates_per_s: Sequence[float], counts: Sequence[int], num_spare: int) -> tuple[int, ...]:
    """Of each kind how many are among the most capable, which may be out."""
    found, left = [0] * len(counts), num_spare
    for place in sorted(range(len(counts)), key=lambda one: -rates_per_s[one]):
        found[place] = min(left, counts[place])
        left -= found[place]
    return tuple(found)


def _subsets(num: int, least: int) -> Iterator[tuple[int, ...]]:
    for size in range(least, min(MOST_KINDS, num) + 1):
        yield from combinations(range(num), size)


def _within(
    kinds: Sequence[Kind], offered_per_s: float, num_spare: int
) -> tuple[float, tuple[int, ...]] | None:
    """The least cost with at least one replica of each of these kinds."""
    order = sorted(range(len(kinds)), key=lambda place: -kinds[place].rate_per_s)
    sorted_kinds = [kinds[place] for place in order]
    *first, last = sorted_kinds
    reach = _reach(sorted_kinds, offered_per_s, num_spare)
    counts: list[Ints] = [grid.ravel() for grid in np.meshgrid(*reach[:-1], indexing="ij")]
    size = counts[0].size if counts else 1
    left, held = np.full(size, num_spare, np.int64), np.zeros(size)
    for kind, count in zip(first, counts, strict=True):
        out = np.minimum(left, count)
        held, left = held + (count - out) * kind.rate_per_s, left - out
    # of the least capable as many as are still out, and as hold the rest
    missing = np.ceil((offered_per_s - held) / last.rate_per_s - LEAST_PART).astype(np.int64)
    counts.append(np.maximum(1, left + np.maximum(0, missing)))
    usd = sum(
        np.ceil(count / kind.num_together) * (kind.num_together * kind.usd)
        for kind, count in zip(sorted_kinds, counts, strict=True)
    )
    assert isinstance(usd, np.ndarray)
    usd = np.where(counts[-1] <= last.most, usd, np.inf)
    place = int(np.argmin(usd))
    if not np.isfinite(usd[place]):
        return None
    found = {at: int(count[place]) for at, count in zip(order, counts, strict=True)}
    return float(usd[place]), tuple(found[at] for at in range(len(kinds)))


def _reach(kinds: Sequence[Kind], offered_per_s: float, num_spare: int) -> list[Ints]:
    """The numbers of each kind that are tried: near those of which fractions would hold the load, spare ones too."""
    left = offered_per_s + num_spare * max(one.rate_per_s for one in kinds)
    found: dict[int, Ints] = {}
    for place in sorted(range(len(kinds)), key=lambda one: kinds[one].rate_usd):
        kind = kinds[place]
        middle = min(kind.most, ceil(left / kind.rate_per_s))
        left = max(0.0, left - middle * kind.rate_per_s)
        found[place] = np.arange(max(1, middle - REACH), min(kind.most, middle + REACH) + 1)
    return [found[place] for place in range(len(kinds))]
