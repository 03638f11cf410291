"""Shortest paths on any graph, breadth first: distances, the number of equal paths, and the picked one of
them.

Links of 0 B/s are out.  Work is shared by all flows that end at the same switch, so a column of flows costs
one search per target switch.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.compiled import Kernel
from datahall.fabric.topology.graph import Fabric, Ints, Longs, Paths

_COMPILE_LINKS = 4_000


class Adjacency(msgspec.Struct, frozen=True):
    """Links sorted by one of their ends: those of node n are order[offsets[n]:offsets[n + 1]]."""

    order: Ints
    offsets: Longs


def adjacency(fabric: Fabric, *, by: str = "source") -> Adjacency:
    """The links that work, grouped by the node they leave (`by="source"`) or enter (`by="target"`)."""
    end = fabric.link_source if by == "source" else fabric.link_target
    alive = np.flatnonzero(fabric.link_bytes_per_s > 0).astype(np.int32)
    order = alive[np.argsort(end[alive], kind="stable")]
    offsets = np.zeros(fabric.num_nodes + 1, np.int64)
    np.cumsum(np.bincount(end[alive], minlength=fabric.num_nodes), out=offsets[1:])
    return Adjacency(order, offsets)


def islands(fabric: Fabric) -> Ints:
    """The part of the fabric that each node is in: nodes of different parts have no way between them."""
    parent = np.arange(fabric.num_nodes, dtype=np.int32)
    alive = fabric.link_bytes_per_s > 0
    run = _unite if fabric.num_links > _COMPILE_LINKS else _unite.interpreted
    run(fabric.link_source[alive], fabric.link_target[alive], parent)
    return parent


def _union(source: Ints, target: Ints, parent: Ints) -> None:
    """Give the nodes that links join the same root, and each node its root."""
    for link in range(source.size):
        a, b = source[link], target[link]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a < b:
            parent[b] = a
        else:
            parent[a] = b
    for node in range(parent.size):
        root = parent[node]
        while parent[root] != root:
            root = parent[root]
        parent[node] = root


_unite = Kernel(_union)


def distances(fabric: Fabric, node: int) -> tuple[Ints, Longs]:
    """Links from every node to `node`, -1 where there is no way, and how many shortest paths."""
    return _search(fabric, node, adjacency(fabric, by="target"), fabric.link_source)


def _search(fabric: Fabric, node: int, near: Adjacency, far_end: Ints) -> tuple[Ints, Longs]:
    distance = np.full(fabric.num_nodes, -1, np.int32)
    count = np.zeros(fabric.num_nodes, np.int64)
    run = _flood if fabric.num_links > _COMPILE_LINKS else _flood.interpreted
    run(node, near.order, near.offsets, far_end, distance, count)
    return distance, count


def _breadth_first(
    node: int, order: Ints, offsets: Longs, far_end: Ints, distance: Ints, count: Longs
) -> None:
    """Distance and number of shortest paths between `node` and every other."""
    queue = np.empty(distance.size, np.int32)
    queue[0] = node
    distance[node], count[node] = 0, 1
    head, tail = 0, 1
    while head < tail:
        here = queue[head]
        head += 1
        for entry in range(offsets[here], offsets[here + 1]):
            there = far_end[order[entry]]
            if distance[there] < 0:
                distance[there] = distance[here] + 1
                queue[tail] = there
                tail += 1
            if distance[there] == distance[here] + 1:
                count[there] = min(count[there] + count[here], 2305843009213693952)


_flood = Kernel(_breadth_first)


def _follow(
    source: Ints, pick: Longs, order: Ints, offsets: Longs, far_end: Ints, distance: Ints, count: Longs,
    starts: Longs, links: Ints,
) -> None:  # fmt: skip
    """Walk each flow down the distances; `pick` is the rank of its path among the equal ones."""
    for flow in range(source.size):
        here = source[flow]
        entry = starts[flow]
        if distance[here] < 0:
            continue
        left = pick[flow] % count[here]
        while distance[here] > 0:
            link = -1
            for item in range(offsets[here], offsets[here + 1]):
                there = far_end[order[item]]
                if distance[there] != distance[here] - 1:
                    continue
                link = order[item]
                if left < count[there]:
                    break
                left -= count[there]
            links[entry] = link
            entry += 1
            here = far_end[link]
            left = left % count[here]


_descend = Kernel(_follow)


def walk(leaving: Adjacency, far_end: Ints, source: Ints, pick: Longs, distance: Ints, count: Longs) -> Paths:
    """The picked shortest path of each source to the node that `distance` and `count` are of."""
    offsets = np.zeros(source.size + 1, np.int64)
    np.cumsum(np.maximum(distance[source], 0), out=offsets[1:])
    links = np.empty(int(offsets[-1]), np.int32)
    run = _descend if links.size > _COMPILE_LINKS else _descend.interpreted
    run(source, pick, leaving.order, leaving.offsets, far_end, distance, count, offsets[:-1].copy(), links)
    return Paths(links, offsets)


def shortest_paths(fabric: Fabric, source: Ints, target: Ints, pick: Longs) -> tuple[Paths, Longs]:
    """The picked shortest path of each pair, empty where it is cut off, and how many there are."""
    leaving, entering = adjacency(fabric), adjacency(fabric, by="target")
    lone = np.diff(entering.offsets) == 1
    last = np.full(
        fabric.num_nodes, -1, np.int32
    )  # the only link into a node, shared searches start behind it
    last[lone] = entering.order[entering.offsets[:-1][lone]]
    behind = np.where(last[target] >= 0, fabric.link_source[last[target]], target)
    behind = np.where(source == target, target, behind)
    counts = np.zeros(source.size, np.int64)
    lengths = np.zeros(source.size, np.int64)
    pieces: list[tuple[NDArray[np.int64], Paths]] = []
    ordered = np.argsort(behind, kind="stable")
    for flows in np.split(ordered, np.flatnonzero(np.diff(behind[ordered])) + 1):
        if not flows.size:
            continue
        distance, count = _search(fabric, int(behind[flows[0]]), entering, fabric.link_source)
        part = walk(leaving, fabric.link_target, source[flows], pick[flows], distance, count)
        counts[flows] = count[source[flows]]
        lengths[flows] = np.diff(part.offsets)
        pieces.append((flows, part))
    stub = (behind != target) & (counts > 0)
    offsets = np.zeros(source.size + 1, np.int64)
    np.cumsum(lengths + stub, out=offsets[1:])
    links = np.empty(int(offsets[-1]), np.int32)
    for flows, part in pieces:
        shift = np.repeat(offsets[flows] - part.offsets[:-1], np.diff(part.offsets))
        links[shift + np.arange(part.links.size)] = part.links
    links[offsets[1:][stub] - 1] = last[target[stub]]
    return Paths(links, offsets), counts
