"""How unevenly a router loads the chips that hold the experts; the busiest one holds up the others."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]

LARGEST_SHARE = 0.8  # of the tokens that reach the most popular expert, as the reference draws them


def largest_of(num_draws: Column | float) -> Column:
    """The largest of so many draws of a normal distribution, in standard deviations; Blom (1958).

    >>> round(float(largest_of(8.0)), 2)
    1.43
    """
    counts = np.asarray(num_draws, dtype=np.float64)
    inverse = np.vectorize(NormalDist().inv_cdf, otypes=[np.float64])
    return np.asarray(inverse((counts - 0.375) / (counts + 0.25)))


def evenly_routed(
    num_tokens: Column | float, num_experts: int, top_k: int, num_ranks: Column | float
) -> Column:
    """Load of the busiest rank over the mean where every expert is as popular as every other: chance alone.

    A token draws top_k of E experts without putting one back, so that the copies on one of R ranks have

        Var / mean² = (R − 1)·(E − k) / ((E − 1)·T·k)        T tokens of all ranks

    This is what routers do that a balancing loss or offset holds even, and benchmarks that force balance by drawing
    experts at random.

    >>> round(float(evenly_routed(4096.0 * 64, 256, 8, 64.0)), 3)
    1.013
    """
    ranks = np.asarray(num_ranks, dtype=np.float64)
    spread = (ranks - 1.0) * (num_experts - top_k) / (max(1, num_experts - 1) * num_tokens * top_k)
    return np.where(ranks > 1, 1.0 + largest_of(np.maximum(ranks, 2.0)) * np.sqrt(spread), 1.0)


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
    variance = each * shares.var(axis=1) * (num_experts - each) / max(1, num_experts - 1)
    beside = (each - 1.0) * (1.0 - popular) / max(1, num_experts - 1)
    factor: Column = np.maximum(
        1.0 + num_ranks * float(largest_of(num_ranks)) * np.sqrt(variance),
        num_ranks * np.minimum(popular + beside, each / top_k),
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
