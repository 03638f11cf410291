"""How many micro-batches each replica of several kinds gets, so that none waits long for another.

    kind k takes   slotₖ · mₖ + onceₖ           even: m = M / Σ dp, the slowest kind sets the pace
    in proportion  min over m of maxₖ (slotₖ · mₖ + onceₖ)      where   Σ dpₖ · mₖ ≥ M

M micro-batches of a global batch, whole ones, and where stages of a pipeline interleave multiples of these.  Replicas
of a kind get mₖ at most, some of them fewer where the batch does not fill all.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import NamedTuple

ROUNDING = 1e-9  # of a micro-batch


class Replicas(NamedTuple):
    """Equal replicas of a run."""

    num: int
    slot_s: float  # of a micro-batch
    once_s: float  # of a step beside them, if it has any
    multiple: int = 1  # in which its micro-batches come

    def busy_s(self, num_micro: int) -> float:
        """How long so many micro-batches take."""
        return self.slot_s * num_micro + self.once_s if num_micro else 0.0


def even_time(kinds: Sequence[Replicas], num_micro: int) -> float:
    """Until the slowest replica is done where each has as many [s]."""
    return max(one.busy_s(even_share(kinds, num_micro)) for one in kinds)


def even_share(kinds: Sequence[Replicas], num_micro: int) -> int:
    """Micro-batches of each replica where all have as many, at most."""
    together = sum(one.num for one in kinds) * kinds[0].multiple
    return ceil(num_micro / together) * kinds[0].multiple


def least_time(kinds: Sequence[Replicas], num_micro: int) -> float:
    """What no division of all micro-batches beats, were they divisible [s]: no kind is idle, all end together."""
    best = 0.0
    # a kind takes part from the time on at which its own work begins
    for count in range(1, len(kinds) + 1):
        early = sorted(kinds, key=lambda one: one.once_s)[:count]
        pace = sum(one.num / one.slot_s for one in early)
        time_s = (num_micro + sum(one.num * one.once_s / one.slot_s for one in early)) / pace
        best = time_s if count == 1 else min(best, time_s)
    return best


def in_proportion(kinds: Sequence[Replicas], num_micro: int) -> tuple[int, ...]:
    """The most micro-batches of a replica of each kind with which all are done first.

    >>> in_proportion([Replicas(4, 1.0, 0.0), Replicas(4, 2.0, 0.0)], 24)
    (4, 2)
    """
    start_s = least_time(kinds, num_micro)
    found = [
        max(0, floor((start_s - one.once_s) / one.slot_s / one.multiple + ROUNDING)) * one.multiple
        for one in kinds
    ]
    while sum(one.num * count for one, count in zip(kinds, found, strict=True)) < num_micro:
        place = min(range(len(kinds)), key=lambda at: kinds[at].busy_s(found[at] + kinds[at].multiple))
        found[place] += kinds[place].multiple
    return tuple(found)


def uneven_time(kinds: Sequence[Replicas], counts: Sequence[int]) -> float:
    """Until the slowest replica is done where each kind has its own number [s]."""
    return max(one.busy_s(count) for one, count in zip(kinds, counts, strict=True))
