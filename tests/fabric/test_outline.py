"""An outline leaves nothing out but what is inside its groups, and shows a small fabric whole."""

from __future__ import annotations

import pytest
from tests.fabric.topologies import FAST, SMALL, WIRE

from datahall.fabric.design.outline import MOST_GROUPS, num_groups, outline
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Fabric
from datahall.fabric.topology.grids.torus import torus
from datahall.fabric.topology.scale_up import with_scale_up

LARGE = {
    "fat tree of 8,192": fat_tree(8192, WIRE),
    "servers": with_scale_up(fat_tree(1024, WIRE), 8, FAST),
    "torus": torus((16, 8, 8), WIRE),
}


@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_every_node_is_in_a_group_and_no_cable_counts_twice(name: str) -> None:
    fabric: Fabric = {**SMALL, **LARGE}[name]
    found = outline(fabric)
    assert sum(tier.num_nodes for tier in found.tiers) == fabric.num_nodes
    assert all(1 <= len(tier.sizes) <= MOST_GROUPS for tier in found.tiers)
    assert sum(bundle.num_cables for bundle in found.bundles) <= fabric.num_links // 2
    assert sum(bundle.bytes_per_s for bundle in found.bundles) <= fabric.link_bytes_per_s.sum() / 2
    pairs = [(bundle.low, bundle.high) for bundle in found.bundles]
    assert len(set(pairs)) == len(pairs)
    assert all(low < high for low, high in pairs)


@pytest.mark.parametrize(
    "name",
    [name for name, fabric in SMALL.items() if max(fabric.num_hosts, fabric.num_switches) <= MOST_GROUPS],
)
def test_a_small_fabric_is_shown_whole(name: str) -> None:
    fabric = SMALL[name]
    found = outline(fabric)
    assert all(set(tier.sizes) == {1} for tier in found.tiers)
    assert sum(bundle.num_cables for bundle in found.bundles) == fabric.num_links // 2


def test_switched_tiers_lose_no_cable() -> None:
    """No cable of a tree joins two nodes of one tier, so that none is inside a group."""
    found = outline(LARGE["servers"])
    assert sum(bundle.num_cables for bundle in found.bundles) == LARGE["servers"].num_links // 2
    assert [tier.num_nodes for tier in found.tiers][:2] == [128, 1024]  # domains stand below their chips


def test_slabs_of_a_torus_form_a_ring() -> None:
    found = outline(LARGE["torus"])
    (tier,) = found.tiers
    assert tier.sizes == (128,) * 8
    assert {(low[1], high[1]) for low, high, *_ in found.bundles} == {(0, 7)} | {(i, i + 1) for i in range(7)}
    assert {bundle.num_cables for bundle in found.bundles} == {64}


def test_pods_stay_whole_where_they_can() -> None:
    assert [num_groups(number) for number in (1, 8, 24, 25, 64)] == [1, 8, 8, 5, 8]
