"""Parts that are out or slow: what is left of the fabric, and which endpoints are touched.

Of a link both directions go.  A NIC takes its chip off the network but not off its scale-up domain; a chip is gone
altogether.  A part that keeps a share of its bandwidth still works at that share.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError
from datahall.fabric.flows.early import check_numbers
from datahall.fabric.topology.graph import SCALE_UP, Fabric, Floats, Ints
from datahall.fabric.topology.grids.sides import CUBE_SIDE
from datahall.fabric.topology.grids.tpu_pod import CUBE_CHIPS, cube_of
from datahall.scenario.sections.failure import FABRIC_PARTS, Failure

Bools = NDArray[np.bool_]


class BlastRadius(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a failure touches and what it leaves; shares are of the bandwidth without it.

    Chips of one scale-up domain share its ports, so a dead NIC slows its whole server a little.
    """

    share_left: Floats  # of each endpoint's way into the network
    cut_off: Ints  # endpoints that reach nobody
    slowed: Ints  # endpoints that reach others with less than all of their bandwidth
    bisection_left_fraction: float
    worst_left_fraction: float

    @property
    def num_cut_off(self) -> int:
        return int(self.cut_off.size)

    @property
    def num_slowed(self) -> int:
        return int(self.slowed.size)


def part_there(fabric: Fabric, failure: Failure) -> Failure | None:
    """What a failure takes of a fabric that may have fewer parts than it names; None where it has none of them."""
    num = {
        "chips": fabric.num_hosts, "links": fabric.num_links, "switches": fabric.num_switches,
        "domains": fabric.num_domains, "cubes": fabric.num_hosts // CUBE_CHIPS if _has_cubes(fabric) else 0,
        "nics": fabric.num_hosts if _has_nics(fabric) else 0,
    }  # fmt: skip
    kept = {name: tuple(one for one in getattr(failure, name) if one < num[name]) for name in FABRIC_PARTS}
    return msgspec.structs.replace(failure, **kept) if any(kept.values()) else None


def failed(fabric: Fabric, failure: Failure) -> Fabric:
    """The same fabric with the parts out (0 B/s) or slowed; links keep their numbers."""
    hit = links_of(fabric, failure)
    left = np.where(hit, fabric.link_bytes_per_s * failure.left_fraction, fabric.link_bytes_per_s)
    return msgspec.structs.replace(fabric, link_bytes_per_s=left)


def links_of(fabric: Fabric, failure: Failure) -> Bools:
    """The links that a failure takes; replicas and regions of a service are no parts of a fabric."""
    if not failure.of_fabric:
        raise ScenarioError("a failure names what is out", hint=f"one of {', '.join(FABRIC_PARTS)}")
    node = np.zeros(fabric.num_nodes, np.bool_)
    node[fabric.num_hosts :][_numbers(failure.switches, fabric.num_switches, "switch")] = True
    node[_numbers(failure.chips, fabric.num_hosts, "chip")] = True
    domains = np.zeros(fabric.num_domains, np.bool_)
    domains[_numbers(failure.domains, fabric.num_domains, "scale-up domain")] = True
    node[: fabric.num_hosts] |= domains[fabric.domain]
    if failure.cubes:
        sides = fabric.traits.grid
        if not _has_cubes(fabric):
            raise ScenarioError(
                f"{fabric.name} has no cubes", hint="cubes are of 3D tori with sides of 4, 8, 12 …"
            )
        cube = cube_of(sides, np.arange(fabric.num_hosts, dtype=np.int32))
        node[: fabric.num_hosts] |= np.isin(cube, _numbers(failure.cubes, int(cube.max()) + 1, "cube"))
    hit = node[fabric.link_source] | node[fabric.link_target]
    nic = np.zeros(fabric.num_nodes, np.bool_)
    nic[_numbers(failure.nics, fabric.num_hosts, "NIC")] = True
    network = np.arange(fabric.num_links) < fabric.num_network_links
    if failure.nics and not _has_nics(fabric):
        raise ScenarioError(
            f"{fabric.name} has no NICs: its chips are joined by scale-up links alone",
            hint="a link, a switch or a chip can fail there",
        )
    hit |= network & (nic[fabric.link_source] | nic[fabric.link_target])
    for link in _numbers(failure.links, fabric.num_links, "link").tolist():
        ends = fabric.link_source[link], fabric.link_target[link]
        hit[link] = True
        back = np.flatnonzero((fabric.link_source == ends[1]) & (fabric.link_target == ends[0]))
        forth = np.flatnonzero((fabric.link_source == ends[0]) & (fabric.link_target == ends[1]))
        hit[back[np.searchsorted(forth, link) % back.size]] = True
    return hit


def _has_cubes(fabric: Fabric) -> bool:
    return len(fabric.traits.grid) == 3 and not any(side % CUBE_SIDE for side in fabric.traits.grid)


def _has_nics(fabric: Fabric) -> bool:
    return not np.all(fabric.link_kind == SCALE_UP)


def blast_radius(fabric: Fabric, failure: Failure) -> BlastRadius:
    """Whom a failure touches."""
    return compared(fabric, failed(fabric, failure))


def compared(fabric: Fabric, after: Fabric) -> BlastRadius:
    """Whom what is out of a fabric touches, from the fabric before and after."""
    share = _by_domain(fabric, shares(after)) / np.maximum(_by_domain(fabric, shares(fabric)), 1e-300)
    dead = np.zeros(fabric.num_hosts, np.bool_)  # not one of its links works
    dead[:] = (
        np.bincount(fabric.link_source, after.link_bytes_per_s, fabric.num_nodes)[: fabric.num_hosts] <= 0
    )
    share[dead] = 0.0
    gone = share <= 0
    slowed = ~gone & (share < 1 - 1e-12)
    alive = share[~gone]
    return BlastRadius(
        share_left=share,
        cut_off=np.flatnonzero(gone).astype(np.int32),
        slowed=np.flatnonzero(slowed).astype(np.int32),
        bisection_left_fraction=_bisection_left(fabric, after),
        worst_left_fraction=float(alive.min()) if alive.size else 0.0,
    )


def _by_domain(fabric: Fabric, share: Floats) -> Floats:
    """The mean over each scale-up domain: its chips reach the network through one another's ports."""
    if fabric.scale_up_start < 0:
        return share
    members = np.bincount(fabric.domain)
    return (np.bincount(fabric.domain, share) / members)[fabric.domain]


def shares_of_ports(fabric: Fabric) -> Floats:
    """What each endpoint gets of the ports of its scale-up domain [B/s], all sending as much as each other.

    A port that is out leaves its part to the others; one that is slow keeps it, and all wait for the slowest.
    """
    own = _ports(fabric)
    if fabric.scale_up_start < 0:
        return own
    return each_of(own, fabric.domain)[fabric.domain]


def each_of(speed: Floats, group: Ints) -> Floats:
    """What each link of a group carries where all send as much as each other, those out by the others; by group.

    >>> each_of(np.array([4.0, 4.0, 1.0, 4.0, 0.0, 4.0]), np.array([0, 0, 1, 1, 2, 2])).tolist()
    [4.0, 1.0, 2.0]
    """
    works, num = speed > 0, np.bincount(group)
    slowest = np.full(num.size, np.inf)
    np.minimum.at(slowest, group[works], speed[works])
    left = np.bincount(group, works, num.size) / np.maximum(num, 1)
    return np.where(left > 0, slowest, 0.0) * left


def _ports(fabric: Fabric) -> Floats:
    """Bandwidth of each endpoint's own links into the network, the smaller of out and in [B/s]."""
    return np.minimum(*ports(fabric))


def ports(fabric: Fabric) -> tuple[Floats, Floats]:
    """Bandwidth of each endpoint's own links out into the network, and in from it [B/s]."""
    network = fabric.num_network_links
    speed = fabric.link_bytes_per_s[:network]
    out = np.bincount(fabric.link_source[:network], speed, fabric.num_nodes)[: fabric.num_hosts]
    into = np.bincount(fabric.link_target[:network], speed, fabric.num_nodes)[: fabric.num_hosts]
    return out.astype(np.float64), into.astype(np.float64)


def shares(fabric: Fabric) -> Floats:
    """What each endpoint gets when all of its subtree send to the rest of the fabric at once [B/s].

    Where no subtree is narrower: the bandwidth of the endpoint's own links into the network.
    """
    return fabric.traits.ways_out(fabric, _ports(fabric))


def _bisection_left(before: Fabric, after: Fabric) -> float:
    """Share of the bandwidth left where it is narrowest: the least over tiers, or over axes."""
    network = before.num_network_links
    group = np.maximum(before.node_tier[before.link_source], before.node_tier[before.link_target])[:network]
    if before.num_switches == 0:
        step = np.abs(before.link_source - before.link_target)[:network]
        group = np.searchsorted(np.unique(step), step)
    had = np.bincount(group, before.link_bytes_per_s[:network])
    left = np.bincount(group, after.link_bytes_per_s[:network])
    return float((left[had > 0] / had[had > 0]).min()) if had.size else 0.0


def _numbers(chosen: Sequence[int], count: int, what: str) -> NDArray[np.int64]:
    check_numbers(chosen, count, what)
    return np.asarray(chosen, np.int64)
