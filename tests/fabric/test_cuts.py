"""Where fabrics are narrow: each cut is a cut of the graph, and no collective is faster than it allows."""

from __future__ import annotations

import msgspec
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.cluster.groups import group_times, machine_times
from datahall.fabric.collectives.crossing import Sends, crossed, crossing_s, crossing_share
from datahall.fabric.collectives.system import System, system_of
from datahall.fabric.flows.failures import failed
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.cuts import Cut, cuts
from datahall.fabric.topology.dragonfly import dragonfly, dragonfly_plus
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.grids.hyperx import full_mesh, hyperx
from datahall.fabric.topology.grids.torus import torus
from datahall.fabric.topology.rail import rail_only, rail_optimised
from datahall.fabric.topology.scale_up import scale_up_domain, with_scale_up
from datahall.fabric.topology.tree import tree
from datahall.scenario.sections.failure import Failure
from datahall.scenario.words import COLLECTIVES, Collective

WIRE, FAST = Wire(50e9, 5e-7), Wire(450e9, 2e-7)
FABRICS = {
    "tree": lambda: tree(40, WIRE, radix=8),
    "clos": lambda: clos(48, WIRE, radix=16, tiers=2),
    "tapered clos": lambda: clos(48, WIRE, radix=16, tiers=2, oversubscription=(3.0,)),
    "three tiers": lambda: clos(96, WIRE, radix=8, tiers=3, oversubscription=(1.0, 3.0)),
    "ragged": lambda: clos(50, WIRE, radix=16, tiers=2, oversubscription=(2.0,)),
    "dragonfly": lambda: dragonfly(36, WIRE),
    "dragonfly+": lambda: dragonfly_plus(24, WIRE, radix=8),
    "dragonfly+ of four groups": lambda: dragonfly_plus(64, WIRE, radix=8),
    "hyperx": lambda: hyperx((3, 4), WIRE, terminals=2),
    "full mesh": lambda: full_mesh(8, WIRE),
    "torus": lambda: torus((4, 3, 5), WIRE),
    "mesh": lambda: torus((4, 6), WIRE, wrap=False),
}
each_fabric = pytest.mark.parametrize("name", FABRICS)


def system(found: tuple[Cut, ...], nic_bytes_per_s: float = 50e9) -> System:
    return msgspec.structs.replace(system_of("h100-sxm", nic_bytes_per_s=nic_bytes_per_s), cuts=found)


def graph(fabric: Fabric) -> nx.DiGraph:
    drawn = nx.DiGraph()
    network = fabric.num_links if fabric.scale_up_start < 0 else fabric.scale_up_start
    for link in range(network):
        ends = int(fabric.link_source[link]), int(fabric.link_target[link])
        rate = float(fabric.link_bytes_per_s[link])
        before = drawn.get_edge_data(*ends, {"capacity": 0.0})["capacity"]
        drawn.add_edge(*ends, capacity=before + rate)
    return drawn


@each_fabric
def test_a_cut_is_as_wide_as_the_flow_out_of_so_many_endpoints(name: str) -> None:
    """Some block of `num_below` neighbouring endpoints gets no more out than the cut says: max flow by networkx."""
    fabric = FABRICS[name]()
    drawn = graph(fabric)
    for cut in cuts(fabric):
        widths = []
        for first in range(
            0, fabric.num_hosts - cut.num_below + 1, 1 if "axis" in cut.name else cut.num_below
        ):
            inside = set(range(first, first + cut.num_below))
            flow = drawn.copy()
            for host in range(fabric.num_hosts):
                ends = ("in", host) if host in inside else (host, "out")
                flow.add_edge(*ends, capacity=float("inf"))
            widths.append(nx.maximum_flow_value(flow, "in", "out"))
        if "axis 1" in cut.name or "axis" not in cut.name:  # blocks of neighbours are whole there
            fewer = min(cut.num_below, fabric.num_hosts - cut.num_below)
            ports = fewer * 50e9 * (1 if fabric.num_switches else 99)
            assert min(widths) == pytest.approx(min(cut.bytes_per_s, ports))


def test_leaves_and_pods_have_the_width_that_their_ratio_says() -> None:
    leaf, pod = cuts(clos(96, WIRE, radix=8, tiers=3, oversubscription=(1.0, 3.0)))
    assert (leaf.name, pod.name) == ("leaf", "pod")
    assert leaf.bytes_per_s / leaf.num_below == pytest.approx(50e9)
    assert pod.bytes_per_s / pod.num_below == pytest.approx(50e9 / 3)
    (only,) = cuts(tree(40, WIRE, radix=41)) or (None,)
    assert only is None


def test_rails_are_cut_between_groups_of_servers_not_inside_one() -> None:
    for made in (
        rail_optimised(64, WIRE, FAST, radix=8, rails=8),
        rail_only(64, WIRE, FAST, radix=4, rails=8),
    ):
        for cut in cuts(made):
            assert cut.num_below % 8 == 0
            assert cut.bytes_per_s / cut.num_below == pytest.approx(50e9)


def test_a_domain_on_several_leaves_has_the_ways_out_of_all_of_them() -> None:
    flat = clos(64, WIRE, radix=8, oversubscription=(3.0,))
    small, large = cuts(flat)[0], cuts(with_scale_up(flat, 32, FAST))[0]
    assert (small.num_below, large.num_below) == (6, 32)
    assert large.bytes_per_s / 32 == pytest.approx(small.bytes_per_s / 6)
    assert cuts(scale_up_domain(8, FAST)) == ()


@each_fabric
def test_what_fails_makes_cuts_narrower_and_nothing_wider(name: str) -> None:
    fabric = FABRICS[name]()
    half = failed(fabric, Failure(links=tuple(range(0, fabric.num_links, 7)), left_fraction=0.5))
    narrow = {cut.name: cut.bytes_per_s / cut.num_below for cut in cuts(half)}
    for cut in cuts(fabric):
        assert narrow[cut.name] <= cut.bytes_per_s / cut.num_below * (1 + 1e-12)
    assert any(narrow[cut.name] < cut.bytes_per_s / cut.num_below for cut in cuts(fabric))


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(FABRICS)), collective=st.sampled_from(COLLECTIVES), exponent=st.floats(3, 10),
    stride=st.sampled_from((1, 2, 4, 8)), slower=st.floats(1.0, 50.0),
)  # fmt: skip
def test_no_collective_beats_the_bytes_over_the_cut(
    name: str, collective: Collective, exponent: float, stride: int, slower: float
) -> None:
    fabric = FABRICS[name]()
    found = tuple(msgspec.structs.replace(cut, bytes_per_s=cut.bytes_per_s / slower) for cut in cuts(fabric))
    machine, size = system(found), np.array([10.0**exponent])
    ranks = max(2, fabric.num_hosts // stride)
    time = machine_times(machine, collective, size, ranks, stride)[0]
    near = machine.apart(stride)
    for cut in crossed(near, ranks):
        assert time >= crossing_s(Sends(collective), float(size[0]), ranks, cut) * (1 - 1e-12)
    assert time >= machine_times(system(()), collective, size, ranks, stride)[0]


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(FABRICS)), collective=st.sampled_from(COLLECTIVES), exponent=st.floats(3, 10),
    more=st.floats(1.0, 8.0),
)  # fmt: skip
def test_wider_cuts_are_never_slower(name: str, collective: Collective, exponent: float, more: float) -> None:
    fabric = FABRICS[name]()
    narrow = cuts(fabric)
    wide = tuple(msgspec.structs.replace(cut, bytes_per_s=cut.bytes_per_s * more) for cut in narrow)
    size = np.array([10.0**exponent])
    slow, fast = (machine_times(system(one), collective, size, fabric.num_hosts)[0] for one in (narrow, wide))
    assert fast <= slow


def test_what_must_cross_is_what_the_textbook_counts() -> None:
    def leaf(below: int, full: int = 0) -> Cut:
        return Cut(
            name="leaf", num_below=below, num_full=full or below, bytes_per_s=1.0, link_bytes_per_s=1.0
        )

    assert crossing_share(Sends("all-reduce"), 8, leaf(4)) == 1.0  # two halves swap their sums
    assert crossing_share(Sends("all-reduce"), 8, leaf(1)) == pytest.approx(2 * 7 / 8)  # a ring's share
    assert (
        crossing_share(Sends("all-reduce"), 10, leaf(1, 3)) == 1.5
    )  # four leaves, whatever the last one holds
    assert crossing_share(Sends("all-to-all"), 8, leaf(4)) == 2.0  # four ranks send half of what they have
    assert crossing_share(Sends("reduce-scatter"), 8, leaf(2)) == 0.75
    assert crossing_share(Sends("all-gather"), 8, leaf(6)) == 0.75  # what six hold must reach the two outside
    assert crossing_share(Sends("send-recv"), 8, leaf(4)) == 1.0
    assert (
        crossing_share(Sends("barrier"), 8, leaf(4))
        == crossing_share(Sends("barrier", "ring"), 8, leaf(4))
        == 0.0
    )
    assert crossing_share(Sends("all-gather"), 4, leaf(4)) == 0.0


def test_groups_between_each_others_ranks_share_the_way_out() -> None:
    (leaf,) = cuts(clos(64, WIRE, radix=64, tiers=2, oversubscription=(4.0,)))
    machine, size = system((leaf,)), np.array([1e9])
    near = group_times(machine, "all-to-all", size, np.array([8.0]), np.array([1.0]))
    apart = group_times(machine, "all-to-all", size, np.array([8.0]), np.array([8.0]))
    assert near == group_times(
        system(()), "all-to-all", size, np.array([8.0]), np.array([1.0])
    )  # inside a leaf
    assert apart[0] >= 7 / 8 * 1e9 / (leaf.bytes_per_s / leaf.num_below) * (1 - leaf.num_below / 64)
    assert apart[0] > near[0]


def test_a_way_out_is_as_wide_as_the_smaller_of_its_directions() -> None:
    fabric = tree(40, WIRE, radix=8)
    (root,) = {int(node) for node in np.flatnonzero(fabric.node_tier == fabric.node_tier.max())}
    for ends in (fabric.link_source, fabric.link_target):
        slow = np.where(ends == root, fabric.link_bytes_per_s / 2, fabric.link_bytes_per_s)
        half = msgspec.structs.replace(fabric, link_bytes_per_s=slow)
        assert cuts(half)[-1].bytes_per_s == cuts(fabric)[-1].bytes_per_s / 2


def test_a_small_part_counts_by_what_it_has_and_a_full_one_by_what_each_gets() -> None:
    fabric = clos(43, WIRE, radix=16, tiers=2, oversubscription=(2.0,))  # the last leaf has three
    (full,) = cuts(fabric)
    last = int(np.flatnonzero(fabric.node_tier == 1)[-1])
    up = np.flatnonzero((fabric.link_source == last) & (fabric.link_target > last))
    some = cuts(failed(fabric, Failure(links=tuple(up[2:].tolist()))))  # two cables stay
    assert some == (msgspec.structs.replace(full, num_below=3, bytes_per_s=100e9), full)


def test_a_group_that_fits_into_a_part_crosses_nothing() -> None:
    partial = Cut(name="leaf", num_below=16, num_full=63, bytes_per_s=1.0, link_bytes_per_s=1.0)
    assert crossed(system((partial,)), 63) == ()
    assert crossed(system((partial,)), 64) == (partial,)
