"""What bands are worth on runs of somebody else: those of a source by the spread of all others.

A band is the spread of our errors on measured rows, mostly on the very ones that the ledger scores: eight of ten of
them lie inside by construction.  Here each source's rows are judged by bands that its own rows had no part in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from datahall.validation.scorecard import Coverage, Prediction

LEAST_ROWS = 20  # of a source: with fewer its share inside a band says little
FEW = 10  # rows of one kind from other sources; with fewer, all of the metric, as calibration/fit_training.py does
QUANTILES = (0.1, 0.9)


def coverage_apart(judged: Sequence[Prediction]) -> dict[str, Coverage]:
    """For every source and metric of enough rows the share inside its bands, as stated and as others would make them.

    Rows whose stated band is as far from their prediction are of one kind: bands are made kind by kind.
    """
    ratios = np.array([one.away(one.measured) for one in judged])
    sources = np.array([_source(one) for one in judged])
    metrics = np.array([one.metric for one in judged])
    kinds = np.array([f"{one.metric} {one.away(one.low):.6f} {one.away(one.high):.6f}" for one in judged])
    inside = np.array([one.low <= one.measured <= one.high for one in judged])
    found = {}
    for metric in dict.fromkeys(one.metric for one in judged):
        for source in sorted({_source(one) for one in judged if one.metric == metric}):
            own = (sources == source) & (metrics == metric)
            others = (sources != source) & (metrics == metric)
            if own.sum() < LEAST_ROWS or others.sum() < FEW:
                continue
            held = _held(ratios, kinds, own, others)
            name = f"{source}, {metric}" if metric else source
            found[name] = Coverage(int(own.sum()), float(inside[own].mean() * 100.0), held)
    return found


def _held(
    ratios: NDArray[np.float64], kinds: NDArray[np.str_], own: NDArray[np.bool_], others: NDArray[np.bool_]
) -> float:
    """Percent of the own rows between P10 and P90 of the others, kind by kind."""
    held = 0
    for kind in set(kinds[own]):
        alike = others & (kinds == kind)
        low, high = np.quantile(ratios[alike if alike.sum() >= FEW else others], QUANTILES)
        mine = ratios[own & (kinds == kind)]
        held += int(((mine >= low) & (mine <= high)).sum())
    return held / int(own.sum()) * 100.0


def _source(one: Prediction) -> str:
    """Who measured: kernels are told apart by kind after a colon, which is no other source."""
    return one.source.partition(": ")[0]
