"""Philox 4×32-10: random bits as a pure function of a key and a counter.

Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.  Every product of two
32-bit words fits 64 bits, so nothing wraps, and plain Python and compiled code give the same bits.
"""

from __future__ import annotations

import numpy as np

from datahall.compiled import inline

ROUNDS = 10
MULTIPLIER_0, MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
STEP_0, STEP_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
WORD = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


@inline
def philox(
    count_low: np.uint64, count_high: np.uint64, lane_low: np.uint64, lane_high: np.uint64, key: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Four random 32-bit words for a counter of four 32-bit words and a key of 64 bits.

    >>> zero = np.uint64(0)
    >>> [hex(word) for word in philox(zero, zero, zero, zero, zero)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    c0, c1, c2, c3 = count_low, count_high, lane_low, lane_high
    k0, k1 = key & WORD, key >> HALF
    for _ in range(ROUNDS):
        p0 = MULTIPLIER_0 * c0
        p1 = MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (p1 >> HALF) ^ c1 ^ k0, p1 & WORD, (p0 >> HALF) ^ c3 ^ k1, p0 & WORD
        k0 = (k0 + STEP_0) & WORD
        k1 = (k1 + STEP_1) & WORD
    return c0, c1, c2, c3
