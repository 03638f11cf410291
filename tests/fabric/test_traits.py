"""What a shape says of itself besides its routes, against the links and the routes of small fabrics."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.fabric.topologies import FORWARDING, SMALL

from datahall.fabric.routing.paths import route
from datahall.fabric.topology.graph import ACCESS, SCALE_UP_TIER, Fabric, Traits

each_fabric = pytest.mark.parametrize("name", SMALL)
WITH_LEAVES = [name for name, one in SMALL.items() if (one.link_kind == ACCESS).any()]


def passed(fabric: Fabric) -> set[tuple[int, int, int]]:
    """Every two chips, and a node between them on one of their ways."""
    every = np.arange(fabric.num_hosts**2)
    here, there = every // fabric.num_hosts, every % fabric.num_hosts
    found = set()
    for pick in range(4):
        paths = route(fabric, here, there, pick)
        nodes, owners = fabric.link_target[paths.links], paths.owners()
        found |= set(zip(here[owners].tolist(), there[owners].tolist(), nodes.tolist(), strict=True))
    return found


@pytest.mark.parametrize("name", WITH_LEAVES)
def test_ways_of_others_lead_through_a_leaf_where_it_is_said(name: str) -> None:
    fabric = SMALL[name]
    access = (fabric.link_kind == ACCESS) & (fabric.link_source < fabric.num_hosts)
    leaf = dict(zip(fabric.link_source[access].tolist(), fabric.link_target[access].tolist(), strict=True))
    own = {
        chip: {leaf[one] for one in np.flatnonzero(fabric.domain == fabric.domain[chip]).tolist()}
        for chip in leaf
    }
    transit = {
        node for here, there, node in passed(fabric) if node in set(leaf.values()) - own[here] - own[there]
    }  # fmt: skip
    assert bool(transit) <= fabric.traits.has_transit_leaves
    assert fabric.traits.has_transit_leaves == name.startswith(("dragonfly", "hyperx"))
    assert bool(transit) == (name.startswith(("dragonfly", "hyperx")) and "+" not in name)


@each_fabric
def test_a_grid_joins_neighbours_and_is_closed_where_every_axis_is_a_ring(name: str) -> None:
    fabric = SMALL[name]
    grid = fabric.traits.grid
    assert bool(grid) == any(word in name for word in ("torus", "mesh", "ring", "wrapped")) - ("full" in name)
    assert fabric.traits.is_closed <= bool(grid)
    if not grid:
        return
    here, there = (
        np.array(np.unravel_index(ends, grid)) for ends in (fabric.link_source, fabric.link_target)
    )
    apart = np.abs(here - there)
    assert (np.count_nonzero(apart, axis=0) == 1).all()
    steps, sides = apart.max(axis=0), np.array(grid)[apart.argmax(axis=0)]
    assert np.isin(steps, [1]).sum() + (steps == sides - 1)[steps > 1].sum() == steps.size
    rings = {
        axis for axis, step in zip(apart.argmax(axis=0).tolist(), steps.tolist(), strict=True) if step > 1
    }
    assert fabric.traits.is_closed == ({axis for axis, side in enumerate(grid) if side > 2} == rings)


@each_fabric
def test_chips_hand_on_by_rails_where_it_is_said(name: str) -> None:
    """Then what leaves a server for a chip of another rail is first given to the neighbour on that rail."""
    fabric = SMALL[name]
    assert (fabric.traits.num_rails > 1) == (name in FORWARDING)
    if name in FORWARDING:
        assert fabric.traits.num_rails == np.bincount(fabric.domain).max()


@each_fabric
def test_tiers_and_links_of_the_network_leave_scale_up_domains_out(name: str) -> None:
    fabric = SMALL[name]
    tiers = {int(tier) for tier in fabric.node_tier if tier != SCALE_UP_TIER}
    assert fabric.num_tiers == len(tiers) - 1
    crossbar = fabric.node_tier == SCALE_UP_TIER
    inside = crossbar[fabric.link_source] | crossbar[fabric.link_target]
    if name != "one domain":  # which has no network beside it
        assert fabric.num_network_links == np.count_nonzero(~inside)
        assert not inside[: fabric.num_network_links].any()


def test_of_a_bare_graph_nothing_is_known() -> None:
    bare = msgspec.structs.replace(SMALL["3D torus"], shape=None)
    assert bare.traits == Traits()
    assert list(bare.traits.parts_of(bare)) == []
    assert bare.traits.pools(bare.num_links) is None
    assert (bare.traits.grid, bare.traits.num_rails, bare.traits.has_direct_pairs) == ((), 1, False)
    rates = np.array([3.0, 5.0, 4.0])
    assert bare.traits.ways_out(bare, rates) is rates


@pytest.mark.parametrize("name", sorted(FORWARDING))
def test_parts_of_servers_that_forward_are_whole_servers(name: str) -> None:
    fabric = SMALL[name]
    for _, part in fabric.traits.parts_of(fabric):
        for server in range(fabric.num_domains):
            assert len(set(part[: fabric.num_hosts][fabric.domain == server].tolist())) == 1
