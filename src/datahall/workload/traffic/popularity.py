"""Who is asked for how often: Zipf's law over prompts, documents and questions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from datahall.workload.traffic.requests import Floats, Ints


def zipf_shares(num: int, zipf_factor: float) -> Floats:
    """Shares of `num` items by rank: pᵢ = i^−α / Σ j^−α; α = 0 makes all equally popular.

    Breslau, Cao, Fan, Phillips, Shenker, "Web caching and Zipf-like distributions", INFOCOM 1999, found
    α = 0.64–0.83 for web pages.

    >>> zipf_shares(3, 1.0).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    weights = np.arange(1, num + 1, dtype=np.float64) ** -zipf_factor
    return np.asarray(weights / weights.sum())


@lru_cache(maxsize=8)
def _cumulative(num: int, zipf_factor: float) -> Floats:
    return np.cumsum(zipf_shares(num, zipf_factor))


def draw_ranks(random: np.random.Generator, size: int, num: int, zipf_factor: float) -> Ints:
    """Ranks 0 … num − 1 of items asked for; rank 0 is the most popular."""
    if num == 1:
        return np.zeros(size, np.int64)
    ranks = np.searchsorted(_cumulative(num, zipf_factor), random.random(size), side="right")
    return np.minimum(ranks, num - 1).astype(np.int64)  # the last sum may round to just below 1
