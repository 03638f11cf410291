"""The bytes that a collective moves out of a part of its ranks, and the time that the way out needs for them.

    T ≥ bytes that leave / bandwidth out

n ranks, of which m are in the part, k parts.  An algorithm that is named sends what `algorithms.sent` counts.  Without
a name it is the least that any has to: an all-reduce that adds at the ranks makes k − 1 partial sums leave their part
and k − 1 copies of the result come back, 2(k−1)/k · S a part.

Reference: Patarasuk and Yuan, 2009 (all-reduce); the others count what has to be on the other side in the end.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from datahall.fabric.collectives.algorithms.bus import Floats, Number
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.collectives.algorithms.table import sent, sent_between
from datahall.fabric.collectives.system import System
from datahall.fabric.topology.cuts import Cut
from datahall.fabric.topology.graph import Ints
from datahall.scenario.words import Collective

# what a part lets out of its own comes in from the others, where the result is the other of the two
OTHER_WAY = {"whole": "share", "share": "whole"}
FULL = 0.99  # of the ports below it: a way out as wide as this is not narrow


class Sends(NamedTuple):
    """What runs: a collective by an algorithm (none: the best that can be), with so many ranks in a scale-up domain."""

    collective: Collective
    algorithm: str | None = None
    num_domain: int = 1


def crossing_share(sends: Sends, num_ranks: int, cut: Cut) -> float:
    """Return the bytes that leave a part of the ranks, or enter it if those are more, over the size of the array.

    >>> half = Cut(name="half", num_below=512, num_full=512, bytes_per_s=1e12, link_bytes_per_s=50e9)
    >>> [crossing_share(Sends(kind), 1024, half) for kind in ("all-reduce", "all-to-all", "all-gather", "broadcast")]
    [1.0, 256.0, 0.5, 1.0]
    >>> crossing_share(Sends("all-reduce", "ring"), 1024, half)
    1.998046875
    """
    below, full = min(cut.num_below, num_ranks), min(cut.num_full, num_ranks)
    result = MOVES[sends.collective].result
    least = _least_passing(result, num_ranks, below)
    if least == 0.0:
        return 0.0
    if sends.algorithm is not None:
        first = np.arange(0, num_ranks, below, dtype=np.int32)
        own = _sent(sends, num_ranks, first, np.minimum(first + below, num_ranks)).max()
        return max(float(own), crossing_share(Sends(sends.collective), num_ranks, cut))
    if result == "sum":
        parts = -(-num_ranks // full)
        return 2.0 * (parts - 1) / parts
    return least


def straddling_share(sends: Sends, num_ranks: int, cut: Cut) -> float:
    """Return the bytes that leave a part, or enter it, of all groups that lie across its ends, over an array's size.

    Groups of n ranks `stride` apart stand in a row, n · stride endpoints a block, and so do the parts; a block that
    begins in one part and ends in the next has ranks in both, whether or not it would fit into one.

    >>> leaf = Cut(name="leaf", num_below=6, num_full=6, bytes_per_s=1e9, link_bytes_per_s=1e9, sizes=((6, 4),))
    >>> [straddling_share(Sends("all-reduce"), ranks, leaf) for ranks in (3, 4, 8)]
    [0.0, 1.0, 2.0]
    """
    return _straddling(sends, num_ranks, cut.stride, cut.sizes)


@lru_cache(maxsize=65536)
def _straddling(sends: Sends, num_ranks: int, stride: int, sizes: tuple[tuple[int, int], ...]) -> float:
    result = MOVES[sends.collective].result
    if not sizes or result == "nothing":
        return 0.0
    block = num_ranks * stride
    part = np.repeat([size for size, _ in sizes], [count for _, count in sizes])
    end = np.cumsum(part)
    begin = end - part
    first, last = begin // block, (end - 1) // block
    one = first == last
    place = begin - first * block
    ends = (
        (place, np.where(one, part, block - place)),
        (np.zeros_like(place), np.where(one, 0, end - last * block)),
    )
    found = [_leaving(sends, num_ranks, stride, *where) for where in ends]
    if result != "copy":
        return float(np.max([left + right for left, right in zip(*found, strict=True)]))
    return float(np.max(found))


def _leaving(sends: Sends, num_ranks: int, stride: int, place: Ints, inside: Ints) -> tuple[Floats, Floats]:
    """Bytes out of a part and into it, of the groups of a block with some of its endpoints inside, from a place on."""
    some, more = inside // stride, inside % stride
    result = MOVES[sends.collective].result

    def of(what: str | None) -> Floats:
        def each(ranks: Ints) -> Floats:
            if what is not None:
                return np.asarray(_least(what, num_ranks, ranks.astype(np.float64)))
            at_end = place + inside == num_ranks * stride
            first = np.where(at_end, num_ranks - ranks, np.minimum(place // stride, num_ranks - ranks))
            return _sent(sends, num_ranks, first, first + ranks)

        return np.asarray(more * each(some + 1) + (stride - more) * each(some))

    own = of(None) if sends.algorithm is not None else np.zeros(inside.shape)
    out = np.maximum(of(result), own)
    other = OTHER_WAY.get(result)
    return out, out if other is None else np.maximum(of(other), own)


def _sent(sends: Sends, num_ranks: int, first: Ints, last: Ints) -> Floats:
    assert sends.algorithm is not None
    return sent(sends.collective, sends.algorithm, num_ranks, sends.num_domain, first, last)


def _least(result: str, num_ranks: int, inside: Number) -> Number:
    """The least that leaves a part with some of a group's ranks inside, over the size of the array.

    Of an all-reduce it is one array: of a part among several, and where switches add, no more need leave.

        whole: m/n   share: (n−m)/n   pieces: m (n−m)/n   sum, copy: 1
    """
    outside = (num_ranks - inside) / num_ranks
    share = {"whole": inside / num_ranks, "share": outside, "pieces": inside * outside, "nothing": 0.0}
    return cast(Number, share.get(result, 1.0) * ((inside > 0) & (inside < num_ranks)))


def _least_passing(result: str, num_ranks: int, inside: int) -> float:
    """The least that leaves a part, or enters it if that is more."""
    return max(float(_least(way, num_ranks, inside)) for way in (result, OTHER_WAY.get(result, result)))


def crossed(system: System, num_ranks: int) -> tuple[Cut, ...]:
    """The narrow places that groups of so many ranks cross: none holds a whole group, or some lie across two."""
    if num_ranks <= system.num_domain and not system.torus:
        return ()
    return tuple(
        cut
        for cut in system.cuts
        if cut.num_full < num_ranks or straddling_share(Sends("all-reduce"), num_ranks, cut) > 0
    )


def pair_share(sends: Sends, num_ranks: int, below: int) -> float:
    """Return the bytes that one part of so many ranks sends to another at most, over the size of the array.

    >>> pair_share(Sends("all-reduce", "ring"), 64, 16), pair_share(Sends("all-to-all", "direct"), 64, 16)
    (1.96875, 4.0)
    """
    result = MOVES[sends.collective].result
    if result == "nothing" or below >= num_ranks:
        return 0.0
    if sends.algorithm is not None:
        return sent_between(sends.collective, sends.algorithm, num_ranks, sends.num_domain, below)
    return below * min(below, num_ranks - below) / num_ranks if result == "pieces" else 0.0


class Crossing(NamedTuple):
    """Bytes over an array's size that pass a place, its bandwidth [B/s], and whether it is between two parts."""

    share: float
    bytes_per_s: float
    between: bool = False


def crossing(sends: Sends, num_ranks: int, cut: Cut) -> Crossing:
    """Return what binds more: one group out of the narrowest part, all groups across the ends of a part, or what one
    part sends to another over the links that join the two."""
    found = []
    if cut.num_full < num_ranks:
        found.append(Crossing(crossing_share(sends, num_ranks, cut), cut.bytes_per_s))
        if cut.pair_bytes_per_s > 0:
            share = pair_share(sends, num_ranks, cut.num_below)
            found.append(Crossing(share, cut.pair_bytes_per_s, between=True))
    if cut.sizes:
        found.append(Crossing(straddling_share(sends, num_ranks, cut), cut.widest_bytes_per_s))
    return max(found, key=lambda one: one.share / one.bytes_per_s, default=Crossing(0.0, cut.bytes_per_s))


def crossing_s(sends: Sends, size_bytes: Number, num_ranks: int, cut: Cut) -> Number:
    """Return the time [s] that the bytes which leave a part need.

    >>> leaf = Cut(name="leaf", num_below=63, num_full=63, bytes_per_s=50e9, link_bytes_per_s=50e9)
    >>> round(crossing_s(Sends("all-reduce"), 1e9, 1024, leaf) * 1e3, 1)
    37.6
    """
    found = crossing(sends, num_ranks, cut)
    return found.share * size_bytes / found.bytes_per_s


def least_s(
    system: System, collective: Collective, size_bytes: Floats, num_ranks: int, algorithm: str | None = None
) -> Floats:
    """Return the time [s] that this algorithm on this machine, or without a name any, cannot go below."""
    least = np.zeros(np.shape(size_bytes))
    for cut in crossed(system, num_ranks):
        sends = sends_on(system, collective, algorithm, num_ranks)
        least = np.maximum(least, crossing_s(sends, size_bytes, num_ranks, cut))
    return least


def sends_on(system: System, collective: Collective, algorithm: str | None, num_ranks: int) -> Sends:
    """What runs among ranks that fill the domains of a machine."""
    return (
        Sends(collective) if algorithm is None else Sends(collective, algorithm, system.shape(num_ranks)[0])
    )


def floor_s(
    system: System, collective: Collective, size_bytes: float, num_ranks: int, algorithm: str | None = None
) -> float:
    """Return the time [s] below which no run can be measured: bytes over every place that they must pass.

    Beside the narrow places of the network these are the links of one chip and the ports of one domain.  Switches may
    add up what passes through them, so of an all-reduce every array goes out once and comes back once, both ways at
    the same time: T ≥ share · S / links of the part, the share as `_least` counts it.
    """
    least = float(least_s(system, collective, np.array([size_bytes]), num_ranks, algorithm)[0])
    if system.torus or num_ranks < 2:
        return least
    inside, domains = system.shape(num_ranks)
    nic_bytes_per_s = system.nic_bytes_per_s if domains > 1 else 0.0
    near_bytes_per_s = system.scale_up_bytes_per_s if inside > 1 else 0.0
    for members, bytes_per_s in ((1, near_bytes_per_s + nic_bytes_per_s), (inside, inside * nic_bytes_per_s)):
        if bytes_per_s > 0:
            share = _least_passing(MOVES[collective].result, num_ranks, members)
            least = max(least, share * size_bytes / bytes_per_s)
    return least


def leaving_bytes_per_s(system: System, num_ranks: int) -> float:
    """What each rank gets of the network when all send evenly to all outside their domains [B/s]: its port, or less.

    Of what n ranks in domains of d send over the network, (n − m)/(n − d) leaves a part of m of them.  Ranks of
    several domains that no network joins are an `InfeasibleError`.
    """
    inside, _ = system.shape(num_ranks)
    network = num_ranks - inside
    rates = [system.nic_bytes_per_s]
    for cut in crossed(system, num_ranks):
        found = crossing(Sends("all-to-all"), num_ranks, cut)
        rates += [found.bytes_per_s * network / (found.share * num_ranks)] if found.share > 0 else []
    return min(rates)


def narrowest(system: System, num_ranks: int) -> Cut | None:
    """The narrowest place that a group crosses, if it is narrower than the ports below it."""
    places = [
        cut
        for cut in crossed(system, num_ranks)
        if cut.bytes_per_s < FULL * cut.num_below * system.nic_bytes_per_s
    ]
    return min(places, key=lambda cut: cut.bytes_per_s / cut.num_below, default=None)
