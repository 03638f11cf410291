"""Binomial tails: one chance by Loader's saddle point, in which large numbers have gone before they are subtracted,

    b(k; n, p) = √(n / (2π k (n − k))) · e^(δ(n) − δ(k) − δ(n−k) − D(k, np) − D(n−k, nq))
    D(x, m) = x ln(x/m) + m − x,    δ(x) = ln x! − (x + ½) ln x + x − ½ ln 2π

and from there the ratios of neighbours, away from the mean.

Reference: Loader (2000), Fast and accurate computation of binomial probabilities.
"""

from __future__ import annotations

from math import ceil, exp, lgamma, log, log1p, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from datahall.reliability.tails.normal import BESIDE, LONG_SPREAD, REACH, normal_at_most

DISTANT = 1e9  # times a mean, so far away that nothing of a deviance cancels
FEW_COUNTS = 16.0  # counts whose factorial is near enough to be computed as it is


def binomial_at_least(needed: int, total: int, share: float) -> float:
    """P(Bin(total, share) ≥ needed) for 0 < share < 1.

    >>> binomial_at_least(2, 2, 0.5), round(binomial_at_least(60, 64, 0.984), 4)
    (0.25, 0.9963)
    """
    if needed <= 0 or needed > total:
        return float(needed <= 0)
    mean, spread = total * share, sqrt(total * share * (1.0 - share))
    if spread > LONG_SPREAD:
        return 1.0 - normal_at_most(needed - 1, mean, spread, (1.0 - 2.0 * share) / spread)
    num, odds = ceil(REACH * spread) + BESIDE, share / (1.0 - share)
    if needed >= mean:
        places = np.arange(needed, min(total, needed + num), dtype=np.float64)
        return min(1.0, _sum(_binomial(needed, total, share), (total - places) / (places + 1.0) * odds))
    places = np.arange(needed - 1, max(0, needed - 1 - num), -1, dtype=np.float64)
    below = _sum(_binomial(needed - 1, total, share), places / ((total - places + 1.0) * odds))
    return max(0.0, 1.0 - below)


def _sum(first: float, ratios: NDArray[np.float64]) -> float:
    """A first chance and those after it, each so many times the one before."""
    return first * (1.0 + float(np.cumprod(ratios).sum()))


def _binomial(k: int, n: int, p: float) -> float:
    if k in (0, n):
        return exp(n * (log1p(-p) if k == 0 else log(p)))
    apart = _deviance(k, n * p) + _deviance(n - k, n * (1.0 - p))
    return sqrt(n / (2.0 * pi * k * (n - k))) * exp(_stirling(n) - _stirling(k) - _stirling(n - k) - apart)


def _deviance(x: float, mean: float) -> float:
    """D(x, m)."""
    if x > DISTANT * mean:  # where the quotient may overflow, and nothing cancels
        return x * (log(x) - log(mean)) - (x - mean)
    off = (x - mean) / mean
    return mean * ((1.0 + off) * log1p(off) - off)


def _stirling(x: float) -> float:
    """δ(x)."""
    if x < FEW_COUNTS:
        return lgamma(x + 1.0) - (x + 0.5) * log(x) + x - 0.5 * log(2.0 * pi)
    square = x * x
    return (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / x
