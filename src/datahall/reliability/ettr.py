"""Effective training time ratio: the share of the wall time that moves a run forward, in closed form.

A run works for an interval t, stops for d to write a checkpoint, and so on.  A failure throws it back to the last
checkpoint and costs a restart R; failures come at random, one every M in the mean.  Two definitions are in use:

    renewal     failures strike at any time, in a restart too, which then begins anew:
                ETTR = t / [M e^{R/M} (e^{(t+d)/M} − 1)]
    wall rate   every M of wall time one failure, which costs R and half an interval, and never two at once:
                ETTR = (1 − (R + t/2)/M) / (1 + d/t)

The second is the first for small losses, and what papers mostly quote (1 − R/M for checkpoints that cost nothing); at
a failure every 18 minutes and a restart of 10 they say 44 % and 57 %, so an answer says which it is.

References: Daly (2006), A higher order estimate of the optimum checkpoint interval, equations 20 and 37; Young (1974);
Kokolis et al. (2025), Revisiting reliability in large-scale machine learning research clusters, section V.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, expm1, inf, sqrt

NARROW = 1e-12  # a search ends where the interval is known to such a share
MOST_RESTARTS_MTTF = 500.0  # MTTFs in a row without a failure: nothing is finished
HARDLY_ANY = 0.01  # of the time: a run that keeps no more comes to nothing


def renewal_ettr(interval_s: float, blocking_s: float, restart_s: float, mttf_s: float) -> float:
    """Share of the wall time that is kept, where failures also strike restarts and checkpoints.

    Parameters: work between two checkpoints [s]; stop for a checkpoint [s]; from a failure until work goes on [s];
    mean time between failures [s].

        ETTR = t / [M e^{R/M} (e^{(t+d)/M} − 1)]

    >>> round(renewal_ettr(630.0, 20.0, 300.0, 11_135.0), 3)  # Llama 3: 419 failures in 54 days
    0.916
    """
    if mttf_s == inf:
        return interval_s / (interval_s + blocking_s)
    if (interval_s + blocking_s + restart_s) / mttf_s > MOST_RESTARTS_MTTF:
        return 0.0
    return interval_s / (mttf_s * exp(restart_s / mttf_s) * expm1((interval_s + blocking_s) / mttf_s))


def wall_rate_ettr(interval_s: float, blocking_s: float, restart_s: float, mttf_s: float) -> float:
    """The same where each failure costs a restart and half an interval and none falls into another's restart.

        ETTR = (1 − (R + t/2)/M) / (1 + d/t), never below 0

    >>> round(wall_rate_ettr(1e-9, 0.0, 600.0, 1080.0), 2)  # 100,000 chips, a failure every 18 minutes
    0.44
    """
    kept = 1.0 - (restart_s + interval_s / 2.0) / mttf_s
    return max(0.0, kept) / (1.0 + blocking_s / interval_s)


def daly_interval_s(blocking_s: float, mttf_s: float) -> float:
    """The best interval while it is short beside the time between failures [s].

        t* = √(2 d M) − d;  M where d ≥ M/2

    >>> round(daly_interval_s(20.0, 11_135.0) / 60, 1)
    10.8
    """
    if blocking_s >= mttf_s / 2.0:
        return mttf_s
    return sqrt(2.0 * blocking_s * mttf_s) - blocking_s


def best_interval_s(blocking_s: float, mttf_s: float) -> float:
    """The interval with the highest renewal ETTR, whatever the restart [s].

    Where the derivative vanishes, 1 − t/M = e^{−(t+d)/M}: one root between 0 and M, found by halving.

    >>> round(best_interval_s(20.0, 11_135.0) / 60, 1)
    10.9
    """
    if mttf_s == inf:
        return inf
    low, high = 0.0, mttf_s
    while high - low > NARROW * mttf_s:
        middle = (low + high) / 2.0
        if 1.0 - middle / mttf_s > exp(-(middle + blocking_s) / mttf_s):
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def replica_ettr(restart_s: float, stall_s: float, mttf_s: float, speeds: Sequence[float]) -> float:
    """Share of the throughput that is kept where a failure takes one replica and the others go on.

    Parameters: until the replica is back [s]; all replicas wait for the new membership [s]; mean time between failures
    [s]; throughput by the number of replicas that are out, (1, 1 − 1/DP, …) where their batch shrinks.

        ETTR = E[speed(n)] − stall/M, never below 0;   n is Poisson with mean R/M (M/G/∞), and without replicas 0

    >>> round(replica_ettr(600.0, 3.0, 1080.0, [1 - lost / 32 for lost in range(32)]), 3)
    0.98
    """
    out = restart_s / mttf_s
    chance, kept = exp(-out), 0.0
    for lost, speed in enumerate(speeds):
        kept += chance * speed
        chance *= out / (lost + 1)
    return max(0.0, kept - stall_s / mttf_s)
