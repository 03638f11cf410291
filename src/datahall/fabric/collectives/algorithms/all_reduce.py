"""All-reduce: published algorithms side by side with the same arguments.

size_bytes is the whole array S, as in nccl-tests; hop_s is the latency of one step α; bytes_per_s is the one-way
bandwidth of one rank B.  All arguments may be arrays of one shape.
"""

from __future__ import annotations

import numpy as np

from datahall.fabric.collectives.algorithms.bus import Number
from datahall.fabric.collectives.algorithms.pipeline import overlapped


def tree_depth(num_ranks: Number) -> Number:
    """Return ⌈log₂ n⌉, the steps of one phase of a binomial tree.

    >>> tree_depth(10_000.0), tree_depth(8.0)
    (14.0, 3.0)
    """
    depth = np.ceil(np.log2(num_ranks))
    return float(depth) if np.ndim(depth) == 0 else depth


def ring_all_reduce_steps(num_ranks: Number) -> Number:
    """Return 2(n−1): n−1 steps to reduce and n−1 to spread.

    >>> ring_all_reduce_steps(10_000.0)
    19998.0
    """
    return 2.0 * (num_ranks - 1.0)


def tree_all_reduce_steps(num_ranks: Number) -> Number:
    """Return 2⌈log₂ n⌉: up the tree and down again.

    >>> tree_all_reduce_steps(10_000.0)
    28.0
    """
    return 2.0 * tree_depth(num_ranks)


def ring_all_reduce_time(
    size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number
) -> Number:
    """Return the time [s] of a ring.

    T = 2(n−1) α + 2(n−1)/n · S/B.  Latency grows with n; bytes per rank stay below 2S, which no algorithm without
    help from the network beats.

    Reference: Patarasuk and Yuan, 2009.

    >>> ring_all_reduce_time(1e9, 8.0, hop_s=1e-6, bytes_per_s=350e9)
    0.005014
    """
    steps = ring_all_reduce_steps(num_ranks)
    return steps * hop_s + steps / num_ranks * size_bytes / bytes_per_s


def tree_all_reduce_time(
    size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number
) -> Number:
    """Return the time [s] of a binomial tree that sends whole arrays.

    T = 2⌈log₂ n⌉ (α + S/B): few steps, but each moves all of S.

    Reference: Thakur, Rabenseifner and Gropp, 2005.

    >>> round(tree_all_reduce_time(1e9, 8.0, hop_s=1e-6, bytes_per_s=350e9), 6)
    0.017149
    """
    return tree_all_reduce_steps(num_ranks) * (hop_s + size_bytes / bytes_per_s)


def best_chunks(size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number) -> Number:
    """Return the number of chunks that makes a pipelined tree fastest, at least 1.

    c* = √((⌈log₂ n⌉ − 1) S / (α B))

    >>> round(best_chunks(1e9, 1024.0, hop_s=5e-6, bytes_per_s=50e9))
    190
    """
    ratio = (tree_depth(num_ranks) - 1.0) * size_bytes / (hop_s * bytes_per_s)
    return np.maximum(1.0, ratio**0.5)


def pipelined_tree_all_reduce_time(
    size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number
) -> Number:
    """Return the time [s] of a tree that sends chunks one after another, with the best number of them.

    T = 2 (⌈log₂ n⌉ + c − 1)(α + S/(c B))

    Reference: Sanders, Speck and Träff, 2009.

    >>> float(round(pipelined_tree_all_reduce_time(1e9, 8.0, hop_s=1e-6, bytes_per_s=350e9), 6))
    0.006021
    """
    chunks = best_chunks(size_bytes, num_ranks, hop_s=hop_s, bytes_per_s=bytes_per_s)
    return 2.0 * (tree_depth(num_ranks) + chunks - 1.0) * (hop_s + size_bytes / (chunks * bytes_per_s))


def double_binary_tree_all_reduce_time(
    size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number
) -> Number:
    """Return the time [s] of two complementary trees, each with half of the array.

    T = 2⌈log₂ n⌉ α + 2 S/B: every rank is a leaf of one tree and an inner node of the other, so all links work.

    Reference: Sanders, Speck and Träff, 2009; NCCL since 2.4.

    >>> double_binary_tree_all_reduce_time(1e9, 8.0, hop_s=1e-6, bytes_per_s=400e9)
    0.005006
    """
    return tree_all_reduce_steps(num_ranks) * hop_s + 2.0 * size_bytes / bytes_per_s


def halving_doubling_all_reduce_time(
    size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number
) -> Number:
    """Return the time [s] of recursive halving, then doubling.

    T = 2⌊log₂ n⌋ α + 2(n'−1)/n' · S/B with n' the largest power of two; others fold in first and get the result
    last, for 2α + 2S/B more.

    Reference: Rabenseifner, 2004.

    >>> float(halving_doubling_all_reduce_time(1e9, 8.0, hop_s=1e-6, bytes_per_s=350e9))
    0.005006
    """
    rounds = np.floor(np.log2(num_ranks))
    power = 2.0**rounds
    folded = 1.0 * (num_ranks > power)
    halves = 2.0 * rounds * hop_s + 2.0 * (power - 1.0) / power * size_bytes / bytes_per_s
    found: Number = halves + folded * (2.0 * hop_s + 2.0 * size_bytes / bytes_per_s)
    return found


def two_level_all_reduce_time(
    size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number, num_domain: Number,
    across_hop_s: Number, across_bytes_per_s: Number, hidden: bool = False,
) -> Number:  # fmt: skip
    """Return the time [s] of reduce-scatter in a domain of g, all-reduce across k = n/g, all-gather in the domain.

    T = 2(g−1) αᵢ + 2(g−1)/g · S/Bᵢ + 2(k−1) αₓ + 2(k−1)/k · (S/g)/Bₓ; with `hidden` the smaller of the two transfer
    terms hides behind the other.

    Reference: Cho et al., BlueConnect, 2019.

    >>> inside = dict(hop_s=1e-6, bytes_per_s=350e9)
    >>> across = dict(num_domain=8.0, across_hop_s=10e-6, across_bytes_per_s=50e9)
    >>> round(two_level_all_reduce_time(1e9, 64.0, **inside, **across), 6)
    0.009529
    """
    domains = num_ranks / num_domain
    latency = 2.0 * (num_domain - 1.0) * hop_s + 2.0 * (domains - 1.0) * across_hop_s
    inside = 2.0 * (num_domain - 1.0) / num_domain * size_bytes / bytes_per_s
    across = 2.0 * (domains - 1.0) / domains * size_bytes / num_domain / across_bytes_per_s
    return latency + (np.maximum(inside, across) if hidden else inside + across)


def nvlink_sharp_all_reduce_time(
    size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number, overlap: float = 1.0
) -> Number:
    """Return the time [s] when the NVSwitch adds and multicasts.

    T = α ⊕ (n+1)/n · S/B: a rank sends its array once and receives its share of the sum, where a ring sends nearly
    twice.  bytes_per_s is what multicast reaches, below the link's rate.

    Reference: Klenk et al., ISCA 2020; NCCL since 2.17.

    >>> round(nvlink_sharp_all_reduce_time(8 * 2**30, 8.0, hop_s=25e-6, bytes_per_s=310e9), 4)
    0.0312
    """
    return overlapped(hop_s, (num_ranks + 1.0) / num_ranks * size_bytes / bytes_per_s, overlap)


def infiniband_sharp_all_reduce_time(
    size_bytes: Number, num_ranks: Number, *,  # noqa: ARG001  # the arguments of its neighbours
    hop_s: Number, bytes_per_s: Number, num_domain: Number,
    across_hop_s: Number, across_bytes_per_s: Number,
) -> Number:  # fmt: skip
    """Return the time [s] when the switches of the network add: each byte leaves a rank once.

    T = 2(g−1) αᵢ + αₓ + max(2(g−1)/g · S/Bᵢ, (S/g)/Bₓ), at most twice as fast as a ring and never faster than the
    domain inside.

    Reference: Graham et al., SHARP, 2016.

    >>> inside = dict(hop_s=1e-6, bytes_per_s=350e9)
    >>> across = dict(num_domain=8.0, across_hop_s=30e-6, across_bytes_per_s=50e9)
    >>> float(round(infiniband_sharp_all_reduce_time(1e9, 64.0, **inside, **across), 6))
    0.005044
    """
    inside = 2.0 * (num_domain - 1.0) / num_domain * size_bytes / bytes_per_s
    across = size_bytes / num_domain / across_bytes_per_s
    return 2.0 * (num_domain - 1.0) * hop_s + across_hop_s + np.maximum(inside, across)
