"""Which experts the tokens of a benchmark reach: dealt out in turn, or drawn from a power law."""

from __future__ import annotations

from functools import cache

import numpy as np

AGAIN = 0.9  # of its top_k that a token drew twice and draws anew while copies are fewer than experts, as measured


@cache
def busiest(tokens: int, experts: int, top_k: int, ep: int, how: str, draws: int = 24) -> tuple[float, float]:
    """Experts hit and token copies of the busiest of `ep` ranks, as the generator of AIConfigurator's tables routes.

    `balanced` deals copies out in turn; `power_law_a` draws each expert's share from x^-a between 1 and 0.8·tokens
    (0.01 and 2 while copies are fewer than experts), rounds, and no expert gets more copies than there are tokens.

    >>> busiest(64, 128, 8, 8, "balanced")
    (16.0, 64.0)
    """
    copies = tokens * top_k
    if how == "balanced":
        load = float(np.ceil(copies / ep))
        return min(load, experts / ep), load
    power = 1.0 - float(how.rsplit("_", 1)[1])
    low, high = (1.0, tokens * 0.8) if copies > experts else (0.01, 2.0)
    uniform = np.random.default_rng(1).random((draws, experts))
    shares = ((high**power - low**power) * uniform + low**power) ** (1.0 / power)
    rounded = np.round(shares / shares.sum(1, keepdims=True) * copies)
    hits, loads = [], []
    for drawn in rounded:
        order = np.argsort(-drawn)
        each = np.minimum(drawn, tokens)
        missing = int(copies - each.sum())
        while missing > 0:
            room = order[each[order] < tokens][:missing]
            each[room] += 1
            missing -= len(room)
        if missing < 0:  # rounding dealt out too many, at most half a copy to each expert that has one
            each[order[:-missing]] -= 1
        ranks = each.reshape(ep, -1)
        top = ranks[np.argmax(ranks.sum(1))]
        hits.append((top > 0).sum())
        loads.append(top.sum())
    hit, load = float(np.mean(hits)), max(1.0, float(np.mean(loads)))
    if copies <= experts:
        hit = hit + AGAIN * top_k / ep
    return max(1.0, min(hit, load, experts / ep)), load
