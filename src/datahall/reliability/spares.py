"""How many nodes are away for repair, and how many spares are enough.

Failures that need a repair come as a Poisson process, and repairs go on side by side, so the number that is away is
Poisson whatever the distribution of the time to repair (M/G/∞): λ = n · r · f · E[T].  A shared shock sends b nodes
away at once; the number away is then compound, a sum of b · Poisson(λ_b), which Panjer's recursion adds up exactly.

References: Palm (1943); Panjer (1981), Recursive evaluation of a family of compound distributions.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from typing import NamedTuple

from datahall.errors import ScenarioError
from datahall.reliability.process import FailureProcess
from datahall.units import DAY_S

MOST_ENOUGH = 1.0 - 1e-9  # beyond it rounding says whether spares suffice
LARGE = 1e250  # a recursion that grows so far is scaled down by it


class Spares(NamedTuple):
    """Nodes to hold ready."""

    num: int
    away_mean: float  # nodes that are away in the mean
    enough_fraction: float  # of the time so many suffice


def away(process: FailureProcess) -> dict[int, float]:
    """Mean number of repairs under way, by how many nodes each takes: λ_b = n · Σ r f E[T]."""
    found: dict[int, float] = {}
    for cause in process.causes:
        rate_per_s = process.num_nodes * cause.rate_per_node_day * cause.repair_fraction / DAY_S
        if rate_per_s:
            num = cause.num_nodes_lost
            found[num] = found.get(num, 0.0) + rate_per_s * cause.repair_mean_s
    return found


def node_availability(process: FailureProcess) -> float:
    """Share of the time that a node is not away for repair.

    >>> from datahall.catalog import load
    >>> from datahall.reliability.process import process_of
    >>> round(node_availability(process_of(load().failure_preset("tpu-v4"), load(), 1024)), 4)
    0.9986
    """
    nodes_away = sum(size * mean for size, mean in away(process).items())
    return max(0.0, 1.0 - nodes_away / process.num_nodes)


def spares_for(process: FailureProcess, enough_fraction: float) -> Spares:
    """The fewest spare nodes that suffice for such a share of the time."""
    return enough(away(process), enough_fraction)


def enough(repairs: Mapping[int, float], enough_fraction: float) -> Spares:
    """The fewest spares for repairs that each take some nodes, by their mean number under way.

    With 3.79e-3 failures of a node per day, of which half need a repair of three days:

    >>> [enough({1: nodes * 3.79e-3 * 0.5 * 3}, 0.99).num for nodes in (128, 2048, 12500)]
    [3, 20, 91]
    """
    if not 0.0 < enough_fraction <= MOST_ENOUGH:
        raise ScenarioError(
            f"spares cannot suffice {enough_fraction:g} of the time",
            field="spares_enough",
            hint="above 0 and below 1, e.g. 99 %",
        )
    weights = [1.0]  # Panjer: p(k) = Σ b λ_b p(k − b) / k, up to the factor that p(0) = e^−Λ is
    log_factor, added = -sum(repairs.values()), 1.0
    while (reached := exp(min(0.0, log_factor + log(added)))) < enough_fraction:
        k = len(weights)
        weights.append(sum(b * mean * weights[k - b] for b, mean in repairs.items() if b <= k) / k)
        added += weights[-1]
        if added > LARGE:
            weights, added, log_factor = (
                [one / LARGE for one in weights],
                added / LARGE,
                log_factor + log(LARGE),
            )
    return Spares(len(weights) - 1, sum(b * mean for b, mean in repairs.items()), reached)
