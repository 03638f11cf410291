"""Trees whose links go up and down: plain trees, fat trees, leaf–spine and rails are all one family.

Level l has `children[l]` subtrees under each node and `parents[l]` nodes over each node of the level below, which has
`uplinks[l]` cables to them, dealt out in turn: where they do not come out even the first parents have one more than the
others, under every node alike.  A k-ary fat tree has children (k/2, k/2, k) and parents (1, k/2, k/2); a leaf–spine
network of radix r has (r/2, r) and (1, r/2); a plain tree has one parent everywhere.  With `planes` above 1 there are
that many trees side by side that share no switch.

Reference: S. Öhring, M. Ibel, S. Das, M. Kumar, "On generalized fat trees", IPPS 1995.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from datahall.fabric.topology.graph import (
    ACCESS,
    FABRIC,
    Fabric,
    Floats,
    Ints,
    Longs,
    Paths,
    Shape,
    Wire,
    paths_of,
)

TIER_NAMES = ("leaf", "pod")


class FoldedClos(Shape, frozen=True, kw_only=True):
    """The parameters of an up–down network and the arithmetic of its routes.

    `rails` above 1 wires chip i of each server to the switches of rail i: the chips of `rail_servers` servers
    that have the same place in theirs lie side by side.
    """

    num_hosts: int
    children: tuple[int, ...]
    parents: tuple[int, ...]
    uplinks: tuple[int, ...]
    planes: int = 1
    rails: int = 1
    rail_servers: int = 1
    forwarding: bool = False  # a chip reaches another rail through its own server's chip on that rail

    @property
    def num_levels(self) -> int:
        return len(self.children)

    def width(self, level: int) -> int:
        """Switches of a level that stand over the same subtree."""
        return prod(self.parents[:level])

    def below(self, level: int) -> int:
        """Places for endpoints under a node of a level."""
        return prod(self.children[:level])

    def num_nodes(self, level: int) -> int:
        """Nodes of a level; level 0 is the endpoints."""
        if level == 0:
            return self.num_hosts
        return self.planes * prod(self.children[level:]) * self.width(level)

    def first_node(self, level: int) -> int:
        """The number of the first node of a level."""
        return sum(self.num_nodes(lower) for lower in range(level))

    def num_cables(self, level: int) -> int:
        """Cables between a level and the one below it."""
        return self.num_nodes(level - 1) * self.uplinks[level - 1]

    def first_link(self, level: int) -> int:
        """The number of the first link up into a level; those down from it follow."""
        return 2 * sum(self.num_cables(lower) for lower in range(1, level))

    def place(self, host: Ints) -> Ints:
        """Where an endpoint hangs, counted over the leaves."""
        if self.rails == 1:
            return host
        server, rail = host // self.rails, host % self.rails
        group, seat = server // self.rail_servers, server % self.rail_servers
        return (group * self.rails + rail) * self.rail_servers + seat

    def meeting_level(self, source: Ints, target: Ints) -> Ints:
        """The lowest level with a node over both; 0 to oneself, levels + 1 where there is none."""
        here, there = self.place(source), self.place(target)
        level = np.zeros(np.broadcast(here, there).shape, np.int32)
        for lower in range(self.num_levels + 1):
            size = self.below(lower)
            level += here // size != there // size
        return level

    def paths_by_level(self) -> Longs:
        """Equal-cost paths of a pair by the level where it meets: over a parent as many as its cables, squared."""
        ways = [_num_ways(*of) for of in zip(self.uplinks, self.parents, strict=True)]
        return np.array([*(prod(ways[:level]) for level in range(self.num_levels + 1)), 0], np.int64)

    def num_paths(self, source: Ints, target: Ints) -> Longs:
        return self.paths_by_level()[self.meeting_level(source, target)]

    def hops(self, source: Ints, target: Ints) -> Ints:
        return 2 * self.meeting_level(source, target)

    def paths(self, source: Ints, target: Ints, pick: Longs) -> Paths:
        level = self.meeting_level(source, target)
        level[level > self.num_levels] = 0
        here, there = self.place(source), self.place(target)
        up: list[Ints] = []
        down: list[Ints] = []
        left = pick % self.paths_by_level()[level]
        plane = np.zeros_like(here)  # which of the switches over the same subtree
        child_here, child_there = source, target
        for index, (uplinks, parents) in enumerate(zip(self.uplinks, self.parents, strict=True)):
            left, parent, cable_up, cable_down = _way(left, uplinks, parents)
            first = self.first_link(index + 1)
            goes = level > index
            up.append(np.where(goes, first + child_here * uplinks + cable_up, -1))
            back = first + self.num_cables(index + 1)
            down.append(np.where(goes, back + child_there * uplinks + cable_down, -1))
            plane = plane * parents + parent
            width, size = self.width(index + 1), self.below(index + 1)
            child_here = here // size * width + plane
            child_there = there // size * width + plane
        return paths_of([*up, *reversed(down)])

    def _hosts(self) -> Ints:
        """Endpoints that speak for all; where chips forward, the network carries traffic of one rail only."""
        return np.arange(0, self.num_hosts, self.rails if self.forwarding else 1, dtype=np.int32)

    def diameter(self) -> int:
        hosts = self._hosts()
        level = self.meeting_level(hosts[:1], hosts)  # filled from one side, so the first meets one highest
        return 2 * int(level[level <= self.num_levels].max())

    def mean_hops(self) -> float:
        """Mean of 2 × meeting level over ordered pairs."""
        hosts = self._hosts()
        place = self.place(hosts)
        together = [
            float((np.bincount(place // self.below(level)).astype(float) ** 2).sum())
            for level in range(self.num_levels + 1)
        ]
        pairs = together[-1] - hosts.size
        if pairs <= 0:
            return 0.0
        met = sum(level * (together[level] - together[level - 1]) for level in range(1, self.num_levels + 1))
        return 2 * met / pairs

    def bisection_links(self) -> float:
        """Half the cables of the narrowest level: min over levels of cables / 2.

        Levels with a single subtree carry no traffic between halves and are left out.
        """
        top = max(
            (level for level in range(1, self.num_levels + 1) if self.children[level - 1] > 1), default=1
        )
        return min(self.num_cables(level) for level in range(1, top + 1)) / 2

    def most_paths(self) -> int:
        return int(self.paths_by_level()[self.diameter() // 2])

    @property
    def num_rails(self) -> int:
        return self.rails if self.forwarding else 1

    @property
    def has_transit_leaves(self) -> bool:
        """Ways go up and down, so none but those of its own chips lead through a leaf."""
        return False

    def parts_of(self, fabric: Fabric) -> Iterator[tuple[str, Ints]]:
        """The subtrees of every level but the top."""
        for level in range(1, self.num_levels):
            name = TIER_NAMES[level - 1] if level <= len(TIER_NAMES) else f"tier {level}"
            yield name, self._subtrees(fabric, level)

    def _subtrees(self, fabric: Fabric, level: int) -> Ints:
        part = np.full(fabric.num_nodes, -1, np.int32)
        hosts = np.arange(fabric.num_hosts, dtype=np.int32)
        part[hosts] = self.place(hosts) // self.below(level)
        for lower in range(1, level + 1):
            first, count = self.first_node(lower), self.num_nodes(lower)
            subtree = np.arange(count) // self.width(lower)
            part[first : first + count] = subtree // (self.below(level) // self.below(lower))
        return _joined(fabric, part) if self.forwarding else part

    def ways_out(self, fabric: Fabric, port_bytes_per_s: Floats) -> Floats:
        """Min over levels of a subtree's bandwidth up, divided by the endpoints in it."""
        share = port_bytes_per_s
        place = self.place(np.arange(fabric.num_hosts, dtype=np.int32))
        for level in range(2, self.num_levels + 1):
            if self.children[level - 1] == 1 and self.planes == 1:
                continue
            subtree = place // self.below(level - 1)
            first, count = self.first_link(level), self.num_cables(level)
            per_subtree = count // (self.num_nodes(level - 1) // self.width(level - 1))
            up = np.minimum(
                fabric.link_bytes_per_s[first : first + count],
                fabric.link_bytes_per_s[first + count : first + 2 * count],
            )
            total = up.reshape(-1, per_subtree).sum(axis=1)
            members = np.bincount(subtree, minlength=total.size)
            share = np.minimum(share, (total / np.maximum(members, 1))[subtree])
        return share

    def pools(self, num_links: int) -> Ints:
        """All ways up from a subtree into the next level are equal, and so are those back down."""
        first = np.arange(num_links, dtype=np.int32)
        for level in range(1, self.num_levels + 1):
            size = self.width(level - 1) * self.uplinks[level - 1]
            count = self.num_cables(level)
            for start in (self.first_link(level), self.first_link(level) + count):
                first[start : start + count] = start + np.arange(count) // size * size
        return first

    def bundles(self, num_links: int) -> Ints | None:
        """Over a parent with more cables lead more ways, of which each carries less: cables are alike."""
        if not any(up % parents for up, parents in zip(self.uplinks, self.parents, strict=True)):
            return None
        beside = np.ones(num_links, np.int32)
        for level in range(1, self.num_levels + 1):
            each, more = divmod(self.uplinks[level - 1], self.parents[level - 1])
            size = np.repeat([each + 1, each], [more * (each + 1), (self.parents[level - 1] - more) * each])
            first = self.first_link(level) + self.num_cables(level)
            beside[first : first + self.num_cables(level)] = np.tile(size, self.num_nodes(level - 1))
        return beside


def _joined(fabric: Fabric, part: Ints) -> Ints:
    """Parts that share a server, made one: chips forward for each other, so a part of a server is no part."""
    name = np.arange(int(part.max()) + 1)
    hosts = part[: fabric.num_hosts]
    while True:
        least = np.full(fabric.num_domains, name.size)
        np.minimum.at(least, fabric.domain, name[hosts])
        joined = name.copy()
        np.minimum.at(joined, hosts, least[fabric.domain])
        joined = np.minimum(joined, joined[joined])
        if np.array_equal(joined, name):
            return np.where(part >= 0, name[np.maximum(part, 0)], -1).astype(np.int32)
        name = joined


def _num_ways(uplinks: int, parents: int) -> int:
    """Ways up over one of the cables to a parent and down over another.

    >>> _num_ways(8, 4), _num_ways(29, 4)
    (16, 211)
    """
    each, more = divmod(uplinks, parents)
    return parents * each**2 + more * (2 * each + 1)


def _way(left: Longs, uplinks: int, parents: int) -> tuple[Longs, Ints, Ints, Ints]:
    """Split off one way: its parent, and its cables up and down, counted over the uplinks.

    So many ways in a row as there are uplinks go up over each of them.
    """
    each, more = divmod(uplinks, parents)
    if not more:
        left, parent = _digit(left, parents)
        left, cable_up = _digit(left, each)
        left, cable_down = _digit(left, each)
        return left, parent, parent * each + cable_up, parent * each + cable_down
    left, way = _digit(left, _num_ways(uplinks, parents))
    last = way - uplinks * each  # of the ways down over the cable that only the first parents have
    cable_down, uplink = np.divmod(way, uplinks)
    cable_up, parent = np.divmod(uplink, parents)
    odd_up, odd = np.divmod(np.maximum(last, 0), more)
    parent, cable_up = np.where(last < 0, parent, odd), np.where(last < 0, cable_up, odd_up)
    cable_down = np.where(last < 0, cable_down, each)
    first = parent * each + np.minimum(parent, more)
    return left, parent, first + cable_up, first + cable_down


def _digit(left: Longs, base: int) -> tuple[Longs, Ints]:
    """Split off the lowest digit of a mixed-radix number."""
    if base == 1:
        return left, np.zeros(left.shape, np.int32)
    higher = left // base
    return higher, (left - higher * base).astype(np.int32)


def folded_clos(name: str, topology: str, shape: FoldedClos, wire: Wire, *, note: str = "") -> Fabric:
    """The arrays of an up–down network in which every cable is the same."""
    sources, targets = [], []
    for level in range(1, shape.num_levels + 1):
        child, parent = _cables(shape, level)
        sources += [child, parent]
        targets += [parent, child]
    num_nodes = shape.first_node(shape.num_levels + 1)
    num_links = 2 * sum(shape.num_cables(level) for level in range(1, shape.num_levels + 1))
    kind = np.full(num_links, FABRIC, np.uint8)
    kind[: 2 * shape.num_cables(1)] = ACCESS
    sizes = [shape.num_nodes(level) for level in range(shape.num_levels + 1)]
    return Fabric(
        name=name,
        topology=topology,
        num_hosts=shape.num_hosts,
        num_nodes=num_nodes,
        node_tier=np.repeat(np.arange(shape.num_levels + 1, dtype=np.uint8), sizes),
        link_source=np.concatenate(sources),
        link_target=np.concatenate(targets),
        link_bytes_per_s=np.full(num_links, wire.bytes_per_s),
        link_latency_s=np.full(num_links, wire.latency_s),
        link_kind=kind,
        domain=np.arange(shape.num_hosts, dtype=np.int32) // shape.rails,
        shape=shape,
        note=note,
    )


def _cables(shape: FoldedClos, level: int) -> tuple[Ints, Ints]:
    """Lower and upper end of each cable between a level and the one below it."""
    parents, uplinks = shape.parents[level - 1], shape.uplinks[level - 1]
    lower = np.arange(shape.num_nodes(level - 1), dtype=np.int32)
    if level == 1:
        subtree, plane = shape.place(lower), np.zeros_like(lower)
    else:
        subtree, plane = np.divmod(lower, np.int32(shape.width(level - 1)))
    upper = subtree // shape.children[level - 1] * shape.width(level) + plane * parents
    upper += shape.first_node(level)
    parent = np.sort(np.arange(uplinks, dtype=np.int32) % parents)  # of each uplink
    return (
        np.repeat(lower + np.int32(shape.first_node(level - 1)), uplinks),
        (upper[:, None] + parent[None, :]).ravel(),
    )
