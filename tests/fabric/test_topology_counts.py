"""Counts equal the closed forms of the literature, and networkx or brute force on small fabrics."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from tests.fabric.topologies import FAST, FORWARDING, ONE_GLOBAL_HOP, SMALL, WIRE, graph

from datahall.fabric.routing.paths import hops
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.counts import counts
from datahall.fabric.topology.dragonfly import dragonfly, dragonfly_plus
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Fabric
from datahall.fabric.topology.grids.hyperx import full_mesh, hyperx
from datahall.fabric.topology.grids.torus import torus
from datahall.fabric.topology.grids.tpu_pod import TPU_V5P, tpu_pod
from datahall.fabric.topology.rail import rail_only, rail_optimised
from datahall.fabric.topology.scale_up import scale_up_domain, with_scale_up
from datahall.fabric.topology.tiers import most_chips
from datahall.fabric.topology.tree import tree


@pytest.mark.parametrize("k", [2, 4, 8, 16, 32, 48, 64, 74])
def test_fat_tree_counts_follow_the_formulas(k: int) -> None:
    fabric = fat_tree(k**3 // 4, WIRE)
    found = counts(fabric)
    assert found.num_hosts == k**3 // 4
    assert found.switches_by_tier == (k * k // 2, k * k // 2, k * k // 4)
    assert found.num_cables == 3 * k**3 // 4
    assert fabric.num_links == 2 * found.num_cables
    assert found.num_paths == (k // 2) ** 2
    assert found.diameter == 6
    assert found.num_bisection_links == k**3 / 8
    assert found.full_bisection_fraction == pytest.approx(1.0)


def test_the_largest_fat_tree_is_as_published() -> None:
    fabric = fat_tree(101_306, WIRE)
    assert (fabric.num_switches, fabric.num_links) == (6_845, 607_836)


@pytest.mark.parametrize("name", SMALL)
def test_diameter_and_mean_hops_equal_a_search(name: str) -> None:
    fabric = SMALL[name]
    every = np.arange(fabric.num_hosts)
    if name in FORWARDING | ONE_GLOBAL_HOP:  # the way taken is not always the shortest
        table = np.stack([hops(fabric, host, every) for host in every])
    else:
        lengths = dict(nx.all_pairs_shortest_path_length(nx.DiGraph(graph(fabric))))
        table = np.array([[lengths[a][b] for b in every.tolist()] for a in every.tolist()])
    found = counts(fabric)
    assert found.diameter == table.max()
    assert found.mean_hops == pytest.approx(table.sum() / (every.size * (every.size - 1)))


@pytest.mark.parametrize(
    "fabric",
    [
        fat_tree(16, WIRE),
        tree(8, WIRE, radix=3),
        clos(8, WIRE, radix=6, tiers=2, oversubscription=(2,)),
        torus((4, 2), WIRE),
        torus((4, 3), WIRE),
        torus((4, 2), WIRE, wrap=False),
        hyperx((4,), WIRE, terminals=2),
        hyperx((2, 2), WIRE, terminals=2),
        full_mesh(6, WIRE),
        scale_up_domain(8, FAST),
    ],
    ids=lambda fabric: fabric.name,
)
def test_bisection_is_the_smallest_cut_of_all_halvings(fabric: Fabric) -> None:
    assert counts(fabric).num_bisection_links == pytest.approx(_smallest_cut(fabric))


def _smallest_cut(fabric: Fabric) -> int:
    """Least maximum flow between any half of the endpoints and the other, by brute force."""
    network = nx.DiGraph()
    for a, b in zip(fabric.link_source.tolist(), fabric.link_target.tolist(), strict=True):
        capacity = network[a][b]["capacity"] + 1 if network.has_edge(a, b) else 1
        network.add_edge(a, b, capacity=capacity)
    hosts = range(fabric.num_hosts)
    halves = [half for half in combinations(hosts, fabric.num_hosts // 2) if 0 in half]
    chosen = halves if len(halves) <= 150 else halves[:: len(halves) // 150]
    block = tuple(range(fabric.num_hosts // 2))
    least = 10**9
    for half in {*chosen, block, *_planes(fabric)}:
        for host in hosts:
            network.add_edge(-1, host, capacity=10**6 if host in half else 0)
            network.add_edge(host, -2, capacity=0 if host in half else 10**6)
        least = min(least, nx.maximum_flow_value(network, -1, -2))
    return least


def _planes(fabric: Fabric) -> set[tuple[int, ...]]:
    """Halves along each axis of a grid, which a sample of all halvings could miss."""
    sides = getattr(fabric.shape, "sides", ())
    per = max(getattr(fabric.shape, "terminals", 1), 1)
    found = set()
    grid = np.arange(fabric.num_hosts) // per
    stride = int(np.prod(sides)) if sides else 1
    for side in sides:
        stride //= side
        if side % 2 == 0:
            found.add(tuple(np.flatnonzero(grid // stride % side < side // 2).tolist()))
    return found


def test_oversubscription_divides_the_bisection() -> None:
    full = counts(clos(1536, WIRE, radix=64, tiers=2))
    third = counts(clos(1536, WIRE, radix=64, tiers=2, oversubscription=(3,)))
    assert full.num_bisection_links == 768
    assert third.num_bisection_links == 256
    assert third.full_bisection_fraction == pytest.approx(1 / 3)
    taper = counts(clos(24_576, WIRE, radix=128, tiers=3, oversubscription=(1, 7), pod_chips=3072))
    assert taper.full_bisection_fraction == pytest.approx(1 / 7, rel=0.05)


def test_a_clos_has_the_ports_it_uses() -> None:
    full, third = (1,), (3,)
    for chips, radix, tiers, ratio in [
        (2048, 64, 2, full), (9216, 64, 3, full), (3000, 32, 3, (1, 3)), (700, 32, 2, third),
        (65_536, 64, 3, full),
    ]:  # fmt: skip
        fabric = clos(chips, WIRE, radix=radix, tiers=tiers, oversubscription=ratio)
        degree = np.bincount(fabric.link_source, minlength=fabric.num_nodes)[chips:]
        assert degree.max() <= radix
        assert most_chips(radix, tiers, ratio) >= chips


def test_torus_counts_are_those_of_a_v5p_pod() -> None:
    found = counts(tpu_pod(TPU_V5P, WIRE))
    assert (found.num_hosts, found.diameter, found.num_bisection_links) == (8960, 32, 640)
    assert found.mean_hops == pytest.approx(16, rel=2e-4)
    assert found.num_cables == 3 * 8960


def test_a_plain_tree_squeezes_half_of_all_through_its_root() -> None:
    found = counts(tree(1024, WIRE, radix=3))
    assert found.num_bisection_links == 1
    assert found.num_tiers == 10
    assert counts(tree(200, WIRE, radix=200)).full_bisection_fraction == 1


def test_rails_have_the_switches_of_the_reference() -> None:
    superpod = rail_optimised(1024, WIRE, FAST, radix=64)
    assert counts(superpod).switches_by_tier == (32, 16)
    only = rail_only(512, WIRE, FAST, radix=64)
    assert counts(only).switches_by_tier == (8,)
    assert counts(only).full_bisection_fraction == pytest.approx(1.0)


def test_dragonfly_has_its_groups_and_global_links() -> None:
    fabric = dragonfly(72, WIRE, radix=7)  # p = 2: groups of 4 switches and 8 chips, at most 9 groups
    assert (fabric.shape.groups, fabric.shape.copies) == (9, 1)
    assert counts(fabric).diameter == 5
    plus = dragonfly_plus(20, WIRE, radix=4)
    assert (plus.shape.groups, counts(plus).diameter) == (5, 5)


def test_domains_shorten_the_way_inside_a_server_only() -> None:
    flat, joined = fat_tree(128, WIRE), with_scale_up(fat_tree(128, WIRE), 8, FAST)
    assert counts(joined).diameter == counts(flat).diameter
    assert counts(joined).mean_hops < counts(flat).mean_hops
    assert counts(joined).num_cables == counts(flat).num_cables
    assert (counts(joined).num_domains, counts(joined).domain_size) == (16, 8)
