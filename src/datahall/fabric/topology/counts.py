"""How much of everything a fabric has: switches by tier, cables, diameter, mean hops, bisection, paths.

Closed forms where the topology has them, a search where it has none; hops are links from endpoint to
endpoint.
"""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.fabric.routing.shortest import distances
from datahall.fabric.topology.graph import ACCESS, SCALE_UP_TIER, Fabric

LARGE_DOMAIN = 256  # chips of a scale-up domain from which on its pairs are counted leaf by leaf


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What a fabric consists of and how far and how wide it is; bisection is of the scale-out network."""

    num_hosts: int
    num_domains: int
    domain_size: int
    switches_by_tier: tuple[int, ...]  # of the network, lowest tier first; scale-up crossbars are not in it
    cables_by_tier: tuple[int, ...]  # of the network, by the higher tier that a cable ends in
    diameter: int
    mean_hops: float
    num_bisection_links: float
    bisection_bytes_per_s: float  # one way
    full_bisection_fraction: float  # of what half the endpoints can send
    num_paths: int

    @property
    def num_switches(self) -> int:
        return sum(self.switches_by_tier)

    @property
    def num_tiers(self) -> int:
        return len(self.switches_by_tier)

    @property
    def num_cables(self) -> int:
        """Cables of the network; those inside a scale-up domain are not in it."""
        return sum(self.cables_by_tier)


def counts(fabric: Fabric) -> Counts:
    """Count a fabric as it was built; what failures leave of it is in `flows/failures.py`."""
    network = fabric.num_network_links
    tier = fabric.node_tier
    switches = tier[fabric.num_hosts :]
    switches = switches[switches != SCALE_UP_TIER]
    higher = np.maximum(tier[fabric.link_source[:network]], tier[fabric.link_target[:network]])
    by_tier = np.bincount(higher[higher != SCALE_UP_TIER], minlength=1) // 2
    injection = _injection_bytes_per_s(fabric)
    links, bandwidth = _bisection(fabric, injection)
    return Counts(
        num_hosts=fabric.num_hosts,
        num_domains=fabric.num_domains,
        domain_size=int(np.bincount(fabric.domain).max()),
        switches_by_tier=tuple(np.bincount(switches)[1:].tolist()) if switches.size else (),
        cables_by_tier=tuple((by_tier[1:] if fabric.num_switches else by_tier).tolist()),
        diameter=diameter(fabric),
        mean_hops=mean_hops(fabric),
        num_bisection_links=links,
        bisection_bytes_per_s=bandwidth,
        full_bisection_fraction=bandwidth / (injection * fabric.num_hosts / 2) if injection else 0.0,
        num_paths=_paths(fabric),
    )


def diameter(fabric: Fabric) -> int:
    """Links between the two endpoints that are farthest apart."""
    if fabric.shape is None:
        return int(_all_distances(fabric).max())
    if fabric.num_domains == 1 and fabric.scale_up_start >= 0:
        return 2 if fabric.num_hosts > 1 else 0
    return fabric.shape.diameter() + (2 if fabric.shape.num_rails > 1 else 0)


def mean_hops(fabric: Fabric) -> float:
    """Links between two different endpoints, mean over all ordered pairs."""
    hosts = fabric.num_hosts
    if hosts < 2:
        return 0.0
    if fabric.shape is None:
        return float(_all_distances(fabric).sum() / (hosts * (hosts - 1)))
    pairs = float(hosts) * (hosts - 1)
    if fabric.scale_up_start < 0:
        return fabric.shape.mean_hops()
    rails = fabric.shape.num_rails
    if rails > 1:
        servers = hosts // rails
        between = float(servers) * (servers - 1) * rails
        near = fabric.shape.mean_hops()
        return (hosts * (rails - 1) * 2 + between * (near + (rails - 1) * (near + 2))) / pairs
    if fabric.num_domains == 1:
        return 2.0  # to the switches of the domain, and on
    inside, walked = _inside_domains(fabric)
    return (fabric.shape.mean_hops() * pairs - walked + 2 * inside) / pairs


def _inside_domains(fabric: Fabric) -> tuple[float, float]:
    """Ordered pairs that share a scale-up domain, and the hops that the network would have taken for them."""
    assert fabric.shape is not None
    size = fabric.num_hosts // fabric.num_domains
    chips = np.arange(fabric.num_hosts, dtype=np.int32)
    first = chips - chips % size
    pairs = float(fabric.num_hosts) * (size - 1)
    if size > LARGE_DOMAIN:
        return pairs, _between_leaves(fabric, size)
    walked = sum(
        float(fabric.shape.hops(chips, first + (chips - first + shift) % size).sum())
        for shift in range(1, size)
    )
    return pairs, walked


def _between_leaves(fabric: Fabric, size: int) -> float:
    """The same hops, counted leaf by leaf: between two leaves all chips go alike, and two links are between its own."""
    assert fabric.shape is not None
    access = (fabric.link_kind == ACCESS) & (fabric.link_source < fabric.num_hosts)
    leaf = np.zeros(fabric.num_hosts, np.int64)
    leaf[fabric.link_source[access]] = fabric.link_target[access]
    walked = 0.0
    for first in range(0, fabric.num_hosts, size):
        _, place, num = np.unique(leaf[first : first + size], return_index=True, return_counts=True)
        chips = (first + place).astype(np.int32)
        hops = fabric.shape.hops(np.repeat(chips, chips.size), np.tile(chips, chips.size))
        apart = np.repeat(chips, chips.size) != np.tile(chips, chips.size)
        walked += float((np.outer(num, num).ravel() * hops)[apart].sum()) + 2.0 * float(
            (num * (num - 1)).sum()
        )
    return walked


def _all_distances(fabric: Fabric) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    return np.stack([distances(fabric, host)[0][: fabric.num_hosts] for host in range(fabric.num_hosts)])


def _bisection(fabric: Fabric, injection_bytes_per_s: float) -> tuple[float, float]:
    """Cables cut by halving the network, and what they carry one way [B/s]: at most what half the endpoints send."""
    if fabric.shape is None:
        return float("nan"), float("nan")
    network = fabric.num_network_links
    links = fabric.shape.bisection_links()
    carried = links * float(fabric.link_bytes_per_s[:network].max(initial=0.0))
    return links, min(carried, injection_bytes_per_s * fabric.num_hosts / 2)


def _injection_bytes_per_s(fabric: Fabric) -> float:
    """What one endpoint can send into the network, one way [B/s]."""
    network = fabric.num_network_links
    from_hosts = fabric.link_source[:network] < fabric.num_hosts
    return float(fabric.link_bytes_per_s[:network][from_hosts].sum() / fabric.num_hosts)


def _paths(fabric: Fabric) -> int:
    if fabric.shape is not None:
        return fabric.shape.most_paths()
    far, count = distances(fabric, 0)
    return int(count[: fabric.num_hosts][far[: fabric.num_hosts].argmax()])
