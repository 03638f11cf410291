"""How much of the time a job has enough nodes, of those that fail, are repaired or are taken away and come back.

Nodes leave and come back whatever the job does, so the pool of them is looked at by itself.  Repairs go on side by
side; of N + S nodes N are at work, and where fewer are left, those.  The number k in repair then has, whatever the
distribution of the time to repair (an Engset system with spares; M/G/∞ where there are many nodes),

    p(k) ∝ Σ b λ_b φ(k − b) p(k − b) / k,    φ(j) = min(1, (N + S − j)/N),    λ_b = N r f E[min(T, a)]

with repairs of b nodes at once, at a time a after a start with nobody away.  A node of spot capacity is away for
y/(1 + y) of its time, with y = back (1 − e^{−a/back}) / every, node by node; no spare stands in for it.

    enough = (1 + y)^−N · Σ_{k ≤ S} p(k) / Σ p(k) (1 + y)^−max(0, k − S)

References: Engset (1918); Kelly (1979), Reversibility and stochastic networks, chapter 3; Panjer (1981).
"""

from __future__ import annotations

from math import ceil, erfc, expm1, fsum, inf, log, sqrt
from typing import NamedTuple

from datahall.reliability.nodes.spares import LARGE, MOMENTS, past_of, under_way_s
from datahall.reliability.process import Cause, FailureProcess
from datahall.reliability.recovery import ANY_SPARES, Recovery
from datahall.units import DAY_S

FAR = 12.0  # standard deviations beyond which no number of nodes lies


class Enough(NamedTuple):
    """Shares of the time."""

    repaired_fraction: float  # that waits for repairs leave
    there_fraction: float  # that waits for capacity leave of it
    last_fraction: float  # of it: no spare is left, and one failure more is waited for


ALWAYS = Enough(1.0, 1.0, 0.0)


def enough_nodes(process: FailureProcess, recovery: Recovery, span_s: float = inf) -> Enough:
    """In the mean of a run so long, which begins with nobody away; of one without end, in the long run."""
    if span_s == inf:
        return _enough_at(process, recovery, inf)
    moments = [_enough_at(process, recovery, span_s * (place + 0.5) / MOMENTS) for place in range(MOMENTS)]
    both = fsum(one.repaired_fraction * one.there_fraction for one in moments) / MOMENTS
    there = fsum(one.there_fraction for one in moments) / MOMENTS
    return Enough(both / there, there, fsum(one.last_fraction for one in moments) / MOMENTS)


def _enough_at(process: FailureProcess, recovery: Recovery, after_s: float) -> Enough:
    """At one moment."""
    back_s, nodes, spares = recovery.back_s, process.num_nodes, recovery.num_spares
    gone = -back_s * expm1(-after_s / back_s) / recovery.preempted_every_s if back_s else 0.0
    there = (1.0 + gone) ** -nodes
    if recovery.elastic or spares == ANY_SPARES:
        return Enough(1.0, there, 0.0)
    repairs = under_repair(process, after_s)
    most = _most(repairs)
    if spares >= most:
        return Enough(1.0, there, 0.0)
    weights = _weights(repairs, nodes, spares, min(most, nodes + spares + max(repairs)))
    enough = fsum(weights[: spares + 1])
    short = fsum(weight / (1.0 + gone) ** (place + 1) for place, weight in enumerate(weights[spares + 1 :]))
    return Enough(enough / (enough + short), there, weights[spares] / enough)


def under_repair(process: FailureProcess, after_s: float) -> dict[int, float]:
    """Mean number of repairs of a run under way by how many nodes each takes, were all nodes at work: λ_b."""
    past = None
    if process.age_s is not None and after_s < inf:
        past = past_of(process, process.age_s + after_s, after_s)
    found: dict[int, float] = {}
    for cause in process.causes:
        rate_per_s = process.num_nodes * cause.rate_per_node_day * cause.repair_fraction / DAY_S
        if rate_per_s:
            num = cause.num_nodes_lost
            each_s = repaired_within_s(cause, after_s) if past is None else under_way_s(cause, past)
            found[num] = found.get(num, 0.0) + rate_per_s * each_s
    return found


def repaired_within_s(cause: Cause, time_s: float) -> float:
    """E[min(T, a)] of log-normal repairs: mean · Φ(z − σ) + a · Φ(−z), z = ln(a/median)/σ [s]."""
    if time_s == inf:
        return cause.repair_mean_s
    if not cause.repair_sigma or not cause.repair_median_s:
        return min(cause.repair_median_s, time_s)
    z = log(time_s / cause.repair_median_s) / cause.repair_sigma
    return cause.repair_mean_s * _normal(z - cause.repair_sigma) + time_s * _normal(-z)


def _normal(z: float) -> float:
    return 0.5 * erfc(-z / sqrt(2.0))


def _most(repairs: dict[int, float]) -> int:
    """Nodes that are never away at once."""
    mean = fsum(num * away for num, away in repairs.items())
    spread = sqrt(fsum(num * num * away for num, away in repairs.items()))
    return ceil(mean + FAR * (spread + max(repairs))) if repairs else 0


def _weights(repairs: dict[int, float], num_nodes: int, num_spares: int, most: int) -> list[float]:
    """p(k) up to a factor, for so many nodes away at most."""
    weights = [1.0]
    for k in range(1, most + 1):
        weights.append(
            fsum(
                num
                * away
                * weights[k - num]
                * max(0.0, min(1.0, (num_nodes + num_spares - k + num) / num_nodes))
                for num, away in repairs.items()
                if num <= k
            )
            / k
        )
        if weights[-1] > LARGE:
            weights = [one / LARGE for one in weights]
    return weights
