"""What holds for a topology of any size: distances, equal paths, tiers, ports, and the sizes it can have."""

from __future__ import annotations

from itertools import product
from math import factorial, prod

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fabric.topologies import FAST, WIRE, assert_legal, fabrics, graph

from datahall.errors import ScenarioError
from datahall.fabric.routing.paths import hops, num_paths, route
from datahall.fabric.topology.clos import clos, size_clos
from datahall.fabric.topology.counts import counts
from datahall.fabric.topology.dragonfly import Dragonfly, dragonfly, dragonfly_plus
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.folded_clos import FoldedClos
from datahall.fabric.topology.graph import ACCESS, FABRIC, SCALE_UP, SCALE_UP_TIER, Fabric, Wire
from datahall.fabric.topology.grids.hyperx import full_mesh, hyperx, hyperx_for
from datahall.fabric.topology.grids.sides import cubic_sides
from datahall.fabric.topology.grids.torus import torus, torus_for
from datahall.fabric.topology.rail import rail_only, rail_optimised
from datahall.fabric.topology.scale_up import scale_up_domain, with_scale_up
from datahall.fabric.topology.tiers import most_chips, ports
from datahall.fabric.topology.tree import tree


def all_hops(fabric: Fabric) -> np.ndarray:
    every = np.arange(fabric.num_hosts)
    return np.stack([hops(fabric, host, every) for host in every])


@settings(deadline=None, max_examples=60)
@given(fabric=fabrics())
def test_counts_are_those_of_all_pairs(fabric: Fabric) -> None:
    table = all_hops(fabric)
    found = counts(fabric)
    assert found.diameter == table.max() or fabric.num_hosts == 1
    pairs = fabric.num_hosts * (fabric.num_hosts - 1)
    # where a pod does not hold whole groups of rails, the mean is that of the first rail
    first_rail = (
        isinstance(fabric.shape, FoldedClos) and fabric.shape.forwarding and fabric.shape.num_levels > 2
    )
    mean = table.sum() / pairs if pairs else 0.0
    assert found.mean_hops == pytest.approx(mean, rel=0.03 if first_rail else 1e-9)
    if pairs and not isinstance(fabric.shape, FoldedClos):
        far = np.argwhere(table == table.max())
        assert found.num_paths in num_paths(fabric, far[:, 0], far[:, 1])
    if (
        not (isinstance(fabric.shape, FoldedClos) and fabric.shape.forwarding)
        and fabric.topology != "dragonfly"
    ):
        shortest = dict(nx.all_pairs_shortest_path_length(nx.DiGraph(graph(fabric))))
        hosts = range(fabric.num_hosts)
        assert (table == [[shortest[a][b] for b in hosts] for a in hosts]).all()


@settings(deadline=None, max_examples=60)
@given(fabric=fabrics(), seed=st.integers(0, 2**32))
def test_equal_paths_are_different_and_numbered_from_0(fabric: Fabric, seed: int) -> None:
    source, target = np.random.default_rng(seed).integers(0, fabric.num_hosts, 2)
    count = int(num_paths(fabric, source, target)[0])
    some = np.arange(min(count, 40))
    paths = route(fabric, source, target, some)
    assert_legal(fabric, np.full(some.size, source), np.full(some.size, target), paths)
    assert len({tuple(paths.of(flow).tolist()) for flow in some}) == some.size
    assert (paths.hops == hops(fabric, source, target)).all()
    again = route(fabric, source, target, some + count)
    assert again.links.tolist() == paths.links.tolist()


@settings(deadline=None, max_examples=60)
@given(fabric=fabrics())
def test_every_link_has_a_way_back_and_every_tier_its_place(fabric: Fabric) -> None:
    """Chips are tier 0 and switches above; a cable to a chip is access, or scale-up where chips are wired."""
    ends = sorted(zip(fabric.link_source.tolist(), fabric.link_target.tolist(), strict=True))
    assert ends == sorted((b, a) for a, b in ends)
    tier = fabric.node_tier.astype(int)
    assert (tier[: fabric.num_hosts] == 0).all()
    assert (tier[fabric.num_hosts :] > 0).all()
    network = np.arange(fabric.num_links) < (
        fabric.num_links if fabric.scale_up_start < 0 else fabric.scale_up_start
    )
    low, high = np.sort([tier[fabric.link_source], tier[fabric.link_target]], axis=0)
    if isinstance(fabric.shape, FoldedClos):
        assert (high[network] - low[network] == 1).all()
    expected = np.where(low > 0, FABRIC, ACCESS if fabric.num_switches else SCALE_UP)
    assert (fabric.link_kind == np.where(network, expected, SCALE_UP)).all()
    assert (fabric.link_bytes_per_s == np.where(network, WIRE.bytes_per_s, FAST.bytes_per_s)).all()
    assert (fabric.link_latency_s == np.where(network, WIRE.latency_s, FAST.latency_s)).all()
    found = counts(fabric)
    assert found.num_cables == network.sum() // 2
    assert found.num_switches == (tier[fabric.num_hosts :] != SCALE_UP_TIER).sum()
    assert found.num_domains == np.unique(fabric.domain).size
    assert found.domain_size == np.bincount(fabric.domain).max()


def test_switches_and_cables_are_counted_by_tier() -> None:
    found = counts(with_scale_up(clos(72, WIRE, radix=8, tiers=3, oversubscription=(1, 3)), 8, FAST))
    fabric = clos(72, WIRE, radix=8, tiers=3, oversubscription=(1, 3))
    tier = fabric.node_tier
    assert found.switches_by_tier == tuple((tier == level).sum() for level in (1, 2, 3))
    into = np.maximum(tier[fabric.link_source], tier[fabric.link_target])
    assert found.cables_by_tier == tuple((into == level).sum() // 2 for level in (1, 2, 3))
    assert (found.num_domains, found.domain_size, found.num_tiers) == (9, 8, 3)
    alone = counts(scale_up_domain(8, FAST))
    assert (alone.switches_by_tier, alone.num_cables) == ((), 0)
    ring = counts(torus((5,), WIRE))
    assert (ring.switches_by_tier, ring.cables_by_tier, ring.full_bisection_fraction) == ((), (5,), 0.4)


def test_a_fabric_without_a_formula_is_searched() -> None:
    """The same tree, once with its shape and once as bare links."""
    import msgspec

    shaped = fat_tree(16, WIRE)
    bare = msgspec.structs.replace(shaped, shape=None)
    one, other = counts(shaped), counts(bare)
    assert (other.diameter, other.num_paths) == (one.diameter, one.num_paths)
    assert other.mean_hops == pytest.approx(one.mean_hops)
    assert np.isnan(other.num_bisection_links)


@pytest.mark.parametrize("radix", [4, 6, 8, 10, 64])
@pytest.mark.parametrize("ratio", [1.0, 1.125, 1.5, 2.0, 3.0])
def test_ports_are_divided_for_the_most_chips(radix: int, ratio: float) -> None:
    """Of all ways to divide them the most down, and of those the fewest up."""
    ways = [
        (down, up) for up in range(1, radix) for down in range(radix - up + 1) if down <= ratio * up + 1e-9
    ]
    most = max(down for down, _ in ways)
    found = ports(radix, ratio)
    assert (found.down, found.up) == (most, min(up for down, up in ways if down == most))


@settings(deadline=None, max_examples=80)
@given(
    chips=st.integers(1, 400), radix=st.sampled_from([4, 6, 8, 12, 16]), tiers=st.sampled_from([None, 1, 2, 3, 4]),
    ratio=st.sampled_from([(1.0,), (2.0,), (1.0, 3.0), (1.5, 2.0)]),
)  # fmt: skip
def test_a_clos_fits_its_switches_and_is_no_larger_than_it_must_be(
    chips: int, radix: int, tiers: int | None, ratio: tuple[float, ...]
) -> None:
    holds = [most_chips(radix, n, ratio) for n in (1, 2, 3, 4)]
    if chips > holds[(tiers or 4) - 1]:
        with pytest.raises(ScenarioError, match="do not fit"):
            size_clos(chips, radix=radix, tiers=tiers, oversubscription=ratio)
        return
    shape = size_clos(chips, radix=radix, tiers=tiers, oversubscription=ratio)
    assert shape.num_levels == (tiers or next(n for n in (1, 2, 3, 4) if holds[n - 1] >= chips))
    fabric = clos(chips, WIRE, radix=radix, tiers=tiers, oversubscription=ratio)
    degree = np.bincount(fabric.link_source, minlength=fabric.num_nodes)
    assert (degree[:chips] == 1).all()
    assert degree[chips:].max() <= radix
    tier = fabric.node_tier
    for level in range(1, shape.num_levels):
        allowed = ratio[level - 1] if level <= len(ratio) else 1.0
        up = (tier[fabric.link_source] == level) & (tier[fabric.link_target] == level + 1)
        down = (tier[fabric.link_source] == level) & (tier[fabric.link_target] == level - 1)
        for switch in np.flatnonzero(tier == level):
            ups, downs = (
                (up & (fabric.link_source == switch)).sum(),
                (down & (fabric.link_source == switch)).sum(),
            )
            assert downs <= allowed * ups + 1e-9
    assert shape.below(shape.num_levels) >= chips


def test_pods_are_as_small_as_asked_for() -> None:
    fabric = clos(256, WIRE, radix=16, tiers=3, pod_chips=32)
    assert fabric.shape.below(2) == 32
    assert fabric.shape.children[2] == 8
    with pytest.raises(ScenarioError, match="32 pods of 8 chips do not fit 16-port") as caught:
        clos(256, WIRE, radix=16, tiers=3, pod_chips=8)
    assert "16 chips or more" in caught.value.hint


@pytest.mark.parametrize(
    ("radix", "chips", "tiers"), [(3, 3, 1), (3, 4, 2), (4, 12, 2), (4, 13, 3), (5, 20, 2)]
)
def test_a_tree_is_as_low_as_its_ports_allow(radix: int, chips: int, tiers: int) -> None:
    """The root has all its ports down, every other switch one up: radix · (radix - 1) chips in two tiers."""
    assert tree(chips, WIRE, radix=radix).shape.num_levels == tiers
    fabric = tree(chips, WIRE, radix=radix)
    assert np.bincount(fabric.link_source)[chips:].max() <= radix


def test_bisection_counts_what_the_halves_share() -> None:
    assert counts(torus((3, 4), WIRE)).num_bisection_links == 6  # the even axis is halved
    assert counts(torus((6, 4), WIRE)).num_bisection_links == 8
    assert counts(torus((3, 5), WIRE)).num_bisection_links == 6
    assert counts(torus((4, 4), WIRE, wrap=False)).num_bisection_links == 4
    assert counts(torus((1,), WIRE)).num_bisection_links == 0
    assert counts(hyperx((4, 6), WIRE, terminals=9)).num_bisection_links == 6 * 2 * 2
    assert counts(hyperx((4, 6), WIRE, terminals=1)).num_bisection_links == 12  # half the endpoints
    assert counts(full_mesh(5, WIRE)).num_bisection_links == 6
    assert counts(dragonfly(8, WIRE, radix=7)).num_bisection_links == 4  # one group: four meshed switches
    assert counts(dragonfly_plus(4, WIRE, radix=4)).num_bisection_links == 2
    # nine groups of eight: 4 x 5 pairs of groups with a cable each
    assert counts(dragonfly(72, WIRE)).num_bisection_links == 20
    assert counts(tree(27, WIRE, radix=4)).num_bisection_links == 1.5


@pytest.mark.parametrize("p", [1, 2, 3, 8])
def test_a_full_dragonfly_has_the_distances_of_the_paper(p: int) -> None:
    """2p switches a group, p chips and p global cables each, one cable between any two of 2p² + 1 groups."""
    a, groups = 2 * p, 2 * p * p + 1
    fabric = dragonfly(a * p * groups, WIRE)
    own = 2 * (p - 1) + 3 * p * (a - 1)
    near = p * (3 * p + 4 * p * (a - 1))  # groups whose cable ends in one's own switch
    far = (groups - 1 - p) * (4 * p + 5 * p * (a - 1))
    found = counts(fabric)
    assert found.mean_hops == pytest.approx((own + near + far) / (fabric.num_hosts - 1))
    assert found.diameter == 5
    assert found.num_switches == a * groups
    assert np.bincount(fabric.link_source)[fabric.num_hosts :].max() == 4 * p - 1
    groups_joined = {
        tuple(sorted(((x - fabric.num_hosts) // a, (y - fabric.num_hosts) // a)))
        for x, y in zip(fabric.link_source.tolist(), fabric.link_target.tolist(), strict=True)
        if min(x, y) >= fabric.num_hosts and (x - fabric.num_hosts) // a != (y - fabric.num_hosts) // a
    }
    assert len(groups_joined) == groups * (groups - 1) // 2


@pytest.mark.parametrize("radix", [4, 6, 8])
def test_a_dragonfly_plus_holds_its_groups_and_no_more(radix: int) -> None:
    half = radix // 2
    most = half**2 * (half**2 + 1)
    fabric = dragonfly_plus(most, WIRE, radix=radix)
    assert fabric.shape.groups == half**2 + 1
    assert (np.bincount(fabric.link_source)[most:] == radix).all()
    with pytest.raises(ScenarioError, match=f"dragonfly\\+ of {radix}-port"):
        dragonfly_plus(most + 1, WIRE, radix=radix)
    with pytest.raises(ScenarioError):
        dragonfly_plus(0, WIRE, radix=radix)
    assert dragonfly_plus(1, WIRE, radix=2).num_hosts == 1


def test_a_dragonfly_takes_the_smallest_switches_that_will_do() -> None:
    assert [dragonfly(n, WIRE).shape.terminals for n in (1, 6, 7, 72, 73, 342, 343)] == [1, 1, 2, 2, 3, 3, 4]
    assert dragonfly(6, WIRE, radix=3).shape.groups == 3
    assert dragonfly(6, WIRE, radix=14).shape.terminals == 2  # one group of four switches, not of six
    for chips, radix in [(7, 3), (73, 7), (1, 2)]:
        with pytest.raises(ScenarioError, match="do not fit"):
            dragonfly(chips, WIRE, radix=radix)
    few = dragonfly(20, WIRE, radix=7).shape  # three groups share eight global ports each
    assert isinstance(few, Dragonfly)
    assert (few.groups, few.copies, few.used_ports) == (3, 4, 8)


@settings(deadline=None)
@given(
    chips=st.integers(1, 300),
    axes=st.integers(1, 3),
    radix=st.integers(4, 24),
    fraction=st.sampled_from([0.25, 0.5, 1.0]),
)
def test_the_smallest_hyperx_is_found(chips: int, axes: int, radix: int, fraction: float) -> None:
    """Sides from 2 up; the switch holds its chips and its rows, and the cut carries its share of them."""
    fits = [
        side
        for side in range(2, radix + 1)
        if -(-chips // side**axes) + axes * (side - 1) <= radix
        and side / (2 * -(-chips // side**axes)) >= fraction
    ]
    if not fits:
        with pytest.raises(ScenarioError, match="do not fit"):
            hyperx_for(chips, WIRE, radix=radix, axes=axes, bisection_fraction=fraction, whole=1)
        return
    fabric = hyperx_for(chips, WIRE, radix=radix, axes=axes, bisection_fraction=fraction, whole=1)
    assert fabric.shape.sides == (fits[0],) * axes
    assert fabric.shape.terminals == -(-chips // fits[0] ** axes)
    assert np.bincount(fabric.link_source)[chips:].max() <= radix


def test_a_hyperx_that_is_too_small_says_what_it_holds() -> None:
    """A switch of 16 ports, half the bisection: sides of 6 leave 6 ports for chips, 216 in all."""
    with pytest.raises(ScenarioError) as caught:
        hyperx_for(10**6, WIRE, radix=16, whole=1)
    assert "⟦chips=216⟧" in caught.value.hint
    assert hyperx_for(216, WIRE, radix=16, whole=1).shape.sides == (6, 6)
    with pytest.raises(ScenarioError):
        hyperx_for(217, WIRE, radix=16, whole=1)


@pytest.mark.parametrize(
    "bad", [((), 1, None), ((2, 0), 1, None), ((2,), -1, None), ((2,), 0, 1), ((2,), 1, 0)]
)
def test_grids_that_make_no_sense_are_refused(bad: tuple[tuple[int, ...], int, int | None]) -> None:
    sides, terminals, chips = bad
    with pytest.raises(ScenarioError):
        hyperx(sides, WIRE, terminals=terminals, num_chips=chips)
    assert counts(hyperx((1,), WIRE, terminals=1)).mean_hops == 0.0


def test_paths_of_a_grid_are_the_orders_of_its_axes() -> None:
    found = counts(hyperx((2, 1, 3, 2), WIRE, terminals=1))
    assert (found.num_paths, found.diameter) == (factorial(3), 5)
    assert counts(full_mesh(4, WIRE)).diameter == 1


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("chips", [1, 7, 12, 36, 64, 100, 360])
def test_the_most_cube_like_sides_are_found(chips: int, axes: int) -> None:
    """Of all ways to write the number as a product: the shortest longest side, then the smallest sum."""
    divisors = [side for side in range(1, chips + 1) if chips % side == 0]
    ways = [sides for sides in product(divisors, repeat=axes) if prod(sides) == chips]
    ways = [sides for sides in ways if tuple(sorted(sides)) == sides]
    assert cubic_sides(chips, axes) == min(ways, key=lambda sides: (max(sides), sum(sides)))


def test_a_torus_is_at_most_four_times_longer_than_wide() -> None:
    assert torus_for(32, WIRE, axes=2).shape.sides == (4, 8)
    assert torus_for(4, WIRE, axes=2).shape.sides == (2, 2)
    with pytest.raises(
        ScenarioError, match="22 chips make no 2D torus: the most cube-like is 2x11"
    ) as caught:
        torus_for(22, WIRE, axes=2)
    assert "21 (3x7) or 24 (4x6)" in caught.value.hint
    assert torus_for(16, WIRE, axes=2, wrap=False).topology == "mesh"
    with pytest.raises(ScenarioError, match="torus of 0 chips"):
        torus_for(0, WIRE, axes=3)


def test_path_counts_of_a_large_torus_stop_at_a_limit() -> None:
    """Two opposite corners of 100 x 100 x 100 have more shortest paths than a 64-bit number holds."""
    fabric = torus((100, 100, 100), WIRE, wrap=False)
    far, most = fabric.num_hosts - 1, 2**61
    assert num_paths(fabric, 0, far)[0] == most
    assert num_paths(fabric, 0, 9 * 10**4 + 9 * 100 + 9)[0] == factorial(27) // factorial(9) ** 3
    path = route(fabric, [0, 0], far, [0, most - 1])
    assert_legal(fabric, np.zeros(2, np.int32), np.full(2, far, np.int32), path)
    assert path.of(0).tolist() != path.of(1).tolist()


def test_the_first_path_of_a_torus_goes_axis_by_axis_and_upwards() -> None:
    fabric = torus((4, 4), WIRE)
    nodes = fabric.link_target[route(fabric, 0, 2 * 4 + 2).of(0)]
    assert nodes.tolist() == [4, 8, 9, 10]
    assert num_paths(fabric, 0, 10)[0] == 4 * 6
    back = fabric.link_target[route(fabric, 0, 3).of(0)]
    assert back.tolist() == [3]


def test_rails_hold_one_chip_of_each_server() -> None:
    """The chips on one leaf have one place in their servers, and are of as many servers as fit."""
    fabric = rail_optimised(128, WIRE, FAST, radix=16, rails=4)
    leaf_of = {
        int(a): int(b) for a, b in zip(fabric.link_source[:128], fabric.link_target[:128], strict=True)
    }
    for leaf in set(leaf_of.values()):
        chips = [chip for chip, its in leaf_of.items() if its == leaf]
        assert len({chip % 4 for chip in chips}) == 1
        assert len(chips) == len({chip // 4 for chip in chips}) == 8
    single = rail_optimised(16, WIRE, FAST, radix=16, rails=4)
    assert (single.shape.num_levels, single.shape.rails, single.shape.forwarding) == (1, 1, False)
    assert rail_optimised(17 * 4, WIRE, FAST, radix=16, rails=4).shape.num_levels == 2
    assert rail_optimised(36 * 4, WIRE, FAST, radix=16, rails=4).shape.num_levels == 3
    assert rail_optimised(32, WIRE, FAST, radix=64, rails=4).shape.num_levels == 1
    assert rail_optimised(32, WIRE, FAST, radix=64, rails=4, tiers=2).shape.num_levels == 2


def test_rail_only_has_no_cable_between_rails() -> None:
    fabric = rail_only(96, WIRE, FAST, radix=8, rails=4)
    network = nx.Graph(
        list(zip(fabric.link_source[: fabric.scale_up_start], fabric.link_target, strict=False))
    )
    for part in nx.connected_components(network):
        assert len({chip % 4 for chip in part if chip < 96}) == 1
    assert nx.number_connected_components(network) == 4
    with pytest.raises(ScenarioError, match="lay them once"):
        with_scale_up(fabric, 4, FAST)


def test_a_wire_carries_something_and_takes_no_negative_time() -> None:
    assert Wire(1.0).latency_s == 0.0
    for bytes_per_s, latency_s in [(0.0, 0.0), (np.inf, 0.0), (np.nan, 0.0), (1.0, np.inf), (1.0, np.nan)]:
        with pytest.raises(ScenarioError):
            Wire(bytes_per_s, latency_s)


def test_latency_of_a_path_is_the_sum_of_its_links() -> None:
    fabric = with_scale_up(fat_tree(16, WIRE), 4, FAST)
    paths = route(fabric, [0, 0, 0, 0], [0, 1, 4, 15])
    assert fabric.latency_s(paths) == pytest.approx([0.0, 2 * FAST.latency_s, 6e-6, 6e-6])
    assert fabric.num_domains == 4
