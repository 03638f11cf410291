"""Collectives on a torus: buckets that pass along every axis both ways."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

import numpy as np

from datahall.errors import InfeasibleError, option
from datahall.fabric.collectives.algorithms.bus import Collective, Number
from datahall.fabric.collectives.algorithms.table import TABLE


def bucket_all_gather_time(
    size_bytes: Number, axes: Sequence[int], *, hop_s: Number, bytes_per_s: Number, wrapped: bool = True
) -> Number:
    """Return the time [s] of an all-gather over the axes of a torus, bytes_per_s one way of one link.

    T = max(α Σ ⌊Xⱼ/2⌋, S / (2 d B)) with all d axes busy both ways.  Without wrap-around a line of X needs X−1 hops,
    and the end chip has one link only: T = max(α Σ (Xⱼ−1), (X−1)/X · S / (d B)).

    Reference: Austin et al., How to Scale Your Model, 2025.

    >>> round(bucket_all_gather_time(2**25, (4,), hop_s=1e-6, bytes_per_s=45e9) * 1e6)
    373
    >>> round(bucket_all_gather_time(2**25, (4,), hop_s=1e-6, bytes_per_s=45e9, wrapped=False) * 1e6)
    559
    """
    lengths = [length for length in axes if length > 1]
    if not lengths:
        return 0.0 * size_bytes / bytes_per_s
    if wrapped:
        hops = float(sum(length // 2 for length in lengths))
        transfer = size_bytes / (2.0 * len(lengths) * bytes_per_s)
    else:
        hops = float(sum(length - 1 for length in lengths))
        share = max((length - 1) / length for length in lengths)
        transfer = share * size_bytes / (len(lengths) * bytes_per_s)
    return np.maximum(hops * hop_s, transfer)


def bucket_all_reduce_time(
    size_bytes: Number, axes: Sequence[int], *, hop_s: Number, bytes_per_s: Number, wrapped: bool = True
) -> Number:
    """Return the time [s] of a reduce-scatter and an all-gather.

    >>> round(bucket_all_reduce_time(2**25, (4, 4), hop_s=1e-6, bytes_per_s=45e9) * 1e6)
    373
    """
    return 2.0 * bucket_all_gather_time(
        size_bytes, axes, hop_s=hop_s, bytes_per_s=bytes_per_s, wrapped=wrapped
    )


def torus_all_to_all_time(
    size_bytes: Number, axes: Sequence[int], *, hop_s: Number, bytes_per_s: Number, wrapped: bool = True
) -> Number:
    """Return the time [s] of an all-to-all, which the bisection bounds.

    T = α Σ ⌊Xⱼ/2⌋ + S · X_max / (8 B); without wrap-around twice the transfer.

    >>> round(torus_all_to_all_time(1e9, (16, 20, 28), hop_s=1e-6, bytes_per_s=100e9), 4)
    0.035
    """
    longest = max(axes)
    hops = float(sum(length // 2 for length in axes))
    return hops * hop_s + size_bytes * longest / ((8.0 if wrapped else 4.0) * bytes_per_s)


CUBE_SIDE, FLAT_SIDE = 4, 16  # an axis closes into a ring at whole cubes (v4, v5p, v7x), or at 16 (v5e, v6e)
HOP_S = 1e-6  # of one link; Austin et al., How to Scale Your Model, 2025


def group_axes(sides: Sequence[int], num_ranks: int, stride: int) -> tuple[tuple[int, ...], bool, int]:
    """The axes that a group of ranks `stride` apart spans, whether all are rings, and the slices it spans.

    Ranks are numbered with the first axis fastest.  Along a side of X, steps of s meet X / gcd(X, s) places before
    they return to the first, s / gcd(X, s) further on the next axis.

    >>> group_axes((4, 4, 8), 4, 1), group_axes((4, 4, 8), 64, 4), group_axes((16, 16), 512, 1)
    (((4,), True, 1), ((4, 8), True, 2), ((16, 16), True, 2))
    >>> group_axes((6, 4, 4), 24, 4)
    ((3, 2, 4), False, 1)
    """
    axes, rings, left = [], True, num_ranks
    for side in sides:
        shared = gcd(side, stride)
        taken = min(side // shared, left)
        stride //= shared
        left = -(-left // taken)
        if taken > 1:
            axes.append(taken)
            closed = side % CUBE_SIDE == 0 if len(sides) > 2 else side >= FLAT_SIDE
            rings = rings and taken == side and closed
    return tuple(axes), rings, left


def torus_times(
    collective: Collective,
    size_bytes: Number,
    sides: Sequence[int],
    *,
    num_ranks: int,
    stride: int,
    chip_bytes_per_s: float,
    network_bytes_per_s: float,
    link_bytes_per_s: float | None = None,
    hop_s: float | None = None,
    wrapped: bool | None = None,
) -> Number:
    """Return the time [s] of a collective among ranks of slices that each hold a whole copy of what is shared.

    A gather therefore stays inside a slice; a sum is scattered inside, and each chip's share is then summed over the
    network: + 2·(m − 1)/m · S/n / B for m slices of n chips.  Where nothing is said of the links, a chip's bandwidth is
    spread over two an axis, and an axis is a ring where it is whole and TPUs close it.
    """
    axes, rings, slices = group_axes(sides, num_ranks, stride)
    if wrapped is not None:
        rings = wrapped and (num_ranks == prod(sides) or rings)
    hop = HOP_S if hop_s is None else hop_s
    link = chip_bytes_per_s / (2.0 * len(sides)) if link_bytes_per_s is None else link_bytes_per_s
    row = TABLE[collective]
    if row.on_torus == "bisection":
        inside = torus_all_to_all_time(size_bytes, axes or (1,), hop_s=hop, bytes_per_s=link, wrapped=rings)
    elif row.on_torus == "link":
        inside = hop + size_bytes / link
    else:
        run = bucket_all_reduce_time if row.num_rounds == 2 else bucket_all_gather_time
        inside = run(size_bytes, axes, hop_s=hop, bytes_per_s=link, wrapped=rings)
    if slices == 1 or not row.joins_slices:
        return inside
    if not network_bytes_per_s > 0:
        raise InfeasibleError(
            f"{num_ranks:,} ranks need {slices} slices, and no network joins them",
            field="nic",
            hint=f"e.g. {option('nic', '100 Gb/s')}",
        )
    share = size_bytes / prod(axes)
    return inside + 2.0 * (slices - 1) / slices * share / network_bytes_per_s
