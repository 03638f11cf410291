"""Histograms with bins of equal ratio: percentiles of any number of values in fixed memory, to within one percent."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import inline

Floats = NDArray[np.float64]

BINS_PER_E = 128.0  # a bin is e^(1/128) = 0.8 % wide
LEAST_S = 1e-6
NUM_BINS = int(BINS_PER_E * math.log(1e12)) + 2  # up to 10^6 s; bin 0 holds what is below the least
TTFT, TPOT, ITL, E2E, QUEUE = range(5)  # the measures


@inline
def add(counts: Floats, measure: int, value: float, weight: float = 1.0) -> None:
    """Count a value of one measure."""
    place = 0
    if value > LEAST_S:
        place = min(int(BINS_PER_E * math.log(value / LEAST_S)) + 1, counts.shape[1] - 1)
    counts[measure, place] += weight


def percentile(counts: Floats, share: float) -> float:
    """The value below which a share of the counted ones lies: the geometric middle of its bin.

    >>> counts = np.zeros((1, NUM_BINS))
    >>> for value in range(1, 1001):
    ...     add(counts, 0, value / 1000.0)
    >>> round(percentile(counts[0], 0.5), 2), round(percentile(counts[0], 0.99), 2)
    (0.5, 0.99)
    """
    total = counts.sum()
    if total <= 0:
        return math.nan
    place = int(np.searchsorted(np.cumsum(counts), share * total, side="left"))
    return _middle(min(place, counts.size - 1))


def mean(counts: Floats) -> float:
    """The mean of the counted values, each taken as the middle of its bin."""
    total = counts.sum()
    if total <= 0:
        return math.nan
    middles = LEAST_S * np.exp((np.arange(counts.size) - 0.5) / BINS_PER_E)
    middles[0] = 0.0
    return float((counts * middles).sum() / total)


def _middle(place: int) -> float:
    return 0.0 if place == 0 else LEAST_S * math.exp((place - 0.5) / BINS_PER_E)
