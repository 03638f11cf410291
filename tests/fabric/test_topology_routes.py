"""Routes are legal, the picks are exactly the equal-cost paths, and networkx finds the same."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fabric.topologies import (
    FORWARDING,
    ONE_GLOBAL_HOP,
    SMALL,
    TWO_NETWORKS,
    assert_legal,
    fabrics,
    graph,
    pairs,
)  # fmt: skip

from datahall.fabric.routing.paths import hops, num_paths, route
from datahall.fabric.routing.policies import spread
from datahall.fabric.topology.dragonfly import dragonfly
from datahall.fabric.topology.graph import Fabric, Wire


@pytest.mark.parametrize("name", SMALL)
def test_every_route_is_a_legal_path_without_a_loop(name: str) -> None:
    fabric = SMALL[name]
    source, target = pairs(fabric)
    pick = np.random.default_rng(1).integers(0, 2**40, source.size)
    paths = route(fabric, source, target, pick)
    assert_legal(fabric, source, target, paths)
    assert (paths.hops == hops(fabric, source, target)).all()


@pytest.mark.parametrize(
    "name", [name for name in SMALL if name not in FORWARDING | TWO_NETWORKS | ONE_GLOBAL_HOP]
)
def test_picks_are_all_shortest_paths_of_networkx(name: str) -> None:
    fabric = SMALL[name]
    reference = graph(fabric)
    source, target = pairs(fabric, 60)
    counts = num_paths(fabric, source, target)
    for a, b, count in zip(source.tolist(), target.tolist(), counts.tolist(), strict=True):
        wanted = _all_shortest(reference, a, b)
        assert count == len(wanted)
        paths = route(fabric, np.full(count, a), b, np.arange(count))
        assert {tuple(paths.of(flow).tolist()) for flow in range(count)} == wanted


def _all_shortest(reference: nx.MultiDiGraph, a: int, b: int) -> set[tuple[int, ...]]:
    """Shortest paths as links; parallel cables are different paths."""
    found: set[tuple[int, ...]] = set()
    for nodes in nx.all_shortest_paths(nx.DiGraph(reference), a, b):
        ways: list[tuple[int, ...]] = [()]
        for here, there in pairwise(nodes):
            ways = [(*way, link) for way in ways for link in reference[here][there]]
        found |= set(ways)
    return found


@pytest.mark.parametrize("name", sorted(ONE_GLOBAL_HOP))
def test_dragonfly_takes_the_shortest_way_with_at_most_one_global_link(name: str) -> None:
    fabric = SMALL[name]
    shape = fabric.shape
    source, target = pairs(fabric, 120)
    is_global = np.arange(fabric.num_links) >= shape.global_start
    reference = graph(fabric)
    paths = route(fabric, source, target, np.arange(source.size))
    for flow, (a, b) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        simple = nx.all_simple_edge_paths(reference, a, b, cutoff=5)
        few = [way for way in simple if sum(is_global[link] for _, _, link in way) <= 1] if a != b else [[]]
        assert len(paths.of(flow)) == min(map(len, few))
        best = {tuple(link for _, _, link in way) for way in few if len(way) == min(map(len, few))}
        assert num_paths(fabric, a, b)[0] == len(best)
        assert tuple(paths.of(flow).tolist()) in best


def test_rails_hand_traffic_to_the_neighbour_on_the_target_rail_first() -> None:
    fabric = SMALL["rail-only"]
    path = route(fabric, 0, 13).of(0)  # server 0 rail 0 to server 3 rail 1
    assert fabric.link_target[path][1] == 1
    assert route(fabric, 0, 12).hops[0] == 2
    assert route(fabric, 0, 1).hops[0] == 2


@pytest.mark.parametrize("name", SMALL)
def test_routes_go_around_failed_links_by_the_shortest_way_left(name: str) -> None:
    fabric = _with_failures(SMALL[name], seed=3, share=0.1)
    reference = graph(fabric)
    source, target = pairs(fabric, 120)
    paths = route(fabric, source, target, np.arange(source.size), partial=True)
    for flow, (a, b) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        if a != b and not nx.has_path(reference, a, b):
            assert paths.of(flow).size == 0
        elif name not in FORWARDING | ONE_GLOBAL_HOP:
            assert len(paths.of(flow)) == nx.shortest_path_length(reference, a, b)
        assert (fabric.link_bytes_per_s[paths.of(flow)] > 0).all()


def _with_failures(fabric: Fabric, *, seed: int, share: float) -> Fabric:
    import msgspec

    random = np.random.default_rng(seed)
    left = np.where(random.random(fabric.num_links) < share, 0.0, fabric.link_bytes_per_s)
    return msgspec.structs.replace(fabric, link_bytes_per_s=left)


@settings(deadline=None, max_examples=80)
@given(fabric=fabrics(), seed=st.integers(0, 2**32))
def test_any_size_is_connected_and_routes_legally(fabric: Fabric, seed: int) -> None:
    degree_out = np.bincount(fabric.link_source, minlength=fabric.num_nodes)
    degree_in = np.bincount(fabric.link_target, minlength=fabric.num_nodes)
    assert (degree_out == degree_in).all()
    assert degree_out.sum() == fabric.num_links
    random = np.random.default_rng(seed)
    source, target = random.integers(0, fabric.num_hosts, (2, 60))
    paths = route(fabric, source, target, random.integers(0, 2**60, 60))
    assert_legal(fabric, source, target, paths)
    assert (num_paths(fabric, source, target) >= 1).all()


@settings(deadline=None, max_examples=40)
@given(fabric=fabrics(), seed=st.integers(0, 2**32), share=st.floats(0.02, 0.4))
def test_with_failures_a_route_is_legal_or_the_pair_is_cut_off(
    fabric: Fabric, seed: int, share: float
) -> None:
    broken = _with_failures(fabric, seed=seed, share=share)
    random = np.random.default_rng(seed)
    source, target = random.integers(0, fabric.num_hosts, (2, 25))
    paths = route(broken, source, target, random.integers(0, 2**40, 25), partial=True)
    reference = graph(broken)
    reached = np.array([nx.has_path(reference, a, b) for a, b in zip(source, target, strict=True)])
    assert ((paths.hops > 0) | (source == target))[reached].all()
    assert (paths.hops[~reached] == 0).all()
    assert_legal(broken, source[reached], target[reached], route(broken, source[reached], target[reached]))
    assert ((num_paths(broken, source, target) > 0) == reached).all()


@pytest.mark.parametrize("name", sorted(TWO_NETWORKS))
def test_neighbours_talk_inside_their_domain_and_others_over_the_network(name: str) -> None:
    fabric = SMALL[name]
    source, target = pairs(fabric)
    paths = route(fabric, source, target, np.arange(source.size))
    inside = (fabric.domain[source] == fabric.domain[target])[paths.owners()]
    assert ((paths.links >= fabric.scale_up_start) == inside).all()


def test_ways_of_many_flows_need_room_for_the_flows_and_not_for_every_cable() -> None:
    """Two groups with 512 cables between them, and a quarter of all pairs of 1,024 chips."""
    fabric = dragonfly(1024, Wire(1e10), radix=63)
    source, target = np.divmod(np.arange(256 * 1024, dtype=np.int32), 1024)
    tracemalloc.start()
    count = num_paths(fabric, source, target)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < source.size * 512  # a byte for each flow and cable
    assert count.max() == 32


def test_packets_of_many_flows_are_spread_over_all_links_by_few_ways_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fabric = dragonfly(256, Wire(1e10), radix=31)
    source, target = np.divmod(np.arange(256 * 256, dtype=np.int32), 256)
    monkeypatch.setattr("datahall.fabric.routing.policies.MOST_SPREAD", 3 * source.size)
    found = spread(fabric, source, target, "spray", np.random.default_rng(0))
    assert np.diff(found.paths.offsets).max() <= 3 * 5  # of at most five links each
    assert (np.bincount(found.paths.links, minlength=fabric.num_links) > 0).mean() > 0.95
