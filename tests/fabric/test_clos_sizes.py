"""Sizes of Clos networks: no more switches than their ports need, and never fewer for more chips."""

from __future__ import annotations

from math import ceil

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fabric.topologies import FAST, WIRE, assert_legal, graph

from datahall.catalog import load
from datahall.fabric.design.asked import design_for
from datahall.fabric.design.bill import Bill, bill
from datahall.fabric.flows.rates import max_min_rates
from datahall.fabric.routing.paths import num_paths, route
from datahall.fabric.routing.policies import spread
from datahall.fabric.topology.clos import clos, size_clos
from datahall.fabric.topology.cuts import cuts
from datahall.fabric.topology.folded_clos import FoldedClos, folded_clos
from datahall.fabric.topology.graph import ACCESS, Fabric
from datahall.fabric.topology.rail import rail_only, rail_optimised
from datahall.fabric.topology.scale_up import with_scale_up
from datahall.fabric.topology.tiers import most_chips
from datahall.scenario.sections.fabric import FabricDesign

CATALOG = load()


def switches(shape: FoldedClos) -> list[int]:
    return [shape.num_nodes(level) for level in range(1, shape.num_levels + 1)]


def priced(topology: str, chip: str, chips: int) -> Bill:
    asked = FabricDesign(topology=topology, chip=chip, chips=chips)
    return bill(design_for(asked, CATALOG, num_chips=chips, least_domains=1), CATALOG)


@pytest.mark.parametrize(
    ("chips", "by_tier"),
    [
        # 228 leaves of 32 are 8 pods of 29; 29 uplinks of a switch of a pod go to 4 cores: 8, 7, 7, 7 of each of 8 pods
        (7280, [232, 256, 128]),
        (8192, [256, 256, 128]),
        # 121 leaves are 4 pods of 31; 31 uplinks at up to 16 to a core
        (3848, [124, 128, 64]),
        (4360, [140, 160, 96]),  # 137 leaves: 5 pods of 28, at up to 12 to a core
        (160, [5, 3]),  # 5 leaves of 32 uplinks: 11, 11 and 10 to each of 3 spines
        (65_536, [2048, 2048, 1024]),
    ],
)
def test_switches_worked_by_hand(chips: int, by_tier: list[int]) -> None:
    assert switches(size_clos(chips, radix=64)) == by_tier


@pytest.mark.parametrize(
    ("radix", "ratios"),
    [
        (64, (1.0,)),
        (64, (3.0,)),
        (64, (2.0, 2.0)),
        (40, (1.0,)),
        (48, (1.5,)),
        (36, (1.0,)),
        (16, (7.0,)),
        (128, (1.0,)),
    ],
)
def test_more_chips_never_have_fewer_switches_or_cables(radix: int, ratios: tuple[float, ...]) -> None:
    top = most_chips(radix, 3, ratios)
    before = [0, 0]
    for chips in sorted({*range(radix + 1, top, max(1, top // 2500)), top}):
        shape = size_clos(chips, radix=radix, oversubscription=ratios)
        now = [sum(switches(shape)), sum(map(shape.num_cables, range(2, shape.num_levels + 1)))]
        assert now >= before, chips
        before = now


def test_nor_on_four_tiers() -> None:
    """From 65,537 chips on, the 100,000 of a published site between them."""
    counts = [sum(switches(size_clos(chips, radix=64))) for chips in (*range(65_537, 131_072, 997), 131_072)]
    assert counts == sorted(counts)


@pytest.mark.parametrize("tiers", [None, 3])
def test_nor_on_rails(tiers: int | None) -> None:
    for make in (rail_optimised, rail_only):
        before = 0
        for servers in (*range(1, 40), 61, 64, 67, 127, 128, 131):
            fabric = make(8 * servers, WIRE, FAST, radix=64, rails=8, tiers=tiers)
            now = int(((fabric.node_tier > 0) & (fabric.node_tier < 100)).sum())
            assert now >= before, (make.__name__, servers)
            before = now


@pytest.mark.parametrize("topology", ["fat-tree", "rail-optimised", "rail-only"])
def test_more_chips_never_cost_less_nor_draw_less(topology: str) -> None:
    """Odd and prime numbers of leaves and of pods among them: of 29, 31, 37, 113, 131, 227, 257 leaves."""
    sizes = sorted({leaves * 32 for leaves in (29, 31, 37, 60, 64, 113, 121, 131, 137, 227, 228, 256, 257)})
    bills = [priced(topology, "h100-sxm", chips) for chips in sizes]
    for figures in (
        [one.num_switches for one in bills],
        [one.price.value for one in bills],
        [one.power.value for one in bills],
    ):
        assert figures == sorted(figures)


def test_7280_mi300x_have_at_most_the_switches_of_8192() -> None:
    some, more = priced("fat-tree", "mi300x", 7280), priced("fat-tree", "mi300x", 8192)
    assert some.num_switches <= more.num_switches == 640
    assert some.price.value < more.price.value
    assert some.power.value < more.power.value


def test_100_000_h100_have_hardly_more_of_a_network_than_98_304_for_each_chip() -> None:
    """4 groups of 25 pods use 25 of 32 ports of the third tier: an eighth more switches, where 39 % were."""
    some, more = (priced("fat-tree", "h100-sxm", chips) for chips in (98_304, 100_000))
    assert some.num_switches == 11_264
    assert more.num_switches == 12_544
    assert more.power.value / 100_000 < 1.07 * some.power.value / 98_304


def built() -> list[Fabric]:
    """Networks whose uplinks come out uneven over the switches above, and two whose do not."""
    return [
        clos(20, WIRE, radix=8, tiers=2),
        clos(28, WIRE, radix=8, tiers=2),
        clos(33, WIRE, radix=12, tiers=2, oversubscription=(1.5,)),
        clos(100, WIRE, radix=8),
        clos(72, WIRE, radix=8),
        clos(200, WIRE, radix=12),
        clos(7280, WIRE, radix=64),
        rail_optimised(120, WIRE, FAST, radix=8, rails=4),
        clos(32, WIRE, radix=8, tiers=2),
        clos(128, WIRE, radix=8),
    ]


BUILT = built()


def names(fabric: Fabric) -> str:
    return f"{fabric.topology} of {fabric.num_hosts}"


@pytest.mark.parametrize("fabric", BUILT, ids=names)
def test_every_cable_has_a_port_and_no_switch_more_than_it_has(fabric: Fabric) -> None:
    radix = 64 if fabric.num_hosts > 1000 else 12 if fabric.num_hosts in {33, 200} else 8
    network = slice(0, fabric.num_network_links)
    used = np.bincount(fabric.link_source[network], minlength=fabric.num_nodes)
    assert used[fabric.num_hosts :].max() <= radix
    tier = fabric.node_tier.astype(int)
    top = tier == tier[tier < 100].max()
    into_the_top = int(top[fabric.link_target[network]].sum())
    fewest = ceil(into_the_top / radix)
    assert (
        fewest <= top.sum() <= 2 * fewest
    )  # with all pods wired alike a port in two may be free, never more


@pytest.mark.parametrize("fabric", BUILT, ids=names)
def test_bisection_and_cuts_are_those_of_as_many_cables_on_any_number_of_switches(fabric: Fabric) -> None:
    """One switch above for each uplink, as it was before: the same cables, so the same ways out."""
    assert isinstance(fabric.shape, FoldedClos)
    apart = msgspec.structs.replace(
        fabric.shape, parents=(*fabric.shape.parents[:-1], fabric.shape.uplinks[-1])
    )
    other = folded_clos(fabric.name, fabric.topology, apart, WIRE)
    if fabric.scale_up_start >= 0:
        other = with_scale_up(other, fabric.num_hosts // fabric.num_domains, FAST)
    assert apart.bisection_links() == fabric.shape.bisection_links()
    assert cuts(other) == cuts(fabric)


@settings(deadline=None, max_examples=60)
@given(chips=st.integers(2, 160), radix=st.sampled_from([6, 8, 10, 12]), seed=st.integers(0, 2**32))
def test_ways_are_those_of_a_search(chips: int, radix: int, seed: int) -> None:
    fabric = clos(chips, WIRE, radix=radix)
    here, there = np.random.default_rng(seed).integers(0, chips, (2, 20))
    bare = msgspec.structs.replace(fabric, shape=None)
    assert num_paths(fabric, here, there).tolist() == num_paths(bare, here, there).tolist()
    paths = route(fabric, here, there, np.random.default_rng(seed).integers(0, 2**60, 20))
    assert_legal(fabric, here, there, paths)
    assert graph(fabric).number_of_edges() == fabric.num_links


def test_as_many_ways_in_a_row_as_uplinks_use_each_of_them_once() -> None:
    """6 leaves of 5 uplinks, one to each of 5 spines; 5 leaves of 8, 3, 3 and 2 to each of 3."""
    for fabric, per_spine in (
        (clos(28, WIRE, radix=10, tiers=2), [1] * 5),
        (clos(40, WIRE, radix=16), [2, 3, 3]),
    ):
        assert isinstance(fabric.shape, FoldedClos)
        uplinks = fabric.shape.uplinks[1]
        paths = route(fabric, np.zeros(uplinks, np.int32), fabric.num_hosts - 1, np.arange(uplinks))
        up = paths.links[1::4]
        assert np.unique(up).size == uplinks
        assert sorted(np.unique(fabric.link_target[up], return_counts=True)[1].tolist()) == per_spine


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("chips", [20, 100, 160])
def test_sprayed_packets_fill_all_cables_alike(chips: int, slow: bool) -> None:
    """A shift by half: all leave their leaf.  A port of one idle chip that is slow changes nothing for the others."""
    fabric = clos(chips, WIRE, radix=64 if chips == 160 else 8)
    if slow:
        speeds = fabric.link_bytes_per_s.copy()
        speeds[(fabric.link_kind == ACCESS) & (fabric.link_source == chips - 1)] *= 0.5
        speeds[(fabric.link_kind == ACCESS) & (fabric.link_target == chips - 1)] *= 0.5
        fabric = msgspec.structs.replace(fabric, link_bytes_per_s=speeds)
    source = np.arange(chips - 1, dtype=np.int32)
    target = (source + chips // 2) % (chips - 1)
    routes = spread(fabric, source, target, "spray", np.random.default_rng(1))
    rates = max_min_rates(routes.paths, fabric.link_bytes_per_s, share_fraction=routes.share_fraction)
    assert rates.min() == pytest.approx(WIRE.bytes_per_s, rel=0.01)
