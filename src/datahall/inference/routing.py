"""How unevenly a router loads the chips that hold the experts; the busiest one holds up the others."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from datahall.inference.replica import Replica

Column = NDArray[np.float64]

LARGEST_SHARE = 0.8  # of the tokens that reach the most popular expert, as the reference draws them


def imbalance(replica: Replica, num_tokens: Column) -> Column:
    """Copies on the busiest of the ranks that hold a replica's experts, over the mean; 1 where nothing is spread."""
    moe = replica.model.moe
    if moe is None or replica.ep == 1 or replica.routing_skew <= 0:
        return np.ones_like(num_tokens)
    return busiest_rank(num_tokens * replica.dp, moe.num_experts, moe.top_k, replica.ep, replica.routing_skew)


def busiest_rank(num_tokens: Column, num_experts: int, top_k: int, num_ranks: int, exponent: float) -> Column:
    """Load of the busiest rank over the mean, when the tokens of an expert are drawn from a power law.

    Parameters: tokens routed, of all ranks; experts; experts per token; ranks that hold m = E/ranks of them, placed
    without regard to their load; exponent a of the density x^−a on [1, 0.8·tokens] that an expert's load is drawn from.

        q_i    = ((x₁^(1−a) − 1)·u_i + 1)^(1/(1−a)),  u_i = (i + ½)/E,  x₁ = 0.8·tokens;   p_i = min(q_i / Σq, 1/k)
        spread = ranks·z·√(m·Var(p)·(E − m)/(E − 1)),  z the largest of so many normal draws
        factor = max(1 + spread, ranks·(p_max + (m − 1)·(1 − p_max)/(E − 1)))

    The second is the rank of the most popular expert with average ones beside it.  Reference: the distributions named
    power_law_1.01 and power_law_1.2 of AIConfigurator's MoE tables (NVIDIA, 2025); Blom (1958) for z.

    >>> busiest_rank(np.array([1024.0]), 256, 8, 8, 1.2).round(2)
    array([1.48])
    """
    if num_ranks == 1:
        return np.ones_like(num_tokens)
    shares = popularity(num_tokens, num_experts, top_k, exponent)
    each, popular = num_experts / num_ranks, shares[:, -1]
    largest = NormalDist().inv_cdf((num_ranks - 0.375) / (num_ranks + 0.25))
    variance = each * shares.var(axis=1) * (num_experts - each) / max(1, num_experts - 1)
    beside = (each - 1.0) * (1.0 - popular) / max(1, num_experts - 1)
    factor: Column = np.maximum(
        1.0 + num_ranks * largest * np.sqrt(variance), num_ranks * np.minimum(popular + beside, each / top_k)
    )
    return np.minimum(factor, num_ranks * min(1.0, each / top_k))


def popularity(num_tokens: Column, num_experts: int, top_k: int, exponent: float) -> NDArray[np.float64]:
    """Shares of all copies that go to each expert, least popular first: [tokens, expert]."""
    most = np.maximum(LARGEST_SHARE * num_tokens, 1.0 + 1e-9)[:, None]
    place = ((np.arange(num_experts) + 0.5) / num_experts)[None, :]
    if abs(exponent - 1.0) < 1e-9:
        drawn = most**place
    else:
        drawn = ((most ** (1.0 - exponent) - 1.0) * place + 1.0) ** (1.0 / (1.0 - exponent))
    shares: NDArray[np.float64] = np.minimum(drawn / drawn.sum(axis=1, keepdims=True), 1.0 / top_k)
    return shares
