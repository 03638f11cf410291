"""Named, seeded random streams: a change in one part of a simulation leaves the draws of the others alone.

`stream` is NumPy's generator for work on whole columns.  Its bits, and `random()` made of them, are the same
everywhere; its other distributions may change with NumPy's version and the C library.

`Dice` is for kernels and for traces that must be equal to the bit on any machine: all draws in `draws.py` are
integer arithmetic and IEEE 754 + - × ÷ √ only.  Each lane (a chip, a link, a logical process) draws from a
stream of its own, and draw n of a lane is a pure function of seed, names, lane and n, whatever the other
lanes did before.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import inline
from datahall.events.philox import HALF, WORD, philox

ONE = np.uint64(1)
HIGH_SHIFT, LOW_SHIFT = np.uint64(20), np.uint64(12)
TO_UNIT = 2.0**-52


class Dice(NamedTuple):
    """A key, and how often each lane has drawn."""

    key: np.uint64
    num_drawn: NDArray[np.uint64]


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """NumPy's generator of that name: the same bits for the same seed and names, in any run on any machine.

    >>> int(stream(7, "failures", 3).integers(1000)), int(stream(7, "failures", 3).integers(1000))
    (825, 825)
    """
    return np.random.Generator(np.random.Philox(key=int.from_bytes(_hashed(seed, names)[:16], "little")))


def new_dice(seed: int, *names: str | int, num_lanes: int = 1) -> Dice:
    """Independent streams for kernels, one for each lane."""
    key = int.from_bytes(_hashed(seed, names)[:8], "little")
    return Dice(np.uint64(key), np.zeros(num_lanes, np.uint64))


@inline
def uniform(dice: Dice, lane: int = 0) -> float:
    """A number in the open interval (0, 1), an odd multiple of 2**-53: neither end is ever drawn."""
    key, num_drawn = dice
    count, which = num_drawn[lane], np.uint64(lane)
    num_drawn[lane] = count + ONE
    high, low, _, _ = philox(count & WORD, count >> HALF, which & WORD, which >> HALF, key)
    return unit_number(high, low)


@inline
def unit_number(high: np.uint64, low: np.uint64) -> float:
    """52 of the 64 bits of two words, and a half: 53 bits in all, so that nothing is rounded up to 1."""
    return (float((high << HIGH_SHIFT) | (low >> LOW_SHIFT)) + 0.5) * TO_UNIT


def _hashed(seed: int, names: tuple[str | int, ...]) -> bytes:
    """SHA-256 of seed and names; repr keeps ("a", "b") apart from ("ab",) and 1 from "1"."""
    return hashlib.sha256(repr((int(seed), *names)).encode()).digest()
