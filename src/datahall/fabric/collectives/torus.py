"""Collectives on a torus: buckets that pass along every axis both ways."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datahall.fabric.collectives.bus import Number


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
