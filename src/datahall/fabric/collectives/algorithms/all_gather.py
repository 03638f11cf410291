"""All-gather and reduce-scatter, which mirror each other: the same bytes, the other way round.

size_bytes is the whole array S (what a rank holds after an all-gather, or before a reduce-scatter).
"""

from __future__ import annotations

from datahall.fabric.collectives.algorithms.all_reduce import tree_depth
from datahall.fabric.collectives.algorithms.bus import Number

PAT_SHARE = 0.75  # of a ring's bandwidth, NCCL 2.23 to 2.29
PAT_RANK_S = 2.8e-6  # what each rank still adds


def bruck_all_gather_time(
    size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number
) -> Number:
    """Return the time [s] of Bruck's algorithm, or recursive doubling where n is a power of two.

    T = ⌈log₂ n⌉ α + (n−1)/n · S/B

    Reference: Bruck et al., 1997.

    >>> round(bruck_all_gather_time(1e9, 8.0, hop_s=1e-6, bytes_per_s=350e9), 6)
    0.002503
    """
    return tree_depth(num_ranks) * hop_s + (num_ranks - 1.0) / num_ranks * size_bytes / bytes_per_s


def pat_all_gather_time(
    size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number, rank_s: Number = PAT_RANK_S
) -> Number:
    """Return the time [s] of NCCL's parallel aggregated trees: logarithmic steps in bounded buffers.

    T = ⌈log₂ n⌉ α + n · 2.8 µs + (n−1)/n · S/(0.75 B); the part linear in n is what is left to be removed.

    Reference: Jeaugey, "PAT", 2025; NCCL since 2.23, one rank per node.

    >>> round(pat_all_gather_time(1e6, 8.0, hop_s=14e-6, bytes_per_s=50e9), 7)
    8.77e-05
    """
    steps = tree_depth(num_ranks) * hop_s + num_ranks * rank_s
    return steps + (num_ranks - 1.0) / num_ranks * size_bytes / (PAT_SHARE * bytes_per_s)


halving_reduce_scatter_time = bruck_all_gather_time
pat_reduce_scatter_time = pat_all_gather_time
