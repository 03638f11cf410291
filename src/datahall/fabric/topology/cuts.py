"""Where a fabric is narrow: the endpoints that share the way out of a leaf, pod, group or half, and how wide it is.

Whatever a collective does, the bytes that must leave such a part cannot leave it faster.  A part is a set of endpoints
and the switches that stand over them alone; its width is what its links to the rest carry one way, the smaller of out
and in.  Links of scale-up domains do not count: where chips forward for each other (rails), parts are whole servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.fabric.topology.graph import Fabric, Floats, Ints, Longs

PAIR = 2  # parts: what leaves one goes to the other


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """The narrowest part of a kind: what it is, the endpoints in it, and what leaves it."""

    name: str  # "leaf", "pod", "group", "half along axis 1"
    num_below: int
    num_full: int  # endpoints in the largest part of its kind; a group of no more fits into one
    bytes_per_s: float  # one way
    link_bytes_per_s: float  # of one of the links that leave it, when it works
    left_fraction: float = 1.0  # what failures leave of the narrowest of its kind
    sizes: tuple[tuple[int, int], ...] = ()  # endpoints and number of the parts in a row; none: not in a row
    widest_bytes_per_s: float = 0.0  # out of the widest of those
    pair_bytes_per_s: float = (
        0.0  # of the links from one to another, which are the shortest way; 0: there are none
    )
    pair_left_fraction: float = 1.0  # what failures leave of those
    stride: int = 1  # of the ranks that see it

    def apart(self, stride: int) -> Cut:
        """The same for every `stride`-th endpoint: the others are of groups that send at the same time.

        >>> leaf = Cut(name="leaf", num_below=32, num_full=32, bytes_per_s=16 * 50e9, link_bytes_per_s=50e9)
        >>> few = leaf.apart(8)
        >>> few.num_below, few.num_full, few.bytes_per_s
        (4, 4, 100000000000.0)
        """
        members = max(1, self.num_below // max(1, stride))
        return msgspec.structs.replace(
            self,
            num_below=members,
            num_full=max(1, self.num_full // max(1, stride)),
            bytes_per_s=self.bytes_per_s * members / self.num_below,
            pair_bytes_per_s=self.pair_bytes_per_s * members / self.num_below,
            stride=self.stride * max(1, stride),
        )

    def within(self, num_endpoints: int) -> Cut:
        """The same for the first endpoints alone."""
        kept, left = [], num_endpoints
        for size, count in self.sizes:
            whole = min(count, left // size)
            rest = min(left - whole * size, size) if whole < count else 0
            kept += [(size, whole)] if whole else []
            kept += [(rest, 1)] if rest else []
            left -= whole * size + rest
        return msgspec.structs.replace(self, sizes=tuple(kept))

    def around(self, num_domain: int) -> Cut:
        """The same for whole scale-up domains: the chips of one that hangs on several leaves share all ways out."""
        if self.num_below >= num_domain:
            return self
        return msgspec.structs.replace(
            self,
            num_below=num_domain,
            num_full=max(num_domain, self.num_full),
            bytes_per_s=self.bytes_per_s * num_domain / self.num_below,
            widest_bytes_per_s=self.widest_bytes_per_s * num_domain / self.num_below,
            pair_bytes_per_s=self.pair_bytes_per_s * num_domain / self.num_below,
            sizes=((num_domain, sum(size * count for size, count in self.sizes) // num_domain),),
        )


def cuts(fabric: Fabric) -> tuple[Cut, ...]:
    """The narrowest part of every kind that a fabric has, the smallest parts first."""
    found: list[Cut] = []
    for name, part in fabric.traits.parts_of(fabric):
        for cut in _narrowest(fabric, name, part):
            whole = cut.around(fabric.num_hosts // fabric.num_domains) if fabric.scale_up_start >= 0 else cut
            if whole not in found and whole.num_full < fabric.num_hosts:
                found.append(whole)
    return tuple(sorted(found, key=lambda cut: cut.num_below))


def _narrowest(fabric: Fabric, name: str, part: Ints) -> Iterator[Cut]:
    """Of all parts of a kind the one with the least for each endpoint, and the one with the least at all."""
    hosts = part[: fabric.num_hosts]
    members = np.bincount(hosts[hosts >= 0], minlength=int(part.max()) + 1)
    if (members > 0).sum() < 2:
        return
    width_bytes_per_s = np.where(members > 0, np.minimum(*width(fabric, part)), np.inf)
    fastest = float(fabric.link_bytes_per_s[_leaving(fabric, part)].max(initial=0.0))
    row, joined = _in_a_row(hosts), pairs(fabric, part).bytes_per_s
    each, least = int((width_bytes_per_s / np.maximum(members, 1)).argmin()), int(width_bytes_per_s.argmin())
    for index in (each, least) if width_bytes_per_s[least] < width_bytes_per_s[each] else (each,):
        yield Cut(
            name=name,
            num_below=int(members[index]),
            num_full=int(members.max()),
            bytes_per_s=float(width_bytes_per_s[index]),
            link_bytes_per_s=fastest,
            sizes=row,
            widest_bytes_per_s=float(width_bytes_per_s[members > 0].max()),
            pair_bytes_per_s=float(joined[joined > 0].min()) if joined.any() else 0.0,
        )


class Pairs(NamedTuple):
    """Pairs of parts, as first · parts + second in order, and what the links from one to the other carry [B/s]."""

    key: Longs
    bytes_per_s: Floats


def pairs(fabric: Fabric, part: Ints) -> Pairs:
    """The parts that links join directly, where the shortest way between two is over those."""
    count = int(part.max()) + 1
    here, there = part[fabric.link_source].astype(np.int64), part[fabric.link_target]
    joins = (here >= 0) & (there >= 0) & (here != there)
    if not fabric.traits.has_direct_pairs or count <= PAIR:
        joins = np.zeros_like(joins)
    key, index = np.unique(here[joins] * count + there[joins], return_inverse=True)
    return Pairs(key, np.bincount(index, fabric.link_bytes_per_s[joins], key.size).astype(np.float64))


def width(fabric: Fabric, part: Ints) -> tuple[Floats, Floats]:
    """What the links out of each part carry, and those into it [B/s]; links of scale-up domains do not count."""
    count = int(part.max()) + 1
    source, target, speed = part[fabric.link_source], part[fabric.link_target], fabric.link_bytes_per_s
    out, into = _leaving(fabric, part), _leaving(fabric, part, entering=True)
    leaves = np.bincount(source[out], speed[out], count).astype(np.float64)
    return leaves, np.bincount(target[into], speed[into], count).astype(np.float64)


def _leaving(fabric: Fabric, part: Ints, *, entering: bool = False) -> NDArray[np.bool_]:
    """The links of the network out of a part, or into one."""
    source, target = part[fabric.link_source], part[fabric.link_target]
    ends = target if entering else source
    network = np.arange(fabric.num_links) < fabric.num_network_links
    found: NDArray[np.bool_] = (ends >= 0) & (source != target) & network
    return found


def _in_a_row(part: Ints) -> tuple[tuple[int, int], ...]:
    """Sizes of parts that hold neighbouring endpoints, and how many of each follow one another."""
    if np.any(part < 0) or np.any(np.diff(part) < 0):
        return ()
    members = np.bincount(part)
    members = members[members > 0]
    first = np.flatnonzero(np.concatenate([[True], np.diff(members) != 0]))
    counts = np.diff(np.append(first, members.size))
    return tuple(zip(members[first].tolist(), counts.tolist(), strict=True))
