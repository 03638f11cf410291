"""Small fabrics of every topology, and a fabric as a networkx graph: what the topology tests share."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.dragonfly import dragonfly, dragonfly_plus
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Fabric, Paths, Wire
from datahall.fabric.topology.grids.hyperx import full_mesh, hyperx
from datahall.fabric.topology.grids.torus import torus
from datahall.fabric.topology.rail import rail_only, rail_optimised
from datahall.fabric.topology.scale_up import scale_up_domain, with_scale_up
from datahall.fabric.topology.tree import tree

WIRE = Wire(50e9, 1e-6)
FAST = Wire(450e9, 3e-7)


def small() -> dict[str, Fabric]:
    """One or more fabrics of each topology, small enough for brute force."""
    return {
        "tree": tree(27, WIRE, radix=4),
        "binary tree": tree(16, WIRE, radix=3),
        "fat tree": fat_tree(16, WIRE),
        "fat tree, k = 6": fat_tree(54, WIRE),
        "fat tree, some ports empty": fat_tree(11, WIRE),
        "fat tree, bundled": fat_tree(32, WIRE, radix=8),
        "leaf–spine": clos(24, WIRE, radix=8, tiers=2),
        "oversubscribed": clos(36, WIRE, radix=8, tiers=2, oversubscription=(3,)),
        "three tiers, tapered": clos(72, WIRE, radix=8, tiers=3, oversubscription=(1, 3)),
        "four tiers": clos(28, WIRE, radix=4, tiers=4),
        "four tiers, tapered": clos(40, WIRE, radix=6, tiers=4, oversubscription=(1, 2, 2)),
        "one switch": clos(6, WIRE, radix=8),
        "servers under a fat tree": with_scale_up(fat_tree(16, WIRE), 4, FAST),
        "one domain": scale_up_domain(8, FAST),
        "rail-optimised": rail_optimised(32, WIRE, FAST, radix=8, rails=4, tiers=2),
        "rail-optimised, no forwarding": rail_optimised(
            32, WIRE, FAST, radix=8, rails=4, tiers=2, forwarding=False
        ),
        "rail-only": rail_only(32, WIRE, FAST, radix=8, rails=4),
        "ring": torus((5,), WIRE),
        "2D torus": torus((4, 5), WIRE),
        "3D torus": torus((4, 3, 2), WIRE),
        "mesh": torus((3, 4), WIRE, wrap=False),
        "wrapped along one axis": torus((4, 3), WIRE, wrap=(True, False)),
        "dragonfly": dragonfly(36, WIRE),
        "dragonfly, few groups": dragonfly(20, WIRE, radix=7),
        "dragonfly+": dragonfly_plus(20, WIRE, radix=4),
        "hyperx": hyperx((3, 4), WIRE, terminals=2),
        "hyperx, 3D": hyperx((2, 3, 2), WIRE, terminals=1),
        "full mesh": full_mesh(8, WIRE),
    }


SMALL = small()
FORWARDING = {"rail-optimised", "rail-only"}  # chips hand traffic on by rule, not by the shortest way
TWO_NETWORKS = {"servers under a fat tree", "rail-optimised, no forwarding"}  # short ways by either
ONE_GLOBAL_HOP = {"dragonfly", "dragonfly, few groups"}


def graph(fabric: Fabric) -> nx.MultiDiGraph:
    """The links that work, numbered."""
    made = nx.MultiDiGraph()
    made.add_nodes_from(range(fabric.num_nodes))
    for link in np.flatnonzero(fabric.link_bytes_per_s > 0).tolist():
        made.add_edge(int(fabric.link_source[link]), int(fabric.link_target[link]), key=link)
    return made


def pairs(fabric: Fabric, most: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of endpoints, all of them where they are few."""
    every = np.arange(fabric.num_hosts**2)
    chosen = every if every.size <= most else np.random.default_rng(7).choice(every, most, replace=False)
    return chosen // fabric.num_hosts, chosen % fabric.num_hosts


def assert_legal(fabric: Fabric, source: np.ndarray, target: np.ndarray, paths: Paths) -> None:
    """Every path leads from its source to its target over links that work and passes no node twice."""
    assert paths.num_flows == source.size
    assert (fabric.link_bytes_per_s[paths.links] > 0).all()
    for flow in range(paths.num_flows):
        links = paths.of(flow)
        nodes = [int(source[flow]), *fabric.link_target[links].tolist()]
        assert fabric.link_source[links].tolist() == nodes[:-1]
        assert nodes[-1] == target[flow]
        assert len(set(nodes)) == len(nodes)


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Any topology of up to some hundred chips, full or not."""
    kind = draw(
        st.sampled_from(["fat", "clos", "tree", "torus", "dragonfly", "plus", "hyperx", "rail", "rail-only"])
    )
    chips = draw(st.integers(2, 60))
    radix = draw(st.sampled_from([8, 12, 16]))
    match kind:
        case "fat":
            return fat_tree(chips, WIRE)
        case "clos":
            ratio = draw(st.sampled_from([(1.0,), (3.0,), (1.0, 2.0), (1.5, 7.0)]))
            return clos(
                chips, WIRE, radix=radix, oversubscription=ratio, tiers=draw(st.sampled_from([None, 3, 4]))
            )
        case "tree":
            return tree(chips, WIRE, radix=draw(st.integers(3, 9)))
        case "torus":
            sides = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
            wrap = draw(st.lists(st.booleans(), min_size=len(sides), max_size=len(sides)))
            return torus(tuple(sides), WIRE, wrap=tuple(wrap))
        case "dragonfly":
            return dragonfly(chips, WIRE)
        case "plus":
            return dragonfly_plus(chips, WIRE, radix=radix)
        case "hyperx":
            sides = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
            return hyperx(tuple(sides), WIRE, terminals=draw(st.integers(0, 3)))
        case "rail":
            return rail_optimised(4 * chips, WIRE, FAST, radix=16, rails=4)
        case _:
            return rail_only(4 * chips, WIRE, FAST, radix=radix, rails=4)
