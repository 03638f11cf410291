"""Collectives as sends: they move the right bytes, deliver the right data, and agree with the closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.errors import ScenarioError
from datahall.fabric.collectives.algorithms import all_gather, all_reduce
from datahall.fabric.collectives.algorithms.steps import DECOMPOSITIONS, Phase, algorithms, phases
from datahall.fabric.flows.closed_form import closed_form_s
from datahall.fabric.flows.congestion import Carrier
from datahall.fabric.flows.jobs import Job, Net, Routing, traffic
from datahall.fabric.flows.order import alike_order, full_order
from datahall.fabric.flows.simulate import simulate
from datahall.fabric.flows.symmetry import simulate_folded
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Wire
from datahall.fabric.topology.scale_up import with_scale_up

FABRIC = with_scale_up(fat_tree(128, Wire(50e9, 0.5e-6)), 8, Wire(450e9, 0.2e-6))
NET = Net(fabric=FABRIC, routing=Routing("deterministic"), carrier=Carrier(virtual_lanes=2))


def moved_over_size(collective: str, algorithm: str, num_ranks: int) -> float:
    return sum(one.sent_bytes for one in phases(collective, algorithm, num_ranks, 1.0, 8))


@given(st.integers(2, 200))
def test_rings_send_what_the_textbook_says(num_ranks: int) -> None:
    others = num_ranks - 1
    assert moved_over_size("all-reduce", "ring", num_ranks) == pytest.approx(2 * others)
    assert moved_over_size("all-gather", "ring", num_ranks) == pytest.approx(others)
    assert moved_over_size("all-to-all", "direct", num_ranks) == pytest.approx(others)
    assert moved_over_size("all-to-all", "pairwise", num_ranks) == pytest.approx(others)
    assert moved_over_size("broadcast", "tree", num_ranks) == pytest.approx(others)
    assert moved_over_size("all-reduce", "tree", num_ranks) == pytest.approx(2 * others)


@pytest.mark.parametrize("num_ranks", [2, 8, 64])
def test_halving_and_doubling_send_as_little_as_a_ring(num_ranks: int) -> None:
    assert moved_over_size("all-reduce", "halving-doubling", num_ranks) == pytest.approx(2 * (num_ranks - 1))
    assert moved_over_size("reduce-scatter", "halving", num_ranks) == pytest.approx(num_ranks - 1)


def reached(steps: tuple[Phase, ...], num_ranks: int) -> np.ndarray:
    """knows[i, j]: something of rank j has come to rank i."""
    knows = np.eye(num_ranks, dtype=bool)
    for step in steps:
        for _ in range(step.num_rounds):
            before = knows.copy()
            for source, target in zip(step.source, step.target, strict=True):
                knows[target] |= before[source]
    return knows


@given(st.sampled_from(sorted(DECOMPOSITIONS)), st.sampled_from([2, 3, 5, 8, 11, 16]))
@settings(deadline=None)
def test_everybody_hears_from_everybody_who_matters(pair: tuple[str, str], num_ranks: int) -> None:
    collective, algorithm = pair
    if algorithm in {"doubling", "halving"} and num_ranks & (num_ranks - 1):
        num_ranks = 8
    knows = reached(phases(collective, algorithm, num_ranks, 1.0, 1 if num_ranks % 8 else 8), num_ranks)
    if collective == "broadcast":
        assert knows[:, 0].all()
    elif collective == "reduce":
        assert knows[0].all()
    elif collective != "send-recv":
        assert knows.all()


@pytest.mark.parametrize("pair", sorted(DECOMPOSITIONS), ids="-".join)
def test_the_levels_agree_where_nothing_is_in_the_way(pair: tuple[str, str]) -> None:
    """Closed form, symmetric flows and full flows of one job alone on a full-bisection network."""
    collective, algorithm = pair
    hosts = (
        np.arange(0, 128, 8, dtype=np.int32) if algorithm != "two-level" else np.arange(128, dtype=np.int32)
    )
    inside = 8 if algorithm == "two-level" else 1
    job = Job(name="x", hosts=hosts, phases=phases(collective, algorithm, hosts.size, 64e6, inside))
    symmetric = simulate_folded(traffic(NET, (job,)).flows, FABRIC.link_bytes_per_s).makespan_s
    full = simulate(traffic(NET, (job,), level="full").flows, FABRIC.link_bytes_per_s).makespan_s
    assert full == pytest.approx(symmetric, rel=1e-6)
    assert closed_form_s(NET, job) == pytest.approx(symmetric, rel=0.02)


def straight(size_bytes: float, num_ranks: float, *, hop_s: float, bytes_per_s: float) -> float:
    """n − 1 steps, each of an n-th of the array."""
    return (num_ranks - 1) * (hop_s + size_bytes / num_ranks / bytes_per_s)


TEXTBOOK = {
    ("all-reduce", "ring"): all_reduce.ring_all_reduce_time,
    ("all-reduce", "tree"): all_reduce.tree_all_reduce_time,
    ("all-reduce", "halving-doubling"): all_reduce.halving_doubling_all_reduce_time,
    ("all-gather", "ring"): straight,
    ("all-gather", "doubling"): all_gather.bruck_all_gather_time,
    ("reduce-scatter", "ring"): straight,
    ("reduce-scatter", "halving"): all_gather.bruck_all_gather_time,
    ("all-to-all", "pairwise"): straight,
    ("send-recv", "direct"): lambda size, _, hop_s, bytes_per_s: hop_s + size / bytes_per_s,
}


@pytest.mark.parametrize("pair", sorted(TEXTBOOK), ids="-".join)
@pytest.mark.parametrize("num_ranks", [2, 8, 16])
def test_where_every_way_is_alike_the_closed_form_is_the_textbooks(
    pair: tuple[str, str], num_ranks: int
) -> None:
    """Chips of one switch: two links of half a microsecond, 50 GB/s each."""
    net = Net(fabric=clos(16, Wire(50e9, 0.5e-6), radix=64), routing=Routing("deterministic"))
    job = Job(name="x", hosts=np.arange(num_ranks, dtype=np.int32), phases=phases(*pair, num_ranks, 64e6))
    wire = {"hop_s": 1e-6, "bytes_per_s": 50e9}
    expected = TEXTBOOK[pair](64e6, float(num_ranks), **wire)
    assert closed_form_s(net, job) == pytest.approx(float(expected), rel=1e-9)


@given(st.sampled_from(["all-reduce", "all-gather", "reduce-scatter"]), st.sampled_from([16, 24, 64, 128]))
def test_rings_use_every_port_of_a_domain_alike_and_stay_on_one_rail(collective: str, num_ranks: int) -> None:
    """Seven of eight messages of a rank stay inside; over each port goes one channel, out and in."""
    (step,) = phases(collective, "ring", num_ranks, 1.0, 8)
    far = step.source // 8 != step.target // 8
    assert np.bincount(step.source[far], minlength=num_ranks).tolist() == [1] * num_ranks
    assert np.bincount(step.target[far], minlength=num_ranks).tolist() == [1] * num_ranks
    assert np.bincount(step.source, minlength=num_ranks).tolist() == [8] * num_ranks
    if num_ranks // 8 % 2 == 0:
        assert (step.source[far] % 8 == step.target[far] % 8).all()
    for channel in np.split(np.arange(step.source.size), 8):  # each is one ring through all ranks
        after = dict(zip(step.source[channel].tolist(), step.target[channel].tolist(), strict=True))
        rank, met = 0, []
        for _ in range(num_ranks):
            met.append(rank)
            rank = after[rank]
        assert rank == 0
        assert sorted(met) == list(range(num_ranks))


def test_repeats_and_pauses_add_up() -> None:
    steps = phases("all-reduce", "ring", 16, 16e6)
    hosts = np.arange(0, 128, 8, dtype=np.int32)
    once, thrice = (
        Job(name="x", hosts=hosts, phases=steps, repeat=repeat, pause_s=1e-3) for repeat in (1, 3)
    )
    for level in ("symmetric", "full"):
        one, three = (
            simulate(traffic(NET, (job,), level=level).flows, FABRIC.link_bytes_per_s).makespan_s  # type: ignore[arg-type]
            for job in (once, thrice)
        )
        assert three == pytest.approx(3 * one + 2e-3, rel=1e-9)


def test_a_send_waits_for_the_last_round_of_its_sender_only() -> None:
    steps = phases("reduce", "tree", 4, 1.0)  # 1→0 and 3→2, then 2→0
    order = full_order(steps, 4, repeat=1, pause_s=0.0)
    rows = [order.after[order.after_offsets[i] : order.after_offsets[i + 1]].tolist() for i in range(3)]
    assert rows == [[], [], [1]]
    barrier = alike_order(steps, repeat=1, pause_s=0.0)
    assert barrier.phase.tolist() == [0, 0, -1, 1, -1]


@pytest.mark.parametrize(
    ("collective", "algorithm", "ranks", "message"),
    [
        ("all-reduce", "rong", 8, "did you mean ring"),
        ("allreduce", "ring", 8, "did you mean all-reduce"),
        ("all-gather", "doubling", 12, "nearest: 8 or 16"),
        ("all-reduce", "two-level", 12, "do not fill domains of 8"),
        ("all-reduce", "ring", 0, "collective of 0 ranks"),
    ],
)
def test_steps_that_do_not_exist_are_said(collective: str, algorithm: str, ranks: int, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        phases(collective, algorithm, ranks, 1.0, 8)
    with pytest.raises(ScenarioError, match="-1 bytes"):
        phases("all-reduce", "ring", 4, -1.0)


def test_one_rank_has_nothing_to_send() -> None:
    assert phases("all-reduce", "ring", 1, 1e9) == ()
    assert algorithms("all-to-all") == ("direct", "pairwise")
