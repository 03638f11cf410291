"""From jobs to flows: what each row carries, when it may start, and what hashing and loss leave."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fabric.oracle import unrolled
from tests.fabric.topologies import FAST, SMALL, WIRE

from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.fabric.collectives.algorithms import all_reduce
from datahall.fabric.collectives.algorithms.steps import DECOMPOSITIONS, Phase, phases
from datahall.fabric.flows.closed_form import closed_form_s
from datahall.fabric.flows.congestion import (
    Carrier,
    buffer_cycle,
    go_back_n_fraction,
    halving_fraction,
    headroom_bytes,
    pause_storm,
    paused_links,
    start_up_s,
    timeout_s,
    window_packets,
)  # fmt: skip
from datahall.fabric.flows.crosscheck import Crosscheck, JobTimes
from datahall.fabric.flows.jobs import Burst, Job, Net, Routing, latency_s, traffic
from datahall.fabric.flows.order import alike_order, full_order
from datahall.fabric.flows.simulate import simulate
from datahall.fabric.routing.paths import route
from datahall.fabric.routing.policies import MOST_SPRAYED, Spread, permutation, sharing, spread
from datahall.fabric.routing.pooling import pooled, pools
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Paths, Wire
from datahall.fabric.topology.grids.torus import torus
from datahall.fabric.topology.scale_up import with_scale_up

SHELF = Catalog(user=False)


TREE = fat_tree(16, Wire(10.0, 0.5))


def paths_of(*routes: list[int]) -> Paths:
    links = np.array([link for one in routes for link in one], np.int32)
    return Paths(links, np.cumsum([0, *(len(one) for one in routes)]))


def after_of(order: object, row: int) -> list[int]:
    return order.after[order.after_offsets[row] : order.after_offsets[row + 1]].tolist()


@given(st.sampled_from(sorted(DECOMPOSITIONS)), st.sampled_from([2, 4, 8]), st.integers(1, 3))
@settings(deadline=None)
def test_a_send_follows_the_last_round_of_its_sender(
    pair: tuple[str, str], num_ranks: int, repeat: int
) -> None:
    """Replay the rows: before a row may start, the last round that its sender had a part in has ended."""
    steps = phases(*pair, num_ranks, 1.0, 2)
    order = unrolled(full_order(steps, num_ranks, repeat, pause_s=0.5))
    needs: dict[int, set[int]] = {}
    for row in range(order.phase.size):
        needs[row] = set().union(*({one} | needs[one] for one in after_of(order, row)), set())
    touched: dict[int, list[int]] = {rank: [] for rank in range(num_ranks)}
    row = 0
    for turn in range(repeat):
        for index, phase in enumerate(steps):
            for turn_round in range(phase.num_rounds):
                while order.phase[row] != index:
                    assert order.phase[row] == -1  # a join
                    row += 1
                rows = np.arange(row, row + phase.source.size)
                assert (order.phase[rows] == index).all()
                assert order.member[rows].tolist() == list(range(rows.size))
                first = not turn_round
                wait_s = 0.5 if turn and not index and first else 0.0
                assert (order.wait_s[rows] == wait_s).all()
                for one, sender in zip(rows.tolist(), phase.source.tolist(), strict=True):
                    assert needs[one] >= set(touched[sender])
                    assert not any(need >= row for need in needs[one])
                for rank in {*phase.source.tolist(), *phase.target.tolist()}:
                    touched[rank] = rows[(phase.source == rank) | (phase.target == rank)].tolist()
                row += rows.size
    assert needs[order.phase.size - 1] >= set().union(*touched.values())


def test_crowded_ranks_meet_in_a_join() -> None:
    """Sixteen sends a rank: each rank's next send waits for one row, not for thirty."""
    steps = (*phases("all-to-all", "direct", 16, 1.0), *phases("all-to-all", "direct", 16, 1.0))
    order = full_order(steps, 16, repeat=1, pause_s=0.0)
    assert (np.diff(order.after_offsets)[240 + 16 : 240 + 16 + 240] == 1).all()
    assert (order.phase[240:256] == -1).all()
    ring = full_order(phases("all-gather", "ring", 16, 1.0), 16, repeat=1, pause_s=0.0)
    assert (order.phase == -1).sum() > (ring.phase == -1).sum() == 1


def test_a_phase_of_alike_rounds_is_one_row_a_flow_and_starts_after_the_last() -> None:
    steps = phases("all-reduce", "two-level", 8, 8.0, 4)
    order = alike_order(steps, repeat=2, pause_s=0.25)
    assert order.phase.tolist() == ([0] * 8 + [-1] + [1] * 8 + [-1] + [2] * 8 + [-1]) * 2
    assert order.num_rounds[[0, 9, 18]].tolist() == [3, 2, 3]
    assert after_of(order, 0) == []
    assert after_of(order, 8) == list(range(8))
    assert all(after_of(order, row) == [8] for row in range(9, 17))
    assert all(after_of(order, row) == [26] for row in range(27, 35))
    assert order.wait_s[27:35].tolist() == [0.25] * 8
    assert order.wait_s.sum() == 8 * 0.25


def send(source: int, target: int, size: float = 100.0, rounds: int = 1) -> tuple[Phase, ...]:
    return (
        Phase(
            name="x", source=np.array([source]), target=np.array([target]), num_bytes=size, num_rounds=rounds
        ),
    )


def job(hosts: list[int], steps: tuple[Phase, ...], **more: object) -> Job:
    return Job(name="x", hosts=np.array(hosts, np.int32), phases=steps, **more)


def test_a_flow_has_the_bytes_latency_and_software_of_all_its_rounds() -> None:
    """Six links of half a second; three rounds of 100 B, each with 2 s of software."""
    net = Net(fabric=TREE, routing=Routing("deterministic"))
    made = traffic(net, (job([0, 15], send(0, 1, rounds=3), message_s=2.0, start_s=7.0),))
    flows = made.flows
    assert flows.num_bytes.tolist() == [300.0, 0.0]
    assert flows.delay_s.tolist() == [3 * (3.0 + 2.0), 0.0]
    assert flows.start_s.tolist() == [7.0, 7.0]
    assert (made.source.tolist(), made.target.tolist(), made.phase.tolist()) == ([0, -1], [15, -1], [0, -1])
    assert flows.label.tolist() == [0, 0]
    assert simulate(flows, TREE.link_bytes_per_s).makespan_s == pytest.approx(7 + 15 + 30)
    full = traffic(net, (job([0, 15], send(0, 1, rounds=3), message_s=2.0),), level="full").flows
    assert full.num_bytes.tolist() == [100.0, 0.0]
    assert full.rounds.num_rounds.tolist() == [3, 1]
    assert simulate(full, TREE.link_bytes_per_s).makespan_s == pytest.approx(15 + 30)


@pytest.mark.parametrize(
    "how",
    [
        Carrier(),
        Carrier(transport=SHELF.transport("roce")),
        Carrier(transport=SHELF.transport("lossy"), loss_fraction=0.01),
    ],
    ids=lambda one: one.transport.name,
)
def test_background_is_sent_as_a_message_of_a_job_is(how: Carrier) -> None:
    """From one chip to another, as many bytes: it begins as slowly, and loses as much, whoever waits for it."""
    net = Net(fabric=TREE, routing=Routing("ecmp"), carrier=how)
    sent = traffic(net, (job([0, 15], send(0, 1)),)).flows
    burst = Burst(
        name="b", source=np.array([0], np.int32), target=np.array([15], np.int32), num_bytes=np.array([100.0]),
        start_s=np.zeros(1),
    )  # fmt: skip
    alone = traffic(net, (), (burst,)).flows
    assert alone.num_bytes.tolist() == pytest.approx(sent.num_bytes[:1].tolist())
    assert alone.delay_s.tolist() == pytest.approx(sent.delay_s[:1].tolist())
    assert (not how.transport.settles and not how.loss_fraction) == (alone.delay_s[0] == 3.0)


def test_a_flow_of_several_queue_pairs_is_cut_into_equal_parts() -> None:
    net = Net(fabric=TREE, routing=Routing("ecmp", 4))
    burst = Burst(
        name="b", source=np.array([3], np.int32), target=np.array([9], np.int32), num_bytes=np.array([80.0]),
        start_s=np.array([5.0]),
    )  # fmt: skip
    made = traffic(net, (job([0, 15], send(0, 1)),), (burst,))
    flows = made.flows
    assert flows.num_bytes.tolist() == [25.0] * 4 + [0.0] + [20.0] * 4
    assert flows.start_s.tolist() == [0.0] * 5 + [5.0] * 4
    assert flows.delay_s.tolist() == [3.0] * 4 + [0.0] + [3.0] * 4
    assert made.names == ("x", "b")
    assert flows.label.tolist() == [0] * 5 + [1] * 4
    assert made.source.tolist() == [0] * 4 + [-1] + [3] * 4
    assert np.diff(flows.after_offsets).tolist() == [0] * 4 + [4] + [0] * 4
    whole = traffic(
        Net(fabric=TREE, routing=Routing("deterministic", 4)), (job([0, 15], send(0, 1)),), (burst,)
    )
    assert whole.flows.num_bytes.tolist() == [100.0, 0.0, 80.0]


def test_two_jobs_wait_for_their_own_rows_only() -> None:
    net = Net(fabric=TREE, routing=Routing("deterministic"))
    steps = phases("all-gather", "ring", 4, 400.0)
    made = traffic(net, (job([0, 1, 2, 3], steps), job([4, 5, 6, 7], steps)), level="full")
    label = made.flows.label
    waits = np.repeat(np.arange(label.size), np.diff(made.flows.after_offsets))
    assert (label[made.flows.after] == label[waits]).all()
    assert (made.flows.after < waits).all()


def test_sprayed_packets_use_every_path_alike_and_cost_their_overhead() -> None:
    made = traffic(Net(fabric=TREE, routing=Routing("spray")), (job([0, 15], send(0, 1)),)).flows
    assert made.num_bytes[0] == pytest.approx(100 / 0.95)
    links = made.paths.of(0)
    levels = TREE.node_tier[TREE.link_source[links]] + TREE.node_tier[TREE.link_target[links]]
    whole = pooled(pools(TREE, "spray"), TREE.link_bytes_per_s)[links] / TREE.link_bytes_per_s[links]
    assert dict(zip(levels.tolist(), whole.tolist(), strict=True)) == {1: 1.0, 3: 2.0, 5: 4.0}
    assert made.delay_s[0] == pytest.approx(3.0)
    near = spread(
        TREE, np.array([0, 2], np.int32), np.array([1, 2], np.int32), "spray", np.random.default_rng(0)
    )
    assert near.paths.hops.tolist() == [2, 0]


def test_of_very_many_paths_some_are_taken_that_meet_every_switch_alike() -> None:
    grid = torus((8, 8, 8), WIRE, wrap=False)
    ways = spread(grid, np.array([0], np.int32), np.array([511], np.int32), "spray", np.random.default_rng(0))
    first = grid.link_source[ways.paths.links] == 0
    taken = ways.share_fraction[first]
    assert taken.sum() == pytest.approx(1.0)
    assert taken.tolist() == pytest.approx([1 / 3] * 3, abs=0.05)
    assert (ways.share_fraction * MOST_SPRAYED == np.round(ways.share_fraction * MOST_SPRAYED)).all()


def test_what_flows_get_is_told_as_mean_and_slowest_whole_and_striped() -> None:
    """Two flows of two parts; one part of the first shares its link with three others."""
    paths = paths_of([0], [1], [2], [2])
    found = sharing(Spread(paths=paths, num_parts=2, efficiency=0.5), np.array([8.0, 2.0, 4.0]), 10.0)
    assert found.mean_fraction == pytest.approx(0.5 * (10 + 4) / 2 / 10)
    assert found.slowest_fraction == pytest.approx(0.5 * 4 / 10)
    assert found.striped_mean_fraction == pytest.approx(0.5 * (4 + 4) / 2 / 10)
    assert found.striped_slowest_fraction == pytest.approx(0.5 * 4 / 10)


def test_in_a_permutation_everyone_sends_and_receives_once_at_most() -> None:
    source, target = permutation(50, np.random.default_rng(3))
    assert (source != target).all()
    assert np.unique(source).size == np.unique(target).size == source.size >= 45


def test_start_up_is_at_most_one_and_a_half_round_trips() -> None:
    trip = np.array([2.0])
    lost = [float(start_up_s(np.array([size]), 10.0, trip)[0]) for size in (0.0, 20.0, 25.0, 40.0, 1e6)]
    assert lost == pytest.approx([0.0, 0.0, 1.5 * 0.5, 3.0, 3.0])


def test_loss_is_paid_in_windows_and_timeouts() -> None:
    assert window_packets(10.0, 8.0, 4.0) == 20.0
    assert window_packets(1.0, 1.0, 4.0) == 1.0
    assert window_packets(4096.0, 3.0, 4096.0) == 3.0
    assert headroom_bytes(10.0, 3.0, 5.0) == 70.0
    assert headroom_bytes(0.0, 1.0, 4096.0) == 8192.0
    assert timeout_s(0.25, 8.0) == 2.0
    # by hand: of 100 packets one is lost, and the window of 11 goes again: 99 of 110
    assert go_back_n_fraction(0.01, 11.0) == pytest.approx(0.99 / 1.1)
    assert [go_back_n_fraction(p, 50.0) for p in (0.0, 1e-3, 1e-2)] == sorted(
        (go_back_n_fraction(p, 50.0) for p in (0.0, 1e-3, 1e-2)), reverse=True
    )
    lossy = Carrier(transport=SHELF.transport("tcp"), loss_fraction=0.01)
    effect = lossy.effect(np.ones(2), 8948.0, np.array([10.0, 30.0]))
    assert effect.efficiency == pytest.approx(halving_fraction(0.01, 2 * 20.0, 0.2 / 40.0))
    assert effect.message_s == pytest.approx(2e-3)
    assert effect.start_up_s.tolist() == [0.0, 0.0]
    assert lossy.effect(np.empty(0), 1.0, np.empty(0)).start_up_s.size == 0
    for bad in (-0.1, 1.0, 1.5):
        with pytest.raises(ScenarioError, match="a loss of"):
            Carrier(transport=SHELF.transport("lossy"), loss_fraction=bad)
    roce = Carrier(transport=SHELF.transport("roce")).effect(np.array([1e9]), 1.0, np.array([2.0]))
    assert roce.start_up_s[0] == pytest.approx(1.5 * 4.0)


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_a_pause_reaches_what_a_search_upstream_reaches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    routes = [rng.choice(9, rng.integers(1, 4), replace=False).tolist() for _ in range(5)]
    upstream = nx.DiGraph()
    upstream.add_nodes_from(range(9))
    for one in routes:
        upstream.add_edges_from((behind, before) for before, behind in pairwise(one))
    reached = {3} | nx.descendants(upstream, 3)
    assert set(paused_links(paths_of(*routes), 3, 9).tolist()) == reached
    waits = nx.DiGraph((before, behind) for one in routes for before, behind in pairwise(one))
    # what is left when links that wait for nobody, or nobody for them, are taken away again and again
    while loose := [node for node in waits if not waits.in_degree(node) or not waits.out_degree(node)]:
        waits.remove_nodes_from(loose)
    assert set(buffer_cycle(paths_of(*routes), 9).tolist()) == set(waits)


def test_a_storm_ends_with_the_watchdog_or_the_stall_whichever_is_first() -> None:
    paths, capacity = paths_of([0, 1], [0, 2]), np.array([5.0, 6.0, 7.0])

    def told(until_s: float) -> list[tuple[float, int, float]]:
        found = pause_storm(paths, 1, capacity, at_s=1.0, until_s=until_s, watchdog_s=2.0)
        return list(zip(found.at_s.tolist(), found.link.tolist(), found.bytes_per_s.tolist(), strict=True))

    assert told(9.0) == [(1.0, 0, 0.0), (1.0, 1, 0.0), (3.0, 0, 5.0), (9.0, 1, 6.0)]
    assert told(2.0) == [(1.0, 0, 0.0), (1.0, 1, 0.0), (2.0, 0, 5.0), (2.0, 1, 6.0)]
    assert told(np.inf) == [(1.0, 0, 0.0), (1.0, 1, 0.0), (3.0, 0, 5.0)]


def test_a_job_alone_takes_its_formula_as_often_as_it_repeats() -> None:
    """Sixteen ranks on their own leaf ports: 10 B/s, six hops of half a second at most."""
    net = Net(fabric=TREE, routing=Routing("deterministic"))
    steps = phases("all-gather", "ring", 16, 160.0)
    once = 15 * (3.0 + 2.0) + 15 * 10.0 / 10
    one = job(list(range(16)), steps, message_s=2.0, repeat=3, pause_s=4.0)
    assert closed_form_s(net, one) == pytest.approx(3 * once + 2 * 4)
    assert closed_form_s(net, job([0], ())) == 0.0
    every = job(list(range(16)), phases("all-to-all", "direct", 16, 160.0))
    # the ports serve the nearest ranks, one second away, before they hear from the farthest
    assert closed_form_s(net, every) == pytest.approx(1.0 + 15 * 10.0 / 10)
    down = job(list(range(16)), phases("broadcast", "tree", 16, 160.0))
    assert closed_form_s(net, down) == pytest.approx(
        (3.0 + 3.0 + 2.0 + 1.0) + 4 * 16.0
    )  # nearer ranks hear last


def test_two_levels_alone_are_one_when_the_other_is_empty() -> None:
    fabric = with_scale_up(fat_tree(16, Wire(10.0, 0.5)), 4, Wire(40.0, 0.125))
    net = Net(fabric=fabric, routing=Routing("deterministic"))

    def took(hosts: list[int], inside: int) -> float:
        steps = phases("all-reduce", "two-level", len(hosts), 160.0, inside)
        return closed_form_s(net, job(hosts, steps))

    assert took([0, 1, 2, 3], 4) == pytest.approx(6 * (0.25 + 1.0))
    assert took([0, 4, 8, 12], 1) == pytest.approx(6 * (3.0 + 4.0))
    assert took(list(range(16)), 4) == pytest.approx(6 * (0.25 + 1.0) + 6 * (3.0 + 1.0))


def test_a_difference_is_of_the_higher_level_from_the_lower() -> None:
    rows = (JobTimes("a", 2.0, 3.0), JobTimes("b", 4.0, 1.0), JobTimes("c", 0.0, 1.0))
    assert [row.difference_fraction for row in rows] == [0.5, -0.75, 0.0]
    assert Crosscheck(lower="closed-form", higher="full", jobs=rows).worst_fraction == 0.75
    assert Crosscheck(lower="closed-form", higher="full", jobs=()).worst_fraction == 0.0


def test_too_many_flows_are_counted_with_their_repeats_and_parts() -> None:
    steps = phases("all-gather", "ring", 16, 1.0)  # 16 flows, 15 rounds
    many = job(list(range(16)), steps, repeat=25_001)
    for level in ("symmetric", "full"):
        with pytest.raises(ScenarioError, match="6,000,016 flows; 6,000,000"):
            traffic(
                Net(fabric=TREE, routing=Routing("ecmp")),
                (job(list(range(16)), steps, repeat=375_001),),
                level=level,
            )
    with pytest.raises(ScenarioError, match="6,400,256 flows"):
        traffic(Net(fabric=TREE, routing=Routing("ecmp", 16)), (many,))
    burst = Burst(
        name="b", source=np.zeros(6_000_001, np.int32), target=np.zeros(6_000_001, np.int32),
        num_bytes=np.ones(1), start_s=np.zeros(1),
    )  # fmt: skip
    with pytest.raises(ScenarioError, match="6,000,001 flows"):
        traffic(Net(fabric=TREE, routing=Routing("ecmp")), (), (burst,))


@pytest.mark.parametrize("pair", sorted(DECOMPOSITIONS), ids="-".join)
@pytest.mark.parametrize("num_ranks", [2, 4, 8, 16])
def test_a_collective_delivers_what_it_promises(pair: tuple[str, str], num_ranks: int) -> None:
    """No rank may receive less than the data it lacks: what it takes in, over all rounds, is enough."""
    collective, _ = pair
    steps = phases(*pair, num_ranks, 1.0, 2)
    received = np.zeros(num_ranks)
    for step in steps:
        assert (step.source != step.target).all()
        assert step.num_rounds > 0
        np.add.at(received, step.target, step.num_bytes * step.num_rounds)
    least = {
        "all-reduce": 2 * (num_ranks - 1) / num_ranks, "all-gather": (num_ranks - 1) / num_ranks,
        "reduce-scatter": (num_ranks - 1) / num_ranks, "all-to-all": (num_ranks - 1) / num_ranks,
        "send-recv": 1.0,
    }  # fmt: skip
    if collective in least:
        assert received.sum() >= least[collective] * num_ranks * (1 - 1e-9)
    if collective == "broadcast":
        assert received.tolist() == [0.0] + [1.0] * (num_ranks - 1)
    if collective == "reduce":
        assert received.sum() == pytest.approx(num_ranks - 1)


def test_ranks_past_a_power_of_two_fold_in_and_out() -> None:
    steps = phases("all-reduce", "halving-doubling", 6, 8.0)
    assert [step.name for step in steps] == ["fold", "halve 2", "halve 1", "double 1", "double 2", "unfold"]
    assert [step.num_bytes for step in steps] == [8.0, 4.0, 2.0, 2.0, 4.0, 8.0]
    assert list(zip(steps[0].source.tolist(), steps[0].target.tolist(), strict=True)) == [(1, 0), (3, 2)]
    assert list(zip(steps[-1].source.tolist(), steps[-1].target.tolist(), strict=True)) == [(0, 1), (2, 3)]
    going = {0, 2, 4, 5}
    for step in steps[1:-1]:
        assert set(step.source.tolist()) == set(step.target.tolist()) == going


def test_chunks_and_crossovers_of_trees() -> None:
    """A hop of 1 s at 1 B/s and 16 ranks, so a tree of depth 4: 12 B are fastest in 6 chunks."""
    wire = {"hop_s": 1.0, "bytes_per_s": 1.0}
    assert all_reduce.best_chunks(12.0, 16.0, **wire) == pytest.approx(6.0)
    assert all_reduce.best_chunks(0.01, 16.0, **wire) == 1.0
    assert all_reduce.pipelined_tree_all_reduce_time(12.0, 16.0, **wire) == pytest.approx(2 * 9 * (1 + 2))
    hidden = all_reduce.two_level_all_reduce_time(
        16.0, 16.0, **wire, num_domain=4.0, across_hop_s=2.0, across_bytes_per_s=0.5, hidden=True
    )
    assert hidden == pytest.approx(6 + 12 + max(24.0, 12.0))


def test_latency_is_the_sum_along_the_way_and_the_mean_over_ways() -> None:
    fabric = SMALL["servers under a fat tree"]
    ends = np.array([0, 0], np.int32), np.array([1, 15], np.int32)
    one = Spread(paths=route(fabric, *ends))
    assert latency_s(fabric, one) == pytest.approx([2 * FAST.latency_s, 6 * WIRE.latency_s])
    assert latency_s(fabric, spread(fabric, *ends, "spray", np.random.default_rng(0))) == pytest.approx(
        [2 * FAST.latency_s, 6 * WIRE.latency_s]
    )
