"""Edges of fabrics: one chip alone, too many tiers, parts of a row, failed links, and calls that a benchmark wraps."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fabric.collectives.test_by_hand import MACHINE
from tests.fabric.designs import design

from datahall.breakdown import assumed, false_nodes
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.fabric.collectives.algorithms import table
from datahall.fabric.collectives.algorithms.table import closed_form
from datahall.fabric.collectives.algorithms.torus import bucket_all_gather_time
from datahall.fabric.collectives.choice import choose_collective
from datahall.fabric.collectives.figure import Ask, Wires
from datahall.fabric.design.parts import port_note
from datahall.fabric.design.tiers import UnneededTier
from datahall.fabric.flows.failures import blast_radius, failed, shares_of_ports
from datahall.fabric.routing.paths import hops
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.counts import counts
from datahall.fabric.topology.cuts import Cut
from datahall.fabric.topology.dragonfly import dragonfly
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Wire
from datahall.fabric.topology.grids.hyperx import hyperx
from datahall.fabric.topology.grids.torus import torus
from datahall.fabric.topology.scale_up import check_whole_domains, scale_up_domain, with_scale_up
from datahall.scenario.sections.failure import Failure

CATALOG = Catalog(user=False)
WIRE, FAST = Wire(50e9, 1e-6), Wire(450e9, 3e-7)


def test_one_chip_alone_is_nowhere_far() -> None:
    for fabric in (
        fat_tree(1, WIRE),
        clos(1, WIRE, radix=4),
        dragonfly(1, WIRE),
        hyperx((1,), WIRE, terminals=1),
    ):
        assert fabric.shape.mean_hops() == 0.0
        assert hops(fabric, [0], [0]).tolist() == [0]
    assert bucket_all_gather_time(1e9, (1, 1), hop_s=1.0, bytes_per_s=1.0) == 0.0
    with pytest.raises(ScenarioError, match="fat tree of 0 chips") as caught:
        fat_tree(0, WIRE)
    assert caught.value.field == "chips"


def test_one_chip_without_a_link_has_no_bisection() -> None:
    """On a torus of one there is no neighbour: it sends nothing, of which no half is full."""
    alone = counts(torus((1, 1), WIRE))
    assert (alone.num_hosts, alone.bisection_bytes_per_s, alone.full_bisection_fraction) == (1, 0.0, 0.0)


@pytest.mark.parametrize(("chips", "size", "near"), [(12, 8, "8 or 16"), (4, 8, "8"), (0, 8, "8")])
def test_chips_come_in_whole_domains(chips: int, size: int, near: str) -> None:
    with pytest.raises(ScenarioError, match="whole number") as caught:
        check_whole_domains(chips, size)
    assert caught.value.hint == f"nearest: {near}"
    check_whole_domains(16, 8)
    with pytest.raises(ScenarioError, match="domain of 0 chips") as caught:
        check_whole_domains(16, 0)
    assert caught.value.field == "domain"


def test_a_ratio_for_each_tier_below_the_top_and_no_more() -> None:
    assert design("clos", 512, catalog=CATALOG, tiers=2, oversubscription="3:1").counts.num_hosts == 512
    with pytest.raises(UnneededTier, match="3 tiers, and 512 chips make 2") as caught:
        design("clos", 512, catalog=CATALOG, tiers=2, oversubscription="3:1,2:1")
    assert caught.value.field == "oversubscription"
    # a further 1:1 says nothing that would not hold anyway
    assert design("clos", 512, catalog=CATALOG, tiers=2, oversubscription="3:1,1:1").counts.num_hosts == 512


def test_a_network_that_was_assumed_is_said_to_be() -> None:
    usual = design("fat-tree", 64, catalog=CATALOG).parts
    assert port_note(usual) == ()
    slower = design("fat-tree", 64, catalog=CATALOG, nic_bytes_per_s="200 Gb/s").parts
    (note,) = port_note(slower)
    assert "25 GB/s" in note
    assert usual.server.title in note


@given(
    sizes=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=4),
    kept=st.integers(0, 40),
)
def test_the_first_endpoints_have_the_first_parts(sizes: list[tuple[int, int]], kept: int) -> None:
    row = Cut(
        name="x", num_below=1, num_full=9, bytes_per_s=1.0, link_bytes_per_s=1.0, sizes=tuple(sizes)
    ).within(kept)
    each = [size for size, count in sizes for _ in range(count)]
    wanted, left = [], kept
    for size in each:
        wanted += [min(size, left)] if left else []
        left -= min(size, left)
    assert [size for size, count in row.sizes for _ in range(count)] == wanted


def test_a_part_smaller_than_a_domain_is_widened_to_it() -> None:
    """Domains of eight on leaves of two: eight chips share four ways out."""
    leaf = Cut(
        name="leaf", num_below=2, num_full=2, bytes_per_s=3.0, link_bytes_per_s=1.0, sizes=((2, 8),),
        widest_bytes_per_s=5.0,
    )  # fmt: skip
    whole = leaf.around(8)
    assert (whole.num_below, whole.num_full, whole.sizes) == (8, 8, ((8, 2),))
    assert (whole.bytes_per_s, whole.widest_bytes_per_s) == (12.0, 20.0)
    assert leaf.around(2) == leaf


def test_ways_around_failed_links_are_counted_and_none_is_minus_one() -> None:
    tree = fat_tree(16, WIRE)
    lost = failed(tree, Failure(nics=(3,)))
    far = hops(lost, [0, 0, 3, 0], [3, 15, 0, 1])
    assert far.tolist() == [-1, 6, -1, 2]
    blast = blast_radius(tree, Failure(nics=(3,)))
    assert (blast.num_cut_off, blast.cut_off.tolist()) == (1, [3])
    slow = blast_radius(tree, Failure(nics=(3, 4), left_fraction=0.5))
    assert (slow.num_cut_off, slow.num_slowed) == (0, 2)


def test_chips_share_the_ports_of_their_domain() -> None:
    servers = with_scale_up(fat_tree(16, WIRE), 4, FAST)
    assert set(shares_of_ports(servers).tolist()) == {50e9}
    lost = shares_of_ports(failed(servers, Failure(nics=(0,))))
    assert lost.tolist() == [37.5e9] * 4 + [50e9] * 12
    with pytest.raises(ScenarioError, match="has no NICs"):
        failed(scale_up_domain(8, FAST), Failure(nics=(0,)))


@pytest.mark.parametrize(("ranks", "algorithm"), [(4, "NVLS"), (8, "NVLS tree"), (4, "ring"), (8, "tree")])
def test_what_a_benchmark_adds_is_a_part_of_the_chain(ranks: int, algorithm: str) -> None:
    system = msgspec.structs.replace(MACHINE, harness_s=2.5)
    leaves = Wires(
        assumed("link", 10.0, "bytes_per_s", "a test"),
        assumed("NIC", system.nic_bytes_per_s, "bytes_per_s", "a test"),
    )
    array = assumed("array", 80.0, "bytes", "of the test")
    for grouped in (False, True):
        ask = Ask(system, leaves, "all-reduce", array, ranks, grouped=grouped)
        parts = closed_form(ask, algorithm, "Simple")
        told = parts.figure
        assert (parts.across_s > 0) == (ranks > 4)  # domains are of four
        time = table.times(system, "all-reduce", np.array([80.0]), ranks)[algorithm, "Simple"][0]
        assert told.value == pytest.approx(float(time))
        assert false_nodes(told) == []
        assert next(part for part in told.parts if part.name == "benchmark").value == 2.5
        assert ask.ranks.origin == ("derived" if grouped else "input")


def test_a_time_is_waiting_and_moving() -> None:
    found = choose_collective(MACHINE, "all-reduce", 800.0, 4)
    assert found.latency_fraction * found.time_s == pytest.approx(found.latency_s)
    assert found.latency_fraction + found.moving_fraction == 1.0
    assert 0 < found.moving_fraction < 1
