"""Several sites joined by long links: each has a border router over its top switches, and borders are fully
meshed.

Traffic inside a site takes the site's own ways.  Traffic between sites goes up to the border, over one long
link, and down from the border of the other site.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError
from datahall.fabric.routing import shortest
from datahall.fabric.routing.paths import hops, num_paths, route
from datahall.fabric.topology.counts import diameter, mean_hops
from datahall.fabric.topology.graph import (
    FABRIC,
    LONG,
    SCALE_UP_TIER,
    Fabric,
    Floats,
    Ints,
    Longs,
    Paths,
    Shape,
    Wire,
    join_paths,
    merge,
)  # fmt: skip


class Sites(Shape, frozen=True, kw_only=True):
    """The sites, the whole as a bare graph, and where the endpoints, links and border of each site begin."""

    parts: tuple[Fabric, ...]
    whole: Fabric
    first_host: Ints
    first_link: Ints
    borders: Ints

    def site(self, host: Ints) -> Ints:
        """The site of an endpoint."""
        return (np.searchsorted(self.first_host, host, side="right") - 1).astype(np.int32)

    def long_link(self, here: Ints, there: Ints) -> Ints:
        """The link from the border of one site to that of another."""
        slot = there - (there > here)
        first = self.whole.num_links - len(self.parts) * (len(self.parts) - 1)
        return (first + here * (len(self.parts) - 1) + slot).astype(np.int32)

    def _inside(self, source: Ints, target: Ints) -> list[tuple[int, NDArray[np.int64]]]:
        here, there = self.site(source), self.site(target)
        return [(n, np.flatnonzero((here == n) & (there == n))) for n in range(len(self.parts))]

    def _border_distance(self, *, towards: bool) -> list[tuple[Ints, Longs]]:
        return [shortest.distances(self.whole, int(border), towards=towards) for border in self.borders]

    def num_paths(self, source: Ints, target: Ints) -> Longs:
        here, there = self.site(source), self.site(target)
        up = np.stack([count for _, count in self._border_distance(towards=True)])
        down = np.stack([count for _, count in self._border_distance(towards=False)])
        total = up[here, source] * down[there, target]
        for number, flows in self._inside(source, target):
            first = self.first_host[number]
            if flows.size:
                total[flows] = num_paths(self.parts[number], source[flows] - first, target[flows] - first)
        return total

    def hops(self, source: Ints, target: Ints) -> Ints:
        here, there = self.site(source), self.site(target)
        up = np.stack([distance for distance, _ in self._border_distance(towards=True)])
        down = np.stack([distance for distance, _ in self._border_distance(towards=False)])
        total = up[here, source] + 1 + down[there, target]
        for number, flows in self._inside(source, target):
            first = self.first_host[number]
            if flows.size:
                total[flows] = hops(self.parts[number], source[flows] - first, target[flows] - first)
        return total

    def paths(self, source: Ints, target: Ints, pick: Longs) -> Paths:
        here, there = self.site(source), self.site(target)
        pieces: list[tuple[NDArray[np.int64], Paths]] = []
        for number, flows in self._inside(source, target):
            if flows.size:
                first = self.first_host[number]
                part = route(
                    self.parts[number],
                    source[flows] - first,
                    target[flows] - first,
                    pick[flows],
                    partial=True,
                )
                pieces.append((flows, Paths(part.links + self.first_link[number], part.offsets)))
        leaving = shortest.adjacency(self.whole)
        entering = shortest.adjacency(self.whole, by="target")
        ups, downs = self._border_distance(towards=True), self._border_distance(towards=False)
        for a in range(len(self.parts)):
            for b in range(len(self.parts)):
                flows = np.flatnonzero((here == a) & (there == b))
                if a == b or not flows.size:
                    continue
                ways = np.maximum(ups[a][1][source[flows]], 1)
                rise = shortest.walk(leaving, self.whole.link_target, source[flows], pick[flows], *ups[a])
                fall = shortest.walk(
                    entering, self.whole.link_source, target[flows], pick[flows] // ways, *downs[b]
                )
                step = self.long_link(np.full(flows.size, a, np.int32), np.full(flows.size, b, np.int32))
                over = Paths(step, np.arange(flows.size + 1, dtype=np.int64))
                pieces.append((flows, join_paths(rise, over, _reversed(fall))))
        return merge(pieces, source.size)

    def diameter(self) -> int:
        far = [_farthest(*self._reach(n)) for n in range(len(self.parts))]
        apart = sum(sorted(far)[-2:]) + 1
        return max(apart, *(diameter(part) for part in self.parts))

    def mean_hops(self) -> float:
        sizes = np.array([part.num_hosts for part in self.parts], float)
        inside = sum(mean_hops(part) * part.num_hosts * (part.num_hosts - 1) for part in self.parts)
        reach = np.array([float(distance.mean()) for distance, _ in map(self._reach, range(len(self.parts)))])
        between = sizes[:, None] * sizes[None, :] * (reach[:, None] + 1 + reach[None, :])
        np.fill_diagonal(between, 0.0)
        return float((inside + between.sum()) / (sizes.sum() * (sizes.sum() - 1)))

    def _reach(self, number: int) -> tuple[Ints, Longs]:
        """Hops from each endpoint of a site to its border, and the number of ways."""
        distance, count = shortest.distances(self.whole, int(self.borders[number]))
        first = self.first_host[number]
        hosts = slice(first, first + self.parts[number].num_hosts)
        return distance[hosts], count[hosts]

    def bisection_links(self) -> float:
        """Long links between two halves of the sites."""
        half = len(self.parts) // 2
        return float(half * (len(self.parts) - half))

    def most_paths(self) -> int:
        ends = self.first_host[:2]
        return int(self.num_paths(ends[:1], ends[1:])[0])

    def bisected_bytes_per_s(self, network_bytes_per_s: Floats) -> float:
        """The long links between sites stand last."""
        return float(network_bytes_per_s[-1])

    def parts_of(self, fabric: Fabric) -> tuple[()]:
        """None: where sites are narrow is said by their long links."""
        del fabric
        return ()


def _farthest(distance: Ints, count: Longs) -> int:
    del count
    return int(distance.max())


def _reversed(paths: Paths) -> Paths:
    """Each path from its end to its start."""
    lengths = np.diff(paths.offsets)
    last = np.repeat(paths.offsets[1:] - 1, lengths)
    place = np.arange(paths.links.size) - np.repeat(paths.offsets[:-1], lengths)
    return Paths(paths.links[last - place], paths.offsets)


def sites(parts: Sequence[Fabric], long: Wire, *, name: str = "") -> Fabric:
    """Join sites by a long link between every two of them; `long` is its bandwidth and latency, one way."""
    if len(parts) < 2:
        raise ScenarioError(f"{len(parts)} site needs no long links", hint="join 2 sites or more")
    num_hosts = sum(part.num_hosts for part in parts)
    first_host = np.cumsum([0, *(part.num_hosts for part in parts[:-1])]).astype(np.int32)
    first_link = np.cumsum([0, *(part.num_links for part in parts[:-1])]).astype(np.int32)
    switches = np.cumsum([num_hosts, *(part.num_switches for part in parts)]).astype(np.int32)
    borders = switches[-1] + np.arange(len(parts), dtype=np.int32)
    columns: list[tuple[Ints, Ints, Wire | Fabric, int]] = []
    for number, part in enumerate(parts):
        new = np.arange(part.num_nodes, dtype=np.int32) + first_host[number]
        new[part.num_hosts :] += switches[number] - first_host[number] - part.num_hosts
        columns.append((new[part.link_source], new[part.link_target], part, 0))
    uplink = Wire(long.bytes_per_s * (len(parts) - 1))
    for number, part in enumerate(parts):
        top = _top(part)
        new_top = np.where(
            top < part.num_hosts, top + first_host[number], top - part.num_hosts + switches[number]
        )
        edge = np.full(top.size, borders[number])
        columns += [(new_top, edge, uplink, FABRIC), (edge, new_top, uplink, FABRIC)]
    for number in range(len(parts)):
        others = np.delete(borders, number)
        columns.append((np.full(others.size, borders[number]), others, long, LONG))
    domains = np.cumsum([0, *(part.num_domains for part in parts[:-1])])
    whole = Fabric(
        name=name or f"{len(parts)} sites of {parts[0].name}",
        topology="sites",
        num_hosts=num_hosts,
        num_nodes=int(borders[-1]) + 1,
        node_tier=np.concatenate(
            (
                np.zeros(num_hosts, np.uint8),
                *(part.node_tier[part.num_hosts :] for part in parts),
                np.full(len(parts), max(_highest(part) for part in parts) + 1, np.uint8),
            )
        ),
        link_source=np.concatenate([column[0] for column in columns]).astype(np.int32),
        link_target=np.concatenate([column[1] for column in columns]).astype(np.int32),
        link_bytes_per_s=np.concatenate([_bandwidth(*column) for column in columns]),
        link_latency_s=np.concatenate([_latency(*column) for column in columns]),
        link_kind=np.concatenate([_kind(*column) for column in columns]),
        domain=np.concatenate(
            [part.domain + first for part, first in zip(parts, domains, strict=True)]
        ).astype(np.int32),
    )
    shape = Sites(
        parts=tuple(parts), whole=whole, first_host=first_host, first_link=first_link, borders=borders
    )
    return msgspec.structs.replace(whole, shape=shape)


def _highest(part: Fabric) -> int:
    return int(part.node_tier[part.node_tier != SCALE_UP_TIER].max())


def _top(part: Fabric) -> Ints:
    """The switches of the highest tier; every chip, in a fabric without switches."""
    return np.flatnonzero(part.node_tier == _highest(part)).astype(np.int32)


def _bandwidth(source: Ints, target: Ints, what: Wire | Fabric, kind: int) -> NDArray[np.float64]:
    del target, kind
    return what.link_bytes_per_s if isinstance(what, Fabric) else np.full(source.size, what.bytes_per_s)


def _latency(source: Ints, target: Ints, what: Wire | Fabric, kind: int) -> NDArray[np.float64]:
    del target, kind
    return what.link_latency_s if isinstance(what, Fabric) else np.full(source.size, what.latency_s)


def _kind(source: Ints, target: Ints, what: Wire | Fabric, kind: int) -> NDArray[np.uint8]:
    del target
    return what.link_kind if isinstance(what, Fabric) else np.full(source.size, kind, np.uint8)
