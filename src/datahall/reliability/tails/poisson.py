"""Sums of Poisson counts of several sizes: each size over its own spread, added up by the transform of Fourier."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.reliability.tails.normal import BESIDE, LONG_SPREAD, REACH, normal_at_most


class Counts(NamedTuple):
    """How likely no more than a number are there, from the first number that is not impossible."""

    first: int
    at_most: NDArray[np.float64]

    def __call__(self, num: int) -> float:
        place = num - self.first
        return 0.0 if place < 0 else float(self.at_most[min(place, self.at_most.size - 1)])


class Normal(NamedTuple):
    """The same of very many."""

    mean: float
    spread: float
    skewness: float

    def __call__(self, num: int) -> float:
        return normal_at_most(num, self.mean, self.spread, self.skewness)


def counted(sizes: Mapping[int, float]) -> Counts | Normal:
    """Of a sum of b · Poisson(λ_b), by λ_b of each size b.

    >>> round(counted({1: 6.0, 18: 0.3})(36), 4)
    0.9631
    """
    mean, square, cube = (sum(b**power * each for b, each in sizes.items()) for power in (1, 2, 3))
    if sqrt(square) > LONG_SPREAD:
        return Normal(mean, sqrt(square), cube / square**1.5)
    firsts = {b: max(0, floor(each - REACH * sqrt(each))) for b, each in sizes.items()}
    columns = [(b, _poisson(firsts[b], each)) for b, each in sizes.items()]
    length = 1 + sum(b * (column.size - 1) for b, column in columns)
    both = np.ones(1, np.complex128)
    for b, column in columns:
        spaced = np.zeros(length)
        spaced[: b * column.size : b] = column
        both = both * np.fft.rfft(spaced, 2 ** ceil(log(max(2, length), 2)))
    chance = np.maximum(0.0, np.fft.irfft(both)[:length])
    return Counts(sum(b * first for b, first in firsts.items()), np.minimum(1.0, np.cumsum(chance)))


def _poisson(first: int, mean: float) -> NDArray[np.float64]:
    """The chances of the counts from a first one on that are not negligible."""
    places = np.arange(first + 1, ceil(mean + REACH * sqrt(mean)) + BESIDE)
    logs = np.concatenate([[0.0], np.cumsum(np.log(mean) - np.log(places))])
    chance = np.exp(logs - logs.max())
    return np.asarray(chance / chance.sum())
