"""Collectives on a torus: buckets that pass along every axis both ways."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from datahall.errors import InfeasibleError, option
from datahall.fabric.collectives.algorithms.bus import Collective, Number
from datahall.fabric.collectives.algorithms.moves import MOVES


def bucket_all_gather_time(
    size_bytes: Number,
    axes: Sequence[int],
    *,
    hop_s: Number,
    bytes_per_s: Number,
    wrapped: bool = True,
    apart: Sequence[int] = (),
) -> Number:
    """Return the time [s] of an all-gather over the axes of a torus, bytes_per_s one way of one link.

    T = max(α Σ ⌊Xⱼ/2⌋, S / (2 d B)) with all d axes busy both ways.  Without wrap-around a line of X needs X−1 hops,
    and the end chip has one link only: T = max(α Σ (Xⱼ−1), (X−1)/X · S / (d B)).

    Ranks that stand gⱼ `apart` along an axis share its links with the gⱼ − 1 groups between them, so that Σ 1/gⱼ stands
    for d, hops are gⱼ as many, and no axis is faster than its cut: T ≥ (Xⱼ−1)/Xⱼ · S gⱼ / (2 B Π Xᵢ), i ≠ j.

    Reference: Austin et al., How to Scale Your Model, 2025.

    >>> round(bucket_all_gather_time(2**25, (4,), hop_s=1e-6, bytes_per_s=45e9) * 1e6)
    373
    >>> round(bucket_all_gather_time(2**25, (4,), hop_s=1e-6, bytes_per_s=45e9, wrapped=False) * 1e6)
    559
    >>> round(bucket_all_gather_time(2**25, (4,), hop_s=1e-6, bytes_per_s=45e9, apart=(4,)) * 1e6)
    1491
    """
    spread = buckets(axes, apart, wrapped=wrapped)
    if not spread.num_links:
        return 0.0 * size_bytes / bytes_per_s
    part = max(spread.share / spread.num_links, spread.cut)
    return np.maximum(float(spread.num_hops) * hop_s, part * size_bytes / bytes_per_s)


class Buckets(NamedTuple):
    """What buckets of an all-gather pass: hops, links of a chip, what goes over them, and over the worst cut."""

    num_hops: int
    num_links: float  # of a chip, each as far as it is its group's
    share: float  # of the array over all of them together
    cut: float  # of the array over each link of the narrowest cut


def buckets(axes: Sequence[int], apart: Sequence[int] = (), *, wrapped: bool = True) -> Buckets:
    """How an all-gather is spread over axes of a torus whose ranks stand so far apart (default: next to each other)."""
    gaps = apart or (1,) * len(axes)
    spans = [(length, gap) for length, gap in zip(axes, gaps, strict=True) if length > 1]
    ways, ranks = 2 if wrapped else 1, prod(axes)
    ends = [(length - 1) / length for length, _ in spans]
    return Buckets(
        num_hops=sum(length * gap // 2 if wrapped else (length - 1) * gap for length, gap in spans),
        num_links=ways * sum(1.0 / gap for _, gap in spans),
        share=1.0 if wrapped else max(ends, default=1.0),
        cut=max(
            (end * gap * length / (ways * ranks) for end, (length, gap) in zip(ends, spans, strict=True)),
            default=0.0,
        ),
    )


def bucket_all_reduce_time(
    size_bytes: Number,
    axes: Sequence[int],
    *,
    hop_s: Number,
    bytes_per_s: Number,
    wrapped: bool = True,
    apart: Sequence[int] = (),
) -> Number:
    """Return the time [s] of a reduce-scatter and an all-gather.

    >>> round(bucket_all_reduce_time(2**25, (4, 4), hop_s=1e-6, bytes_per_s=45e9) * 1e6)
    373
    """
    return 2.0 * bucket_all_gather_time(
        size_bytes, axes, hop_s=hop_s, bytes_per_s=bytes_per_s, wrapped=wrapped, apart=apart
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


class TorusGroup(NamedTuple):
    """Where a group of ranks stands on a torus."""

    axes: tuple[int, ...]  # its ranks along each axis that it spans
    apart: tuple[int, ...]  # places from one to the next along each, and so groups that share its links
    rings: bool  # whether all are rings
    num_slices: int

    @property
    def spans(self) -> tuple[int, ...]:
        """Places along each axis that it and the groups between its ranks take."""
        return tuple(length * gap for length, gap in zip(self.axes, self.apart, strict=True))


def group_axes(
    sides: Sequence[int], num_ranks: int, stride: int, *, wrapped: bool | None = None
) -> TorusGroup:
    """The axes that a group of ranks `stride` apart spans, whether they are rings, and the slices.

    Ranks are numbered with the first axis fastest.  Along a side of X, steps of s meet X / gcd(X, s) places before
    they return to the first, s / gcd(X, s) further on the next axis.

    Only a whole axis closes into a ring: one of more than two chips where the fabric is known to be `wrapped`, or one
    that TPUs close where nothing is known.  All chips of a wrapped fabric are on rings.

    >>> group_axes((4, 4, 8), 4, 1)
    TorusGroup(axes=(4,), apart=(1,), rings=True, num_slices=1)
    >>> group_axes((4, 4, 8), 32, 8)
    TorusGroup(axes=(2, 8), apart=(2, 1), rings=True, num_slices=2)
    >>> group_axes((6, 4, 4), 24, 4).axes
    (3, 2, 4)
    """
    axes, apart, rings, left = [], [], True, num_ranks
    for side in sides:
        shared = gcd(side, stride)
        taken = min(side // shared, left)
        stride //= shared
        left = -(-left // taken)
        if taken > 1:
            axes.append(taken)
            apart.append(shared)
            closed = side % CUBE_SIDE == 0 if len(sides) > 2 else side >= FLAT_SIDE
            if wrapped is not None:
                closed = wrapped and (side > 2 or num_ranks == prod(sides))
            rings = rings and taken * shared == side and closed
    return TorusGroup(tuple(axes), tuple(apart), rings, left)


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
    group = group_axes(sides, num_ranks, stride, wrapped=wrapped)
    rings, slices = group.rings, group.num_slices
    hop = HOP_S if hop_s is None else hop_s
    link = chip_bytes_per_s / (2.0 * len(sides)) if link_bytes_per_s is None else link_bytes_per_s
    row = MOVES[collective]
    if row.on_torus == "bisection":
        spans = group.spans or (1,)
        inside = torus_all_to_all_time(size_bytes, spans, hop_s=hop, bytes_per_s=link, wrapped=rings)
    elif row.on_torus == "link":
        inside = max(group.apart, default=1) * (hop + size_bytes / link)
    else:
        run = bucket_all_reduce_time if row.num_rounds == 2 else bucket_all_gather_time
        inside = run(size_bytes, group.axes, hop_s=hop, bytes_per_s=link, wrapped=rings, apart=group.apart)
    if slices == 1 or not row.joins_slices:
        return inside
    if not network_bytes_per_s > 0:
        raise InfeasibleError(
            f"{num_ranks:,} ranks need {slices} slices, and no network joins them",
            field="nic",
            hint=f"e.g. {option('nic', '100 Gb/s')}",
        )
    share = size_bytes / prod(group.axes)
    return inside + 2.0 * (slices - 1) / slices * share / network_bytes_per_s
