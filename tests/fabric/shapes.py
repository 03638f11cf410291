"""Small fabrics for tests of flows: a k-ary fat tree with its own router, a star, and random graphs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from datahall.fabric.graph import Fabric, Paths

SPEED = 50e9


class FatTree:
    """A k-ary fat tree; links in blocks host→edge, edge→aggregation, aggregation→core and back down."""

    def __init__(self, radix: int, bytes_per_s: float = SPEED, latency_s: float = 1e-6) -> None:
        self.half = half = radix // 2
        self.num_hosts = hosts = radix**3 // 4
        self.num_links = 6 * hosts
        self.bytes_per_s = np.full(self.num_links, bytes_per_s)
        self.latency_s = np.full(self.num_links, latency_s)
        edges = radix * half
        host = np.arange(hosts, dtype=np.int32)
        edge0, agg0, core0 = hosts, hosts + edges, hosts + 2 * edges
        edge = edge0 + host // half
        # uplink u of edge switch e goes to aggregation u of its pod; uplink u of aggregation a to core a%half*half+u
        up_from, up = edge0 + host // half, host % half
        agg = agg0 + (host // half) // half * half + up
        core_from = agg0 + host // half
        core = core0 + (host // half) % half * half + up
        source = np.concatenate([host, up_from, core_from])
        target = np.concatenate([edge, agg, core])
        self.fabric = Fabric(
            name=f"fat tree {radix}", topology="fat-tree", num_hosts=hosts, num_nodes=hosts + 2 * edges + half**2,
            node_tier=np.repeat(np.arange(4, dtype=np.uint8), [hosts, edges, edges, half**2]),
            link_source=np.concatenate([source, target]).astype(np.int32),
            link_target=np.concatenate([target, source]).astype(np.int32),
            link_bytes_per_s=self.bytes_per_s, link_latency_s=self.latency_s,
            link_kind=np.ones(self.num_links, np.uint8), domain=host // half,
        )  # fmt: skip

    def route(
        self, fabric: Fabric, source: NDArray[np.int32], target: NDArray[np.int32], pick: NDArray[np.int64]
    ) -> Paths:
        """Up to the lowest common tier and down; `pick` chooses aggregation and core."""
        del fabric
        half, hosts = self.half, self.num_hosts
        agg, core = pick % half, pick // half % half
        source_edge, target_edge = source // half, target // half
        source_pod, target_pod = source_edge // half, target_edge // half
        down = 3 * hosts
        rows = np.stack([
            source,
            hosts + source_edge * half + agg,
            2 * hosts + (source_pod * half + agg) * half + core,
            down + 2 * hosts + (target_pod * half + agg) * half + core,
            down + hosts + target_edge * half + agg,
            down + target,
        ], axis=1)  # fmt: skip
        near, inside = source_edge == target_edge, source_pod == target_pod
        keep = np.ones(rows.shape, bool)
        keep[near, 1:5] = False
        keep[inside, 2:4] = False
        keep[source == target] = False
        offsets = np.concatenate([[0], np.cumsum(keep.sum(axis=1))]).astype(np.int64)
        return Paths(rows[keep].astype(np.int32), offsets)


def paths_of(*routes: list[int]) -> Paths:
    """Paths from lists of links."""
    links = np.array([link for route in routes for link in route], np.int32)
    return Paths(links, np.concatenate([[0], np.cumsum([len(route) for route in routes])]).astype(np.int64))
