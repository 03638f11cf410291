"""Adaptive routing: a flow takes, when it starts, the least loaded of its equal-cost paths."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.fabric.collectives.algorithms.steps import Phase
from datahall.fabric.flows.jobs import Job, Net, Routing, traffic
from datahall.fabric.flows.simulate import Run, simulate
from datahall.fabric.routing.policies import MOST_CHOSEN, permutation, spread
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Fabric, Ints, Wire
from datahall.scenario.words import Policy

RATE = 10.0


def run(fabric: Fabric, source: Ints, target: Ints, policy: Policy, seed: int = 0) -> Run:
    step = Phase(name="x", source=source, target=target, num_bytes=100.0)
    one = Job(name="x", hosts=np.arange(fabric.num_hosts, dtype=np.int32), phases=(step,))
    made = traffic(Net(fabric=fabric, routing=Routing(policy), seed=seed), (one,))
    return simulate(made.flows, fabric.link_bytes_per_s)


def test_flows_that_can_miss_each_other_do() -> None:
    """Everyone to the same place of another leaf: with as many spines as ports, each finds one of its own."""
    fabric = clos(32, Wire(RATE), radix=8, tiers=2)
    chips = np.arange(32, dtype=np.int32)
    for shift in (4, 8, 12):
        target = ((chips + shift) % 32).astype(np.int32)
        assert run(fabric, chips, target, "adaptive").makespan_s == pytest.approx(100.0 / RATE)
    assert run(fabric, chips, target, "ecmp").makespan_s > 100.0 / RATE


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_it_is_no_slower_than_bad_luck_and_no_faster_than_the_ports(seed: int) -> None:
    fabric = fat_tree(54, Wire(RATE), radix=6)
    source, target = permutation(54, np.random.default_rng(seed))
    found = run(fabric, source, target, "adaptive").makespan_s
    worst = max(run(fabric, source, target, "ecmp", seed=luck).makespan_s for luck in range(8))
    assert 100.0 / RATE * (1 - 1e-9) <= found <= worst * (1 + 1e-9)


@given(taper=st.sampled_from([1.0, 3.0]), seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_no_cut_carries_more_than_it_can(taper: float, seed: int) -> None:
    fabric = clos(24, Wire(RATE), radix=8, tiers=2, oversubscription=(taper,))
    source, target = permutation(24, np.random.default_rng(seed))
    found = run(fabric, source, target, "adaptive")
    assert (found.link_peak_bytes_per_s <= fabric.link_bytes_per_s * (1 + 1e-9)).all()
    assert (found.link_bytes <= fabric.link_bytes_per_s * found.makespan_s * (1 + 1e-9)).all()
    assert found.num_stuck == 0


def test_a_slow_path_is_taken_last() -> None:
    """Four spines, of which one has a tenth: three flows out of a leaf take the others, and the fourth shares."""
    fabric = clos(32, Wire(RATE), radix=8, tiers=2)
    slow = fabric.link_bytes_per_s.copy()
    lame = fabric.num_hosts + int((fabric.node_tier == 1).sum())  # the first spine
    slow[(fabric.link_source == lame) | (fabric.link_target == lame)] = RATE / 10
    fabric = msgspec.structs.replace(fabric, link_bytes_per_s=slow)
    chips = np.arange(4, dtype=np.int32)
    assert run(fabric, chips[:3], chips[:3] + 8, "adaptive").makespan_s == pytest.approx(10.0)
    assert run(fabric, chips, chips + 8, "adaptive").makespan_s == pytest.approx(20.0)


def test_of_very_many_paths_some_are_looked_at() -> None:
    fabric = fat_tree(1024, Wire(RATE), radix=16)
    ways = spread(
        fabric, np.zeros(1, np.int32), np.array([1023], np.int32), "adaptive", np.random.default_rng(0)
    )
    assert ways.ways is not None
    assert ways.ways.num_flows == MOST_CHOSEN
    assert len({tuple(ways.ways.of(one).tolist()) for one in range(MOST_CHOSEN)}) == MOST_CHOSEN


@pytest.mark.parametrize("detail", ["symmetric", "full"])
def test_a_ring_over_servers_loses_nothing_to_hashing(detail: str) -> None:
    shelf = Catalog(user=False)
    adaptive, hashed = (
        dh.simulate_fabric(
            on="fat-tree", chips=128, routing=routing, detail=detail, catalog=shelf,
            job={"collective": "all-reduce", "size": "64MB"},
        )
        for routing in ("adaptive", "ecmp")
    )  # fmt: skip
    assert isinstance(adaptive, Answer)
    assert isinstance(hashed, Answer)
    assert adaptive.results["slowest_fraction"] == pytest.approx(1.0)
    assert float(adaptive.results["makespan_s"]) < float(hashed.results["makespan_s"])
