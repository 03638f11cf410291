"""A fabric as arrays: endpoints, switches and directed links, whatever the topology.

Nodes 0 … num_hosts-1 are endpoints (chips); switches follow.  A cable is two directed links.  Nothing here is an
object per link: a fabric of 100,000 endpoints is a few arrays that are built in milliseconds.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

LinkKind = Literal["scale-up", "access", "fabric", "long"]
LINK_KINDS: tuple[LinkKind, ...] = ("scale-up", "access", "fabric", "long")

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


class Fabric(msgspec.Struct, frozen=True, kw_only=True):
    """Endpoints and switches joined by directed links; link i runs from link_source[i] to link_target[i]."""

    name: str
    topology: str  # the builder's name: "fat-tree", "torus", …
    num_hosts: int
    num_nodes: int
    node_tier: NDArray[np.uint8]  # 0 endpoint, 1 first switch tier, 2 … upwards
    link_source: Ints
    link_target: Ints
    link_bytes_per_s: Floats  # one way
    link_latency_s: Floats
    link_kind: NDArray[np.uint8]  # index into LINK_KINDS
    domain: Ints  # scale-up domain of each endpoint
    note: str = ""

    @property
    def num_switches(self) -> int:
        return self.num_nodes - self.num_hosts

    @property
    def num_links(self) -> int:
        """Directed links; a cable counts twice."""
        return int(self.link_source.size)


class Paths(msgspec.Struct, frozen=True):
    """Routes of many flows: flow f passes links[offsets[f]:offsets[f + 1]] in order."""

    links: Ints
    offsets: NDArray[np.int64]

    @property
    def num_flows(self) -> int:
        return int(self.offsets.size - 1)

    def of(self, flow: int) -> Ints:
        """The links of one flow."""
        return self.links[self.offsets[flow] : self.offsets[flow + 1]]
