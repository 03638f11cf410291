"""How many nodes are away for repair, and how many spares are enough.

Failures that need a repair come as a Poisson process, and repairs go on side by side, so the number that is away is
Poisson whatever the distribution of the time to repair (M/G/∞): λ = n · r · f · E[T].  A shared shock sends b nodes
away at once; the number away is then compound, a sum of b · Poisson(λ_b), which Panjer's recursion adds up exactly.

Of nodes that age, failures come at a rate that changes and the number away is still Poisson at every moment (M_t/G/∞):
λ(a) = n · r · f · ∫ h(a − y) P(T > y) dy at the age a, with the hazard h over the steady rate.

References: Palm (1943); Eick, Massey and Whitt (1993), The physics of the M_t/G/∞ queue;
Panjer (1981), Recursive evaluation of a family of compound distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import erfc, exp, fsum, log, sqrt
from typing import NamedTuple

from datahall.errors import ScenarioError
from datahall.reliability.process import Cause, FailureProcess, lived_s
from datahall.reliability.tails.poisson import counted
from datahall.units import DAY_S

MOST_ENOUGH = 1.0 - 1e-9  # beyond it rounding says whether spares suffice
MANY = 2000.0  # nodes away in the mean, from which on only the numbers near it are added up
LARGE = 1e250  # a recursion that grows so far is scaled down by it
NO_DIGIT = 1e-18  # beside what was added: it changes no digit
MOMENTS = 32  # of a run over which nodes age, leave and come back
CELLS = 96  # that the past of a node is added up in, each so much longer than the one after it
NEAREST = 1e-6  # of its age: the last of them


class Spares(NamedTuple):
    """Nodes to hold ready."""

    num: int
    away_mean: float  # nodes that are away in the mean
    enough_fraction: float  # of the time so many suffice


def away(process: FailureProcess, after_s: float = 0.0) -> dict[int, float]:
    """Mean number of repairs under way, by how many nodes each takes: λ_b = n · Σ r f E[T].

    Of nodes that age: so long after the start, with the repairs of all their life before it.
    """
    past = None if process.age_s is None else past_of(process, process.age_s + after_s)
    found: dict[int, float] = {}
    for cause in process.causes:
        rate_per_s = process.num_nodes * cause.rate_per_node_day * cause.repair_fraction / DAY_S
        if rate_per_s:
            num = cause.num_nodes_lost
            each_s = cause.repair_mean_s if past is None else under_way_s(cause, past)
            found[num] = found.get(num, 0.0) + rate_per_s * each_s
    return found


class Cell(NamedTuple):
    """A piece of the past."""

    ago_s: float  # its middle
    span_s: float
    lived_s: float  # in which a steady node fails as often as this one did in it


def past_of(process: FailureProcess, age_s: float, span_s: float | None = None) -> list[Cell]:
    """The life of a node up to an age, or its last part, in pieces that are the shorter the nearer they are."""
    whole_s = age_s if span_s is None else span_s
    edges = [0.0, *(whole_s * NEAREST ** (1.0 - place / CELLS) for place in range(CELLS + 1))]
    return [
        Cell((near + far) / 2.0, far - near, lived_s(process, age_s - near) - lived_s(process, age_s - far))
        for near, far in pairwise(edges)
    ]


def under_way_s(cause: Cause, past: Sequence[Cell]) -> float:
    """What E[T] is for steady failures: ∫ h P(T > y) dy over the past [s]."""
    return fsum((one.lived_s if cause.ages else one.span_s) * _lasting(cause, one.ago_s) for one in past)


def _lasting(cause: Cause, time_s: float) -> float:
    """Share of the repairs of a cause that take longer: P(T > y)."""
    if time_s <= 0.0 or not cause.repair_sigma:
        return float(time_s < cause.repair_median_s)
    return 0.5 * erfc(log(time_s / cause.repair_median_s) / (cause.repair_sigma * sqrt(2.0)))


def nodes_away(process: FailureProcess, after_s: float = 0.0) -> float:
    """Nodes that are away for repair in the mean."""
    return sum(size * mean for size, mean in away(process, after_s).items())


def node_availability(process: FailureProcess) -> float:
    """Share of the time that a node is not away for repair.

    >>> from datahall.catalog import load
    >>> from datahall.reliability.process import process_of
    >>> round(node_availability(process_of(load().failure_preset("tpu-v4"), load(), 1024)), 4)
    0.9986
    """
    return max(0.0, 1.0 - nodes_away(process) / process.num_nodes)


def free_fraction(process: FailureProcess, num_spares: int) -> float:
    """The share of the failures that find a spare free: P(away ≤ S − 1), for failures see the mean over time."""
    found = _at_most(away(process))(num_spares - 1) if num_spares else 0.0
    return 1.0 if found >= MOST_ENOUGH else found


def spares_for(process: FailureProcess, enough_fraction: float, span_s: float = 0.0) -> Spares:
    """The fewest spare nodes that suffice for such a share of the time; of nodes that age, of a run so long."""
    if process.age_s is None:
        return enough(away(process), enough_fraction)
    moments = [away(process, span_s * (place + 0.5) / MOMENTS) for place in range(MOMENTS)]
    return enough_over(moments, enough_fraction)


def enough(repairs: Mapping[int, float], enough_fraction: float) -> Spares:
    """The fewest spares for repairs that each take some nodes, by their mean number under way.

    With 3.79e-3 failures of a node per day, of which half need a repair of three days:

    >>> [enough({1: nodes * 3.79e-3 * 0.5 * 3}, 0.99).num for nodes in (128, 2048, 12500)]
    [3, 20, 91]
    """
    return enough_over([repairs], enough_fraction)


def enough_over(moments: Sequence[Mapping[int, float]], enough_fraction: float) -> Spares:
    """The same over moments that are alike long, by the repairs under way at each."""
    if not 0.0 < enough_fraction <= MOST_ENOUGH:
        raise ScenarioError(
            f"spares cannot suffice {enough_fraction:g} of the time",
            field="spares_enough",
            hint="above 0 and below 1, e.g. 99 %",
        )
    chances = [_at_most(repairs) for repairs in moments]

    def reached(num: int) -> float:
        return fsum(chance(num) for chance in chances) / len(chances)

    short, num = -1, 0
    while reached(num) < enough_fraction:
        short, num = num, 2 * num + 1
    while num - short > 1:
        middle = (short + num) // 2
        short, num = (middle, num) if reached(middle) < enough_fraction else (short, middle)
    away_mean = fsum(b * mean for repairs in moments for b, mean in repairs.items()) / len(moments)
    return Spares(num, away_mean, reached(num))


def _at_most(repairs: Mapping[int, float]) -> Callable[[int], float]:
    """The chance that no more than a number of nodes are away."""
    mean = sum(b * each for b, each in repairs.items())
    return counted(repairs).__call__ if mean > MANY else Recursion(repairs)


class Recursion:
    """The same of few, from none on: p(k) = Σ b λ_b p(k − b) / k (Panjer), as far as is asked and adds anything."""

    def __init__(self, repairs: Mapping[int, float]) -> None:
        self._repairs, self._mean = repairs, sum(b * each for b, each in repairs.items())
        self._weights = [1.0]  # p up to the factor that p(0) = e^−Λ is
        self._log_factor, self._added = -sum(repairs.values()), 1.0
        self._found = [exp(self._log_factor)]

    def __call__(self, num: int) -> float:
        while len(self._found) <= num and not self._ended:
            self._next()
        return self._found[min(num, len(self._found) - 1)]

    @property
    def _ended(self) -> bool:
        """Whether what is left is nothing beside what was added: no large number of spares is walked up to."""
        most = max(self._repairs, default=1)
        return len(self._weights) > self._mean + most and sum(self._weights[-most:]) < NO_DIGIT * self._added

    def _next(self) -> None:
        k, weights = len(self._weights), self._weights
        weights.append(sum(b * mean * weights[k - b] for b, mean in self._repairs.items() if b <= k) / k)
        self._added += weights[-1]
        if self._added > LARGE:
            self._weights, self._added = [one / LARGE for one in weights], self._added / LARGE
            self._log_factor += log(LARGE)
        self._found.append(exp(min(0.0, self._log_factor + log(self._added))))
