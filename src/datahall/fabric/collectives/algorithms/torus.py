"""Collectives on a torus: buckets that pass along every axis both ways."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from datahall.errors import InfeasibleError, option
from datahall.fabric.collectives.algorithms.bus import Collective, Number
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.topology.grids.sides import CUBE_SIDE


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
    and of N = Π Xⱼ chips one in a corner gets all others' over one link an axis:
    T = max(α Σ (Xⱼ−1), (N−1)/N · S / (d B)).  An axis of two has one link either way.

    Ranks that stand gⱼ `apart` along an axis share its links with the gⱼ − 1 groups between them, so that Σ 1/gⱼ stands
    for d, hops are gⱼ as many, and no axis is faster than its cut: T ≥ (Xⱼ−1)/Xⱼ · S gⱼ / (2 B Π Xᵢ), i ≠ j.

    Reference: Austin et al., How to Scale Your Model, 2025.

    >>> round(bucket_all_gather_time(2**25, (4,), hop_s=1e-6, bytes_per_s=45e9) * 1e6)
    373
    >>> round(bucket_all_gather_time(2**25, (4,), hop_s=1e-6, bytes_per_s=45e9, wrapped=False) * 1e6)
    559
    >>> round(bucket_all_gather_time(2**25, (4, 4), hop_s=1e-6, bytes_per_s=45e9, wrapped=False) * 1e6)
    350
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
    ways = [2 if wrapped and length * gap > 2 else 1 for length, gap in spans]
    ranks = prod(axes)
    return Buckets(
        num_hops=sum(length * gap // 2 if wrapped else (length - 1) * gap for length, gap in spans),
        num_links=sum(links / gap for links, (_, gap) in zip(ways, spans, strict=True)),
        share=1.0 if 2 in ways else (ranks - 1) / ranks,
        cut=max(
            ((length - 1) * gap / (links * ranks) for links, (length, gap) in zip(ways, spans, strict=True)),
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


FLAT_SIDE = 16  # axes close into rings at whole cubes (v4, v5p, v7x), or from here on (v5e, v6e)
# Of one link: 1 µs on the wire and about as much again in the kernel (estimate).  Austin et al., How to Scale Your
# Model, 2025, state the first, and 8 µs for three hops of a TPU v5e in practice.
HOP_S = 2e-6


def closes(sides: Sequence[int]) -> bool:
    """Whether TPUs close the axes of a slice into rings; a smaller one is a mesh.

    >>> [closes(sides) for sides in ((2, 2, 4), (4, 4, 4), (8, 16), (16, 16))]
    [False, True, False, True]
    """
    return all(side % CUBE_SIDE == 0 if len(sides) > 2 else side >= FLAT_SIDE for side in sides)


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

    Only a whole axis closes into a ring, one of more than two chips, where the fabric is `wrapped` (default: as TPUs
    are).  All chips of a wrapped fabric are on rings, unless all its axes are of two.

    >>> group_axes((4, 4, 8), 4, 1)
    TorusGroup(axes=(4,), apart=(1,), rings=True, num_slices=1)
    >>> group_axes((4, 4, 8), 32, 8)
    TorusGroup(axes=(2, 8), apart=(2, 1), rings=True, num_slices=2)
    >>> group_axes((6, 4, 4), 24, 4).axes
    (3, 2, 4)
    """
    if stride >= prod(sides):  # each in a slice of its own
        return TorusGroup((), (), False, num_ranks)
    around = closes(sides) if wrapped is None else wrapped
    axes, apart, rings, left = [], [], around, num_ranks
    for side in sides:
        shared = gcd(side, stride)
        taken = min(side // shared, left)
        stride //= shared
        left = -(-left // taken)
        if taken > 1:
            axes.append(taken)
            apart.append(shared)
            rings = rings and taken * shared == side and (side > 2 or num_ranks == prod(sides))
    long = any(length * gap > 2 for length, gap in zip(axes, apart, strict=True))
    return TorusGroup(tuple(axes), tuple(apart), rings and long, left)


def between_slices(collective: Collective, group: TorusGroup) -> float:
    """Bytes that a chip sends to those of other slices, or gets from them, over the size of the array.

    An array that is gathered, or scattered and summed, goes once as the share of one chip of a slice, (m − 1)/m · S/n
    for m slices of n chips, and of an all-reduce twice; of pieces to all chips those for other slices go,
    (m − 1)/m · S; a message goes whole.
    """
    row, others = MOVES[collective], (group.num_slices - 1) / group.num_slices
    if row.on_torus == "link":
        return 1.0 if others else 0.0
    if row.on_torus == "bisection":
        return others
    return row.num_rounds * others / prod(group.axes)


def torus_steps(collective: Collective, group: TorusGroup) -> int:
    """The hops that follow each other in a collective of a group that stays inside a slice.

    >>> torus_steps("all-reduce", group_axes((16, 16, 16), 4096, 1))
    48
    """
    row = MOVES[collective]
    if row.on_torus == "link":
        return max(group.apart, default=1)
    if row.on_torus == "bisection":
        return sum(length // 2 for length in group.spans)
    return row.num_rounds * buckets(group.axes, group.apart, wrapped=group.rings).num_hops


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
    """Return the time [s] of a collective among ranks of a slice, or of several that a network joins.

    Where there are several, what `between_slices` counts goes over the network: shares before or after the slices do
    theirs, pieces and messages, which go straight to whom they are for, at the same time.  Where nothing is said of the
    links, a chip's bandwidth is spread over two an axis, and an axis is a ring where it is whole and TPUs close it.
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
    if slices == 1:
        return inside
    if not network_bytes_per_s > 0:
        raise InfeasibleError(
            f"{num_ranks:,} ranks need {slices} slices, and no network joins them",
            field="nic",
            hint=f"e.g. {option('nic', '100 Gb/s')}",
        )
    across = between_slices(collective, group) * size_bytes / network_bytes_per_s
    if row.on_torus == "buckets":
        return inside + across
    return np.maximum(inside, across) if group.axes else across
