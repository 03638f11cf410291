"""The slowest of many: what a step that waits for everyone loses to jitter and to slow hosts.

Who is slow is declared in `scenario/sections/training.py`.
Jitter is drawn anew each step; a slow host is slow in every step until it is replaced.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import Kernel
from datahall.events import stream
from datahall.events.draws import normal_quantile
from datahall.scenario.sections.training import Stragglers

Floats = NDArray[np.float64]
SMALL = 2_000  # draws that the interpreter makes sooner than a compiler is loaded


def gaussian_excess(num_ranks: float, deviation: float = 1.0) -> float:
    """How far the slowest of many near-Gaussian ranks is beyond their mean: the usual bound.

    Parameters: num_ranks n; deviation σ of one rank.

        σ·√(2 ln n)

    Reference: David and Nagaraja (2003), Order Statistics, section 10.5; an upper bound of the expectation.

    >>> round(gaussian_excess(16384, 0.02), 4)
    0.0881
    """
    return deviation * math.sqrt(2.0 * math.log(max(1.0, num_ranks)))


@lru_cache(maxsize=256)
def expected_maximum(num_ranks: int) -> float:
    """Expectation of the largest of n independent standard normals, by numerical integration.

        E = ∫ x dΦ(x)ⁿ = x₁ − ∫ Φ(x)ⁿ dx   up to an x₁ that nobody reaches

    >>> round(expected_maximum(2) * math.sqrt(math.pi), 9), round(expected_maximum(16384), 3)
    (1.0, 3.971)
    """
    x = np.linspace(-9.0, 13.0, 22_001)
    above = np.array([0.5 * math.erfc(value / math.sqrt(2.0)) for value in x.tolist()])
    with np.errstate(divide="ignore"):  # far below the mean nothing is left: log 0, and e to that is 0
        below = np.exp(num_ranks * np.log1p(-np.minimum(above, 1.0)))
    return float(x[-1] - np.trapezoid(below, x))  # by parts, Φ(x)ⁿ being 0 at the lower end


def slow_class_loss(
    slow_fraction: float, slow_by_fraction: float, num_hosts: float, share: float = 1.0
) -> float:
    """What a class of slow hosts adds to the step of a job that waits for everyone, in expectation.

    Parameters: slow_fraction f of all hosts; slow_by_fraction s; num_hosts n of the job, picked at random;
    share of the step's critical path that is slow work.

        share · s · (1 − (1 − f)ⁿ)

    >>> round(slow_class_loss(0.005, 0.1, 1), 5), round(slow_class_loss(0.005, 0.1, 1536), 4)
    (0.0005, 0.1)
    """
    return share * slow_by_fraction * (1.0 - math.pow(1.0 - slow_fraction, num_hosts))


def slow_share(loss_fraction: float, slow_by_fraction: float) -> float:
    """The share of the critical path that must have been slow for a measured loss.

    MegaScale lost 0.7 points of 55.2 % MFU to hosts that were 10 % slow.

    >>> round(slow_share(0.7 / 55.2, 0.1), 3)
    0.127
    """
    return loss_fraction / slow_by_fraction


def stage_speeds(
    who: Stragglers,
    *,
    num_replicas: int,
    num_stages: int,
    num_chips: int,
    num_host_chips: int,
    seed: int,
    step: int,
) -> Floats:
    """How much longer each replica's stages take in one step, replica × stage, 1 where nobody is slow.

    `num_chips` share a stage of a replica and wait for the slowest of them.  Ranks of a stage lie together:
    stage by stage, then replica by replica, as Megatron numbers them, `num_host_chips` to a host.
    """
    groups = num_stages * num_replicas
    speeds = np.ones(groups)
    if who.slow_hosts_fraction > 0:
        slow = slow_hosts(who, num_hosts=-(-groups * num_chips // num_host_chips), seed=seed)
        first = np.arange(groups) * num_chips // num_host_chips
        last = ((np.arange(groups) + 1) * num_chips - 1) // num_host_chips
        known = np.concatenate([[0], np.cumsum(slow)])
        speeds[known[last + 1] > known[first]] += who.slow_by_fraction
    if who.jitter_fraction > 0:
        # the largest of k normals has the k-th root of a uniform number as its probability
        below = stream(seed, "jitter", step).random(groups) ** (1.0 / num_chips)
        speeds *= np.maximum(0.0, 1.0 + who.jitter_fraction * quantiles(np.minimum(below, 1.0 - 1e-16)))
    return np.ascontiguousarray(speeds.reshape(num_stages, num_replicas).T)


def num_slow(who: Stragglers, num_hosts: int) -> int:
    """Hosts that are slow: their share of them, to the nearest whole host."""
    return round(who.slow_hosts_fraction * num_hosts)


def slow_hosts(who: Stragglers, *, num_hosts: int, seed: int) -> NDArray[np.bool_]:
    """Which hosts are slow: so many of them, picked by the seed."""
    order = np.argsort(stream(seed, "slow hosts").random(num_hosts), kind="stable")
    slow = np.zeros(num_hosts, np.bool_)
    slow[order[: num_slow(who, num_hosts)]] = True
    return slow


def quantiles(probabilities: Floats) -> Floats:
    """Points of the standard normal at those probabilities."""
    out = np.empty(probabilities.size)
    fill = _fill_quantiles.interpreted if probabilities.size < SMALL else _fill_quantiles
    fill(np.ascontiguousarray(probabilities), out)
    return out


def _quantiles(probabilities: Floats, out: Floats) -> None:
    for place in range(probabilities.size):
        out[place] = normal_quantile(probabilities[place])


_fill_quantiles = Kernel(_quantiles, compile_s=2.0)
