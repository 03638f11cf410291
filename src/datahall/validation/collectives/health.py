"""Does a measured run look like a working fabric?  A sick one is named, never fitted and never scored.

Three signs: the person who published it says so; its bandwidth falls to less than half as messages grow; or at
half a gigabyte and more, where only wires count, it stays below 55 % of what a working fabric of that kind reaches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SAID = r"degraded|misconfigured|pathological|regression|below expectation|drops|single shot"
CLIFF = 0.5
HALF_RATE = 0.55
LARGE_BYTES = 5e8


def said_unhealthy(notes: str) -> bool:
    """Whether whoever published a run calls it sick.

    >>> said_unhealthy("misconfigured fabric reported; expected ~470"), said_unhealthy("out-of-place")
    (True, False)
    """
    return bool(re.search(SAID, notes.lower()))


def has_cliff(size_bytes: Sequence[float], bytes_per_s: Sequence[float]) -> bool:
    """Whether bandwidth falls to less than half of its best at a larger message.

    >>> has_cliff([2**24, 2**25, 2**26], [12.6e9, 15.4e9, 2.8e9]), has_cliff([2**24, 2**25], [12.6e9, 15.4e9])
    (True, False)
    """
    best = 0.0
    for _, rate in sorted(zip(size_bytes, bytes_per_s, strict=True)):
        if rate < CLIFF * best:
            return True
        best = max(best, rate)
    return False


def below_half_rate(
    size_bytes: Sequence[float], bytes_per_s: Sequence[float], healthy_bytes_per_s: Sequence[float]
) -> bool:
    """Whether every message of half a gigabyte or more moves at less than 55 % of a working fabric's rate.

    >>> below_half_rate([2**30, 2**33], [216e9, 231e9], [440e9, 465e9])
    True
    """
    shares = [
        rate / healthy
        for size, rate, healthy in zip(size_bytes, bytes_per_s, healthy_bytes_per_s, strict=True)
        if size >= LARGE_BYTES
    ]
    return bool(shares) and max(shares) < HALF_RATE
