"""The flow simulation: small cases by hand, incremental against whole solves, folded against full, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.errors import ScenarioError
from datahall.fabric.flows.simulate import NO_CHANGES, Changes, Flows, Run, merged, simulate
from datahall.fabric.flows.symmetry import folded, simulate_folded
from datahall.fabric.routing.paths import route
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Fabric, Paths, Wire


def paths_of(*routes: list[int]) -> Paths:
    links = np.array([link for one in routes for link in one], np.int32)
    return Paths(links, np.cumsum([0, *(len(one) for one in routes)]))


def waits(*after: list[int]) -> dict[str, np.ndarray]:
    return {
        "after": np.array([flow for one in after for flow in one], np.int32),
        "after_offsets": np.cumsum([0, *(len(one) for one in after)]),
    }


TREE = fat_tree(128, Wire(1e9, 1e-6))


def random_flows(seed: int, count: int = 400, fabric: Fabric = TREE) -> Flows:
    """Flows of many sizes that come at many times, some after others."""
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, fabric.num_hosts, (2, count))
    depends = [
        rng.choice(flow, min(flow, 2), replace=False).tolist() if rng.random() < 0.3 else []
        for flow in range(count)
    ]
    return Flows(
        paths=route(fabric, source, target, rng.integers(0, 1000, count)),
        num_bytes=rng.exponential(1e6, count),
        start_s=rng.exponential(2e-3, count),
        delay_s=np.full(count, 3e-6),
        weight=rng.integers(1, 4, count).astype(float),
        cap_bytes_per_s=np.where(rng.random(count) < 0.2, 2e8, np.inf),
        **waits(*depends),
    )


def random_changes(seed: int, fabric: Fabric = TREE) -> Changes:
    rng = np.random.default_rng(seed)
    links = rng.choice(fabric.num_links, 20, replace=False).astype(np.int32)
    down = Changes(np.sort(rng.random(20)) * 4e-3, links, np.where(rng.random(20) < 0.5, 0.0, 3e8))
    return merged(down, Changes(np.full(20, 6e-3), links, np.full(20, 1e9)))


def same(one: Run, other: Run) -> None:
    np.testing.assert_allclose(one.end_s, other.end_s, rtol=1e-9)
    np.testing.assert_allclose(one.ready_s, other.ready_s, rtol=1e-9)
    np.testing.assert_allclose(one.link_bytes, other.link_bytes, rtol=1e-9, atol=1e-3)


def test_the_rest_speeds_up_when_one_ends() -> None:
    flows = Flows(paths=paths_of([0], [0, 1]), num_bytes=np.array([10.0, 30.0]))
    run = simulate(flows, np.array([10.0, 10.0]))
    assert run.end_s.tolist() == [2.0, 4.0]
    assert run.link_bytes.tolist() == [40.0, 30.0]
    assert run.link_peak_bytes_per_s.tolist() == [10.0, 10.0]
    assert run.slowest == 1


def test_a_flow_waits_for_others_and_for_its_latency() -> None:
    flows = Flows(
        paths=paths_of([0], [1], [0]),
        num_bytes=np.array([10.0, 20.0, 10.0]),
        delay_s=np.array([0.0, 0.0, 0.5]),
        **waits([], [], [0, 1]),
    )
    run = simulate(flows, np.array([10.0, 10.0]))
    assert run.ready_s.tolist() == [0.0, 0.0, 2.0]
    assert run.end_s.tolist() == [1.0, 2.0, 3.5]


def test_a_link_that_fails_stops_its_flow_until_the_repair() -> None:
    flows = Flows(paths=paths_of([0]), num_bytes=np.array([10.0]))
    out = Changes(np.array([0.5, 2.0]), np.zeros(2, np.int32), np.array([0.0, 5.0]))
    assert simulate(flows, np.array([10.0]), changes=out).end_s.tolist() == [3.0]
    for_good = Changes(np.array([0.5]), np.zeros(1, np.int32), np.zeros(1))
    run = simulate(flows, np.array([10.0]), changes=for_good)
    assert run.num_stuck == 1
    assert run.left_bytes.tolist() == [5.0]
    assert run.makespan_s == np.inf


def test_a_run_can_be_cut_off() -> None:
    flows = Flows(paths=paths_of([0], [0]), num_bytes=np.array([10.0, 10.0]), start_s=np.array([0.0, 5.0]))
    run = simulate(flows, np.array([10.0]), until_s=0.4)
    assert run.left_bytes.tolist() == [6.0, 10.0]
    assert run.link_bytes.tolist() == [4.0]


def test_flows_without_bytes_or_links_take_no_time() -> None:
    flows = Flows(paths=paths_of([0], []), num_bytes=np.array([0.0, 5.0]), **waits([], [0]))
    assert simulate(flows, np.array([1.0])).end_s.tolist() == [0.0, 0.0]
    assert simulate(Flows(paths=paths_of(), num_bytes=np.empty(0)), np.array([1.0])).makespan_s == 0.0


@pytest.mark.parametrize("seed", range(6))
def test_solving_only_what_an_event_can_reach_equals_solving_everything(seed: int) -> None:
    flows, changes = random_flows(seed), random_changes(seed)
    part = simulate(flows, TREE.link_bytes_per_s, changes=changes)
    whole = simulate(flows, TREE.link_bytes_per_s, changes=changes, whole=True)
    same(part, whole)
    assert part.num_solved_flows < whole.num_solved_flows / 2


@given(st.integers(0, 10_000), st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_bytes_are_conserved_and_nobody_beats_its_links(seed: int, count: int) -> None:
    flows = random_flows(seed, count)
    run = simulate(flows, TREE.link_bytes_per_s)
    passed = np.bincount(
        flows.paths.links, np.repeat(flows.num_bytes, np.diff(flows.paths.offsets)), TREE.num_links
    )
    np.testing.assert_allclose(run.link_bytes, passed, rtol=1e-9)
    assert (run.link_peak_bytes_per_s <= TREE.link_bytes_per_s * (1 + 1e-9)).all()
    alone = flows.num_bytes / np.minimum(flows.cap_bytes_per_s, 1e9)
    moving = np.diff(flows.paths.offsets) > 0
    assert (run.end_s[moving] - run.ready_s[moving] >= (alone[moving] + 3e-6) * (1 - 1e-9)).all()


def test_the_same_flows_give_the_same_run_to_the_bit() -> None:
    one, other = (
        simulate(random_flows(3), TREE.link_bytes_per_s, changes=random_changes(3)) for _ in range(2)
    )
    assert one.end_s.tobytes() == other.end_s.tobytes()
    assert one.num_events == other.num_events


def test_equal_flows_that_start_together_are_solved_once() -> None:
    """Those with the most end first, together with all that share their bottleneck; the rest never notices."""
    rng = np.random.default_rng(2)
    paths = route(TREE, *rng.integers(0, 128, (2, 2000)), rng.integers(0, 99, 2000))
    run = simulate(Flows(paths=paths, num_bytes=np.full(2000, 1e6)), TREE.link_bytes_per_s)
    assert run.num_solves == 1
    assert np.unique(run.end_s.round(12)).size > 50


def test_a_coarse_grain_saves_solves_and_costs_little() -> None:
    rng = np.random.default_rng(2)
    paths = route(TREE, *rng.integers(0, 128, (2, 2000)), rng.integers(0, 99, 2000))
    flows = Flows(paths=paths, num_bytes=rng.uniform(0.9e6, 1e6, 2000))
    exact = simulate(flows, TREE.link_bytes_per_s)
    coarse = simulate(flows, TREE.link_bytes_per_s, grain_fraction=0.01)
    assert coarse.num_solves < exact.num_solves / 3
    assert coarse.makespan_s == pytest.approx(exact.makespan_s, rel=0.03)
    np.testing.assert_allclose(coarse.link_bytes, exact.link_bytes)


def test_head_of_line_blocking_holds_in_the_simulation_too() -> None:
    flows = Flows(paths=paths_of([0, 1], [2, 1], [0, 3]), num_bytes=np.array([1.0, 1.0, 1.0]))
    capacity = np.array([10.0, 2.0, 10.0, 10.0])
    assert simulate(flows, capacity).end_s[2] == pytest.approx(1 / 9)
    assert simulate(flows, capacity, head_of_line=True).end_s[2] == pytest.approx(1.0)


def test_a_ring_of_128_folds_into_three_flows() -> None:
    chips = np.arange(128)
    flows = Flows(paths=route(TREE, chips, (chips + 1) % 128, chips), num_bytes=np.full(128, 1e6))
    fold = folded(flows, TREE.link_bytes_per_s)
    assert fold.flows.num_flows == 3
    same(simulate_folded(flows, TREE.link_bytes_per_s), simulate(flows, TREE.link_bytes_per_s))


@pytest.mark.parametrize("seed", range(4))
def test_folded_flows_run_as_all_of_them_do_with_failures_splitting_classes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chips = np.arange(128)
    next_chip = chips // 64 * 64 + (chips + 1) % 64
    flows = Flows(
        paths=route(TREE, chips, next_chip, chips),
        num_bytes=np.repeat([1e6, 3e6], 64),
        start_s=np.repeat([0.0, 5e-4], 64),
    )
    changes = Changes(np.array([8e-4]), rng.integers(0, 128, 1).astype(np.int32), np.array([2e8]))
    fold = folded(flows, TREE.link_bytes_per_s, changes)
    assert folded(flows, TREE.link_bytes_per_s).flows.num_flows < fold.flows.num_flows <= 9
    run = simulate(flows, TREE.link_bytes_per_s, changes=changes)
    same(simulate_folded(flows, TREE.link_bytes_per_s, changes=changes), run)


@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_is_alike_folding_changes_nothing(seed: int) -> None:
    flows, changes = random_flows(seed, 150), random_changes(seed)
    same(
        simulate_folded(flows, TREE.link_bytes_per_s, changes=changes),
        simulate(flows, TREE.link_bytes_per_s, changes=changes),
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"num_bytes": np.array([1.0, -1.0])}, "size of flow 1 is -1"),
        ({"num_bytes": np.array([1.0, np.nan])}, "size of flow 1 is nan"),
        ({"num_bytes": np.ones(3)}, "2 paths for 3 flows"),
        ({"num_bytes": np.ones(2), "start_s": np.array([0.0, -1.0])}, "start of flow 1 is -1"),
        ({"num_bytes": np.ones(2), "delay_s": np.ones(5)}, "5 values of delay for 2 flows"),
        ({"num_bytes": np.ones(2), **waits([7], [])}, "waits for flow 7; there are 2"),
        ({"num_bytes": np.ones(2), **waits([0])}, "one row per flow"),
        ({"num_bytes": np.ones(2), **waits([1], [0])}, "2 flows wait for each other"),
    ],
)
def test_what_cannot_be_played_is_said(columns: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        simulate(Flows(paths=paths_of([0], [0]), **columns), np.array([1.0]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (Changes(np.array([2.0, 1.0]), np.zeros(2, np.int32), np.ones(2)), "in order of time"),
        (Changes(np.array([1.0]), np.array([4], np.int32), np.ones(1)), "link 4 changes; the fabric has 1"),
        (Changes(np.array([1.0]), np.zeros(1, np.int32), -np.ones(1)), "bandwidth below 0"),
    ],
)
def test_changes_that_cannot_happen_are_said(changes: Changes, message: str) -> None:
    flows = Flows(paths=paths_of([0]), num_bytes=np.ones(1))
    with pytest.raises(ScenarioError, match=message):
        simulate(flows, np.array([1.0]), changes=changes)
    assert simulate(flows, np.array([1.0]), changes=NO_CHANGES).end_s.tolist() == [1.0]


def test_links_with_the_same_last_change_but_another_past_are_not_alike() -> None:
    """Both links are whole from 3 s on; the first was half as wide from 1 s, so its flow ends a second later."""
    flows = Flows(paths=Paths(np.array([0, 1], np.int32), np.arange(3)), num_bytes=np.array([50.0, 50.0]))
    changes = Changes(np.array([1.0, 3.0, 3.0]), np.array([0, 0, 1], np.int32), np.array([5.0, 10.0, 10.0]))
    run = simulate_folded(flows, np.array([10.0, 10.0]), changes=changes)
    assert run.end_s.tolist() == pytest.approx([6.0, 5.0])
