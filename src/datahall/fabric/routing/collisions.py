"""What hashing flows onto paths costs, in closed form: collisions, idle links, the fullest link.

`ecmp.py` measures the same on a real fabric with the max-min solver.
"""

from __future__ import annotations

from math import exp, lgamma, log

import numpy as np

from datahall.fabric.topology.graph import Floats


def no_collision_probability(num_flows: int, num_paths: int) -> float:
    """Probability that m flows, each hashed onto one of p paths, all have one for themselves.

    P = p! / ((p − m)! · p^m)

    >>> round(no_collision_probability(8, 8), 4), round(no_collision_probability(8, 64), 2)
    (0.0024, 0.63)
    """
    if num_flows > num_paths:
        return 0.0
    return exp(lgamma(num_paths + 1) - lgamma(num_paths - num_flows + 1) - num_flows * log(num_paths))


def used_fraction(num_flows: int, num_paths: int) -> float:
    """Expected part of p paths that m flows use at all: 1 − (1 − 1/p)^m, which goes to 1 − 1/e for m = p.

    >>> round(used_fraction(512, 512), 2)
    0.63
    """
    return 1.0 - (1.0 - 1.0 / num_paths) ** num_flows


def expected_most_loaded(num_flows: int, num_paths: int) -> float:
    """Expected number of flows on the fullest of p paths, m flows hashed onto them.

    E[max] = Σ_{c ≥ 0} P(max > c),  P(max ≤ c) = m!/p^m · [x^m] (Σ_{j ≤ c} x^j/j!)^p

    >>> [round(expected_most_loaded(n, n), 1) for n in (8, 16, 32, 64)]
    [2.6, 3.1, 3.5, 4.0]
    """
    load = num_flows / num_paths
    poisson = np.array([_poisson(load, count) for count in range(num_flows + 1)])
    expected = 0.0
    for most in range(num_flows):
        within = _power(poisson[: most + 1], num_paths, num_flows) / _poisson(num_flows, num_flows)
        expected += 1.0 - within
        if within > 1.0 - 1e-12:
            break
    return expected


def _poisson(mean: float, count: int) -> float:
    return exp(count * log(mean) - mean - lgamma(count + 1))


def _power(series: Floats, exponent: int, degree: int) -> float:
    """The coefficient of x^degree in series^exponent, by squaring."""
    result = np.ones(1)
    while exponent:
        if exponent & 1:
            result = np.convolve(result, series)[: degree + 1]
        series = np.convolve(series, series)[: degree + 1]
        exponent >>= 1
    return float(result[degree]) if result.size > degree else 0.0


def permutation_mean_fraction(num_parts: int, num_random_tiers: int = 2) -> float:
    """Mean share of line rate of a random permutation on a full-bisection tree, q paths hashed per flow.

    mean = q / (q + c),  c = 3/2 with two tiers of random choice (three-tier tree), 0.92 with one (leaf–spine)

    A fit to the max-min solver (8,192 and 2,048 hosts, q = 1 … 64), within 2 points of it; for q → ∞ what is
    lost is c/q.

    >>> [round(100 * permutation_mean_fraction(q)) for q in (1, 2, 4, 8, 16, 32, 64)]
    [40, 57, 73, 84, 91, 96, 98]
    """
    lost = {0: 0.0, 1: 0.92, 2: 1.5}[num_random_tiers]
    return num_parts / (num_parts + lost)


def permutation_slowest_fraction(num_fabric_links: int) -> float:
    """Share of line rate of the slowest flow of a random permutation, one path each: 1 / E[fullest link].

    Each of the L links between switches carries a Poisson(1) number of flows; the fullest gives each of its
    own 1/n.

    >>> round(permutation_slowest_fraction(32_768), 3)
    0.138
    """
    below, expected = 0.0, 0.0
    for count in range(100):
        below += _poisson(1.0, count)
        expected += 1.0 - min(1.0, below) ** num_fabric_links
    return 1.0 / expected
