"""What other fleets say of one: failure rates and causes pooled over all sources but its own.

Rates of fleets differ by their owners' hardware, burn-in and what they count, so the pooled one is a geometric mean and
its band their spread: e^(±1.28 s √(1 + 1/k)) of k fleets whose logarithms have the standard deviation s.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import exp, log, sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from datahall.catalog import Catalog
from datahall.catalog.entries.failures import FailurePreset
from datahall.reliability.asked import gpu_fleets
from datahall.validation.measurement import Row, RowError

P90 = 1.2815515655446004  # standard deviations of a normal
FEWEST = 2  # fleets whose spread says something
PAPER = re.compile(r"\d{4}\.\d{5}")


class Pooled(NamedTuple):
    """A rate that other fleets agree on, and how far one of them lies from it."""

    rate_per_node_day: float
    low_ratio: float
    high_ratio: float


def own_presets(row: Row, catalog: Catalog) -> list[FailurePreset]:
    """The presets that were made of the paper a row is from."""
    papers = set(PAPER.findall(row.text("primary_source")))
    return [
        one
        for one in catalog.failure_presets()
        if papers & {paper for fact in one.facts.values() for paper in PAPER.findall(fact.source.title)}
    ]


def other_fleets(row: Row, catalog: Catalog) -> list[FailurePreset]:
    """Fleets of GPUs that the source of a row did not count."""
    own = {one.name for one in own_presets(row, catalog)}
    return [one for one in gpu_fleets(catalog) if one.name not in own]


def pooled(fleets: Sequence[FailurePreset]) -> Pooled:
    """The rate of some fleets together."""
    if len(fleets) < FEWEST:
        raise RowError("fewer than two other fleets were counted")
    logs = [log(one.rate_per_node_day) for one in fleets]
    ratio = exp(P90 * stdev(logs) * sqrt(1.0 + 1.0 / len(logs)))
    return Pooled(exp(fmean(logs)), 1.0 / ratio, ratio)


def shares(fleets: Sequence[FailurePreset]) -> dict[str, float]:
    """The share of each component in the causes that fleets counted themselves, one fleet as good as another."""
    tables = [one for one in fleets if any(cause.num_interruptions for cause in one.causes)]
    found: dict[str, float] = {}
    for table in tables:
        whole = sum(cause.num_interruptions for cause in table.causes)
        for cause in table.causes:
            share = cause.num_interruptions / whole / len(tables)
            found[cause.component] = found.get(cause.component, 0.0) + share
    return found
