"""Collectives with a root."""

from __future__ import annotations

from datahall.fabric.collectives.algorithms.all_reduce import tree_depth
from datahall.fabric.collectives.algorithms.bus import Number


def ring_broadcast_time(
    size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number
) -> Number:
    """Return the time [s] of a pipelined chain from the root.

    T = (n−1) α + S/B

    >>> ring_broadcast_time(1e9, 8.0, hop_s=1e-6, bytes_per_s=400e9)
    0.002507
    """
    return (num_ranks - 1.0) * hop_s + size_bytes / bytes_per_s


def tree_broadcast_time(
    size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number
) -> Number:
    """Return the time [s] of pipelined trees from the root.

    T = ⌈log₂ n⌉ α + S/B

    >>> tree_broadcast_time(1e9, 8.0, hop_s=1e-6, bytes_per_s=400e9)
    0.002503
    """
    return tree_depth(num_ranks) * hop_s + size_bytes / bytes_per_s


tree_reduce_time = tree_broadcast_time
