"""A fabric as arrays: endpoints, switches and directed links, whatever the topology.

Nodes 0 … num_hosts-1 are endpoints (chips); switches follow.  A cable is two directed links.  Nothing here is
an object per link: a fabric of 100,000 endpoints is a few arrays that are built in milliseconds.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError

SCALE_UP, ACCESS, FABRIC = range(3)  # kinds of links
SCALE_UP_TIER = 255  # of the crossbar that stands for the switches of one scale-up domain

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


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

    @property
    def hops(self) -> Ints:
        """Links that each flow passes."""
        return np.diff(self.offsets).astype(np.int32)

    def owners(self) -> Ints:
        """The flow of each entry of `links`."""
        return np.repeat(np.arange(self.num_flows, dtype=np.int32), np.diff(self.offsets))


class Traits(msgspec.Struct, frozen=True):
    """What the other rooms ask of a topology besides its routes, answered as for a graph of which nothing is known."""

    @property
    def grid(self) -> tuple[int, ...]:
        """The sides of a grid of chips that are joined to their neighbours; none where they are not."""
        return ()

    @property
    def is_closed(self) -> bool:
        """Whether every axis of such a grid is a ring."""
        return False

    @property
    def num_rails(self) -> int:
        """Neighbouring chips that hand traffic to the one of them on the target's rail; 1: none do."""
        return 1

    @property
    def has_transit_leaves(self) -> bool:
        """Whether ways of others lead through the switch that a chip hangs on."""
        return True

    @property
    def has_direct_pairs(self) -> bool:
        """Whether the shortest way between two parts is over the links that join them, where there are any."""
        return False

    def parts_of(self, fabric: Fabric) -> Iterable[tuple[str, Ints]]:
        """Kinds of part by name, and for each the part of every node; -1 where a node is in none."""
        del fabric
        return ()

    def ways_out(self, fabric: Fabric, port_bytes_per_s: Floats) -> Floats:
        """What each endpoint gets of its ports when all send to the far side of the fabric at once [B/s]."""
        del fabric
        return port_bytes_per_s

    def loads(self, source: Ints, target: Ints) -> Floats | None:
        """Bytes on each link, of one from every flow over all its shortest ways alike; None: as wide parts spread them.

        It is known where flows that leave a part do not share its links evenly: their ways lead through some of them.
        """
        del source, target
        return None

    def pools(self, num_links: int) -> Ints | None:
        """For each link the first of those that sprayed packets load alike; None where each is loaded by itself."""
        del num_links
        return None

    def bundles(self, num_links: int) -> Ints | None:
        """For each link how many parallel ones share what comes that way; None where all ways of a pair are alike."""
        del num_links
        return None


class Shape(Traits, frozen=True):
    """What a topology knows in closed form: routes by arithmetic and its counts; columns in, columns out.

    `pick` chooses among the equal-cost paths of a pair; any integer will do, it is taken modulo their number.
    """

    @abstractmethod
    def num_paths(self, source: Ints, target: Ints) -> Longs:
        """Equal-cost paths of each pair; 1 where source is target, 0 where none exists."""

    @abstractmethod
    def hops(self, source: Ints, target: Ints) -> Ints:
        """Links between each pair."""

    @abstractmethod
    def paths(self, source: Ints, target: Ints, pick: Longs) -> Paths:
        """The picked path of each pair; empty where source is target or none exists."""

    @abstractmethod
    def diameter(self) -> int:
        """Links between the two endpoints that are farthest apart."""

    @abstractmethod
    def mean_hops(self) -> float:
        """Links between two different endpoints, mean over all ordered pairs."""

    @abstractmethod
    def bisection_links(self) -> float:
        """Cables cut when the endpoints are halved where the fabric is narrowest."""

    @abstractmethod
    def most_paths(self) -> int:
        """Equal-cost paths between two endpoints that are farthest apart."""

    @abstractmethod
    def parts_of(self, fabric: Fabric) -> Iterable[tuple[str, Ints]]:
        """As above; a shape that forgot its narrow places would have none."""


class Wire(msgspec.Struct, frozen=True):
    """What every link of one sort has: bandwidth [B/s] one way and latency [s]."""

    bytes_per_s: float
    latency_s: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bytes_per_s) and self.bytes_per_s > 0):
            raise ScenarioError(
                f"a link of {self.bytes_per_s:g} B/s carries nothing",
                hint='give it a bandwidth above 0, e.g. "400 Gb/s"',
            )
        if not (math.isfinite(self.latency_s) and self.latency_s >= 0):
            raise ScenarioError(f"a link cannot have a latency of {self.latency_s:g} s", hint='e.g. "500 ns"')


class Fabric(msgspec.Struct, frozen=True, kw_only=True):
    """Endpoints and switches joined by directed links; link i runs from link_source[i] to link_target[i].

    A link that is out keeps its number and has 0 B/s.  Routing knows `shape`; a fabric without one is routed
    breadth first.
    """

    name: str
    topology: str  # the builder's name: "fat-tree", "torus", …
    num_hosts: int
    num_nodes: int
    node_tier: NDArray[np.uint8]  # 0 endpoint, 1 first switch tier, 2 … upwards
    link_source: Ints
    link_target: Ints
    link_bytes_per_s: Floats  # one way
    link_latency_s: Floats
    link_kind: NDArray[np.uint8]  # SCALE_UP, ACCESS or FABRIC
    domain: Ints  # scale-up domain of each endpoint
    shape: Shape | None = None
    scale_up_start: int = -1  # the first of num_hosts links into the crossbars of scale-up domains, then back
    note: str = ""

    @property
    def traits(self) -> Traits:
        """What is known of it besides its links."""
        return self.shape if self.shape is not None else Traits()

    @property
    def num_switches(self) -> int:
        return self.num_nodes - self.num_hosts

    @property
    def num_tiers(self) -> int:
        """Tiers of switches; crossbars of scale-up domains are none."""
        return int(self.node_tier.max(initial=0, where=self.node_tier != SCALE_UP_TIER))

    @property
    def num_links(self) -> int:
        """Directed links; a cable counts twice."""
        return int(self.link_source.size)

    @property
    def num_network_links(self) -> int:
        """Those of the scale-out network, which come first; the others are of scale-up domains beside it."""
        return self.num_links if self.scale_up_start < 0 else self.scale_up_start

    @property
    def num_domains(self) -> int:
        """Scale-up domains."""
        return int(self.domain.max()) + 1 if self.domain.size else 0

    @property
    def whole(self) -> bool:
        """Whether no link is out."""
        return bool((self.link_bytes_per_s > 0).all())

    def latency_s(self, paths: Paths) -> Floats:
        """Latency of each path, its links added up [s]."""
        total = np.concatenate(([0.0], np.cumsum(self.link_latency_s[paths.links])))
        return total[paths.offsets[1:]] - total[paths.offsets[:-1]]


def half_name(axis: int, sides: tuple[int, ...]) -> str:
    """What half of a grid is called that is cut across an axis."""
    return f"half along axis {axis + 1}" if len(sides) > 1 else "half"


def loads_between(shape: Shape, leaf: Callable[[Ints], Ints], source: Ints, target: Ints) -> Floats:
    """Bytes on each link between switches, of one from every flow over all shortest ways of its two switches alike."""
    here, there = leaf(source).astype(np.int64), leaf(target)
    pair = here * (int(there.max(initial=0)) + 1) + there
    _, first, count = np.unique(pair, return_index=True, return_counts=True)
    here_, there_ = source[first], target[first]
    num = np.where(leaf(here_) == leaf(there_), 0, shape.num_paths(here_, there_))
    flow = np.repeat(np.arange(first.size), num)
    pick = np.arange(flow.size) - np.repeat(np.cumsum(num) - num, num)
    paths = shape.paths(here_[flow], there_[flow], pick)
    middle = np.ones(paths.links.size, np.bool_)  # without the ports of the two chips that stand for all
    middle[paths.offsets[:-1]] = middle[paths.offsets[1:] - 1] = False
    share = (count / np.maximum(num, 1))[flow][paths.owners()]
    return np.bincount(paths.links[middle], share[middle]).astype(np.float64)


def paths_of(columns: Sequence[Ints]) -> Paths:
    """Paths from one column of link numbers per step, with -1 where a path has no such step."""
    steps = np.stack(columns, axis=1) if columns else np.empty((0, 0), np.int32)
    taken = steps >= 0
    offsets = np.zeros(steps.shape[0] + 1, np.int64)
    np.cumsum(taken.sum(axis=1), out=offsets[1:])
    return Paths(steps[taken].astype(np.int32, copy=False), offsets)


def join_paths(*parts: Paths) -> Paths:
    """One path after the other for each flow."""
    lengths = np.stack([np.diff(part.offsets) for part in parts], axis=1)
    starts = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths.ravel(), out=starts[1:])
    links = np.empty(int(starts[-1]), np.int32)
    for column, part in enumerate(parts):
        shift = starts[column : -1 : len(parts)] - part.offsets[:-1]
        links[np.repeat(shift, lengths[:, column]) + np.arange(part.links.size)] = part.links
    return Paths(links, starts[:: len(parts)].copy())


def select(paths: Paths, flows: NDArray[np.int64]) -> Paths:
    """The paths of some flows, in the order given."""
    lengths = np.diff(paths.offsets)[flows]
    offsets = np.zeros(flows.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    index = np.repeat(paths.offsets[flows] - offsets[:-1], lengths) + np.arange(offsets[-1])
    return Paths(paths.links[index], offsets)


def merge(parts: Sequence[tuple[NDArray[np.int64], Paths]], num_flows: int) -> Paths:
    """Put paths of groups of flows, each with the numbers of its flows, back into one column of flows."""
    lengths = np.zeros(num_flows, np.int64)
    for flows, part in parts:
        lengths[flows] = np.diff(part.offsets)
    offsets = np.zeros(num_flows + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    links = np.empty(int(offsets[-1]), np.int32)
    for flows, part in parts:
        shift = np.repeat(offsets[flows] - part.offsets[:-1], np.diff(part.offsets))
        links[shift + np.arange(part.links.size)] = part.links
    return Paths(links, offsets)
