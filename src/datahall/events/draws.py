"""Draws from the usual distributions, each the inverse of its distribution function at one uniform number.

One draw takes one number from its lane, so two designs compared under one seed meet the same luck.
"""

from __future__ import annotations

import math

from datahall.compiled import inline
from datahall.events.logarithm import exp, log
from datahall.events.streams import Dice, uniform


@inline
def integer_below(dice: Dice, limit: int, lane: int = 0) -> int:
    """A whole number 0 … limit-1, each equally likely to within limit / 2**52."""
    return int(uniform(dice, lane) * limit)


@inline
def exponential(dice: Dice, mean: float = 1.0, lane: int = 0) -> float:
    """Exponential with that mean: the time to the next of independent events (failures, arrivals)."""
    return -mean * log(uniform(dice, lane))


@inline
def normal(dice: Dice, mean: float = 0.0, deviation: float = 1.0, lane: int = 0) -> float:
    """Normal with that mean and standard deviation."""
    return mean + deviation * normal_quantile(uniform(dice, lane))


@inline
def lognormal(dice: Dice, median: float = 1.0, sigma: float = 1.0, lane: int = 0) -> float:
    """Lognormal: its logarithm is normal around ln(median) with standard deviation sigma."""
    return median * exp(sigma * normal_quantile(uniform(dice, lane)))


@inline
def normal_quantile(probability: float) -> float:
    """The point below which a standard normal falls with that probability, to about 1 part in 10**16.

    M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics
    37(3), 1988.

    >>> normal_quantile(0.5), round(normal_quantile(0.975), 6)
    (0.0, 1.959964)
    """
    q = probability - 0.5
    if abs(q) <= 0.425:
        return q * _centre(0.180625 - q * q)
    r = math.sqrt(-log(probability if q < 0.0 else 1.0 - probability))
    tail = _near_tail(r - 1.6) if r <= 5.0 else _far_tail(r - 5.0)
    return -tail if q < 0.0 else tail


@inline
def _centre(r: float) -> float:
    above = 2.5090809287301226727e3 * r + 3.3430575583588128105e4
    above = (above * r + 6.7265770927008700853e4) * r + 4.5921953931549871457e4
    above = (above * r + 1.3731693765509461125e4) * r + 1.9715909503065514427e3
    above = (above * r + 1.3314166789178437745e2) * r + 3.3871328727963666080e0
    below = 5.2264952788528545610e3 * r + 2.8729085735721942674e4
    below = (below * r + 3.9307895800092710610e4) * r + 2.1213794301586595867e4
    below = (below * r + 5.3941960214247511077e3) * r + 6.8718700749205790830e2
    below = (below * r + 4.2313330701600911252e1) * r + 1.0
    return above / below


@inline
def _near_tail(r: float) -> float:
    above = 7.74545014278341407640e-4 * r + 2.27238449892691845833e-2
    above = (above * r + 2.41780725177450611770e-1) * r + 1.27045825245236838258e0
    above = (above * r + 3.64784832476320460504e0) * r + 5.76949722146069140550e0
    above = (above * r + 4.63033784615654529590e0) * r + 1.42343711074968357734e0
    below = 1.05075007164441684324e-9 * r + 5.47593808499534494600e-4
    below = (below * r + 1.51986665636164571966e-2) * r + 1.48103976427480074590e-1
    below = (below * r + 6.89767334985100004550e-1) * r + 1.67638483018380384940e0
    below = (below * r + 2.05319162663775882187e0) * r + 1.0
    return above / below


@inline
def _far_tail(r: float) -> float:
    above = 2.01033439929228813265e-7 * r + 2.71155556874348757815e-5
    above = (above * r + 1.24266094738807843860e-3) * r + 2.65321895265761230930e-2
    above = (above * r + 2.96560571828504891230e-1) * r + 1.78482653991729133580e0
    above = (above * r + 5.46378491116411436990e0) * r + 6.65790464350110377720e0
    below = 2.04426310338993978564e-15 * r + 1.42151175831644588870e-7
    below = (below * r + 1.84631831751005468180e-5) * r + 7.86869131145613259100e-4
    below = (below * r + 1.48753612908506148525e-2) * r + 1.36929880922735805310e-1
    below = (below * r + 5.99832206555887937690e-1) * r + 1.0
    return above / below
