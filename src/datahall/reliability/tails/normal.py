"""Sums of very many, where even the spread is long to add up: the normal with what skewness γ adds.

    P(X ≤ k) = Φ(z) − φ(z) γ (z² − 1) / 6,    z = (k + ½ − μ) / σ        off by about 1/σ²

Reference: Edgeworth (1905), The law of error.
"""

from __future__ import annotations

from math import erfc, exp, pi, sqrt

LONG_SPREAD = 30_000.0  # standard deviation from which on it is as good
REACH, BESIDE = (
    9.0,
    60,
)  # standard deviations, and counts beside, beyond which a sum of fewer has nothing to add


def normal_at_most(num: int, mean: float, spread: float, skewness: float) -> float:
    z = (num + 0.5 - mean) / spread
    bent = exp(-0.5 * z * z) / sqrt(2.0 * pi) * skewness * (z * z - 1.0) / 6.0
    return min(1.0, max(0.0, 0.5 * erfc(-z / sqrt(2.0)) - bent))
