"""The event loop gives what a slow loop gives that shares none of its code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fabric.oracle import fair_rates, played, use_of

from datahall.fabric.flows.rates import fill, hold_back, max_min_rates
from datahall.fabric.flows.simulate import NO_CHANGES, Changes, Flows, Run, simulate
from datahall.fabric.flows.symmetry import folded, mixed, simulate_folded
from datahall.fabric.topology.graph import Floats, Paths


def random_paths(rng: np.random.Generator, count: int, num_links: int, longest: int = 4) -> Paths:
    routes = [rng.choice(num_links, rng.integers(1, longest + 1), replace=False) for _ in range(count)]
    return Paths(np.concatenate(routes).astype(np.int32), np.cumsum([0, *map(len, routes)]))


def random_problem(seed: int, count: int, num_links: int, *, alike: bool = False) -> tuple[Flows, Floats]:
    """Flows with everything that a flow can have; `alike` draws from so few values that many are equal."""
    rng = np.random.default_rng(seed)
    paths = random_paths(rng, count, num_links)

    def drawn(values: list[float], size: int) -> Floats:
        return rng.choice(values, size) if alike else rng.uniform(min(values), max(values), size)

    waits = [
        rng.choice(flow, min(flow, 2), replace=False) if rng.random() < 0.4 else [] for flow in range(count)
    ]
    flows = Flows(
        paths=paths,
        num_bytes=np.where(rng.random(count) < 0.1, 0.0, drawn([1.0, 4.0], count)),
        start_s=drawn([0.0, 2.0], count),
        delay_s=drawn([0.0, 0.5], count),
        weight=drawn([0.25, 4.0], count),
        cap_bytes_per_s=np.where(rng.random(count) < 0.3, drawn([0.5, 2.0], count), np.inf),
        share_fraction=drawn([0.25, 1.0], paths.links.size),
        after=np.concatenate([np.empty(0), *waits]).astype(np.int32),
        after_offsets=np.cumsum([0, *map(len, waits)]),
    )  # fmt: skip
    return flows, drawn([1.0, 3.0], num_links)


def random_changes(seed: int, num_links: int) -> Changes:
    rng = np.random.default_rng(seed)
    down = np.sort(rng.uniform(0.0, 4.0, 5))
    links = rng.integers(0, num_links, 5)
    return Changes(
        np.append(down, np.full(num_links, 6.0)),
        np.append(links, np.arange(num_links)).astype(np.int32),
        np.append(rng.choice([0.0, 0.4, 5.0], 5), np.full(num_links, 2.0)),
    )


def same(run: Run, flows: Flows, capacity: Floats, changes: Changes, until_s: float = np.inf) -> None:
    seen = played(flows, capacity, changes, until_s)
    np.testing.assert_allclose(run.ready_s, seen.ready_s, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(run.end_s, seen.end_s, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(run.left_bytes, seen.left_bytes, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(run.link_bytes, seen.link_bytes, rtol=1e-6, atol=1e-6)
    # the peak may be of rates that the loop tried on its way to the fair ones
    assert (run.link_peak_bytes_per_s >= seen.link_peak_bytes_per_s * (1 - 1e-6)).all()
    assert (run.link_peak_bytes_per_s <= np.maximum(capacity.max(), 5.0) * (1 + 1e-6)).all()


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(4, 8), st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_small_run_is_the_slow_one(seed: int, count: int, num_links: int, whole: bool) -> None:
    flows, capacity = random_problem(seed, count, num_links)
    changes = random_changes(seed, num_links) if seed % 2 else NO_CHANGES
    run = simulate(flows, capacity, changes=changes, whole=whole)
    same(run, flows, capacity, changes)
    if whole:
        peak = played(flows, capacity, changes).link_peak_bytes_per_s
        np.testing.assert_allclose(run.link_peak_bytes_per_s, peak, rtol=1e-6, atol=1e-6)


@given(st.integers(0, 10**6), st.floats(0.0, 5.0))
@settings(max_examples=40, deadline=None)
def test_a_run_that_is_cut_off_has_moved_what_the_slow_one_has(seed: int, until_s: float) -> None:
    flows, capacity = random_problem(seed, 8, 5)
    changes = random_changes(seed, 5)
    same(simulate(flows, capacity, changes=changes, until_s=until_s), flows, capacity, changes, until_s)


@pytest.mark.parametrize("seed", range(3))
def test_a_large_run_is_the_slow_one(seed: int) -> None:
    """Large enough that the compiled loop plays it."""
    flows, capacity = random_problem(seed, 150, 40)
    changes = random_changes(seed, 40)
    same(simulate(flows, capacity, changes=changes), flows, capacity, changes)


@pytest.mark.parametrize("seed", range(4))
def test_alike_flows_are_folded_without_a_trace(seed: int) -> None:
    """Two copies of a small problem side by side: every class has two members at least."""
    flows, capacity = random_problem(seed, 10, 5, alike=True)
    changes = random_changes(seed, 5)
    twice = Flows(
        paths=Paths(
            np.concatenate([flows.paths.links, flows.paths.links + 5]).astype(np.int32),
            np.concatenate([flows.paths.offsets, flows.paths.offsets[1:] + flows.paths.links.size]),
        ),
        num_bytes=np.tile(flows.num_bytes, 2),
        start_s=np.tile(flows.start_s, 2),
        delay_s=np.tile(flows.delay_s, 2),
        weight=np.tile(flows.weight, 2),
        cap_bytes_per_s=np.tile(flows.cap_bytes_per_s, 2),
        share_fraction=np.tile(flows.share_fraction, 2),
        after=np.concatenate([flows.after, flows.after + 10]).astype(np.int32),
        after_offsets=np.concatenate([flows.after_offsets, flows.after_offsets[1:] + flows.after.size]),
        label=np.zeros(20, np.int32),
    )
    both = np.tile(capacity, 2)
    change = Changes(
        np.repeat(changes.at_s, 2),
        np.stack([changes.link, changes.link + 5], axis=1).ravel().astype(np.int32),
        np.repeat(changes.bytes_per_s, 2),
    )
    fold = folded(twice, both, change)
    assert fold.flows.num_flows <= 10
    assert fold.num_alike_flows.sum() == 20
    assert fold.num_alike_links.sum() == 10
    same(simulate_folded(twice, both, changes=change), twice, both, change)


def test_labels_weights_and_shares_keep_flows_apart() -> None:
    """Eight flows that are one class until something tells two of them from the others."""
    alike = Flows(paths=Paths(np.arange(8, dtype=np.int32), np.arange(9)), num_bytes=np.ones(8))
    odd = np.array([1.0] * 6 + [2.0] * 2)
    assert folded(alike, np.ones(8)).flows.num_flows == 1
    for name in ("num_bytes", "start_s", "delay_s", "weight", "cap_bytes_per_s", "share_fraction", "label"):
        columns = {
            "paths": alike.paths,
            "num_bytes": alike.num_bytes,
            name: odd.astype(int) if name == "label" else odd,
        }
        assert folded(Flows(**columns), np.ones(8)).flows.num_flows == 2, name
    assert folded(alike, odd).flows.num_flows == 2
    one_link = Changes(np.array([1.0]), np.array([3], np.int32), np.array([5.0]))
    assert folded(alike, np.ones(8), one_link).flows.num_flows == 2
    waits = Flows(
        paths=alike.paths, num_bytes=np.ones(8), after=np.array([0], np.int32),
        after_offsets=np.array([0] * 8 + [1]),
    )  # fmt: skip
    assert folded(waits, np.ones(8)).flows.num_flows == 2


def test_the_hash_of_colours_is_the_published_one() -> None:
    """The first outputs of SplitMix64 from state 0, as every library prints them."""
    golden = 0x9E3779B97F4A7C15
    with np.errstate(over="ignore"):
        found = [int(mixed(np.uint64(golden * turn % 2**64))) for turn in (1, 2, 3)]
    assert found == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.parametrize("seed", range(20))
def test_fair_rates_of_many_links_are_those_of_the_slow_way(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, num_links = int(rng.integers(20, 120)), int(rng.integers(5, 90))
    paths = random_paths(rng, count, num_links)
    capacity, share = rng.uniform(0.5, 9.0, num_links), rng.uniform(0.1, 1.0, paths.links.size)
    weight, cap = (
        rng.uniform(0.5, 4.0, count),
        np.where(rng.random(count) < 0.3, rng.uniform(0, 1, count), np.inf),
    )
    expected = fair_rates(use_of(paths, num_links, share), capacity, weight, cap)
    found = max_min_rates(paths, capacity, weight=weight, cap_bytes_per_s=cap, share_fraction=share)
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    if seed < 3:
        rate, bottleneck = np.zeros(count), np.zeros(count, np.int32)
        ends = paths.offsets[:-1], paths.offsets[1:]
        slot, every = np.full(num_links, -1, np.int32), np.arange(count, dtype=np.int32)
        fill(every, paths.links, *ends, share, capacity, weight, cap, slot, rate, bottleneck)
        np.testing.assert_array_equal(rate, found)
        table = (every, paths.links, *ends, num_links, weight, cap, rate, bottleneck)
        np.testing.assert_array_equal(hold_back(*table), hold_back.interpreted(*table))


def test_a_queue_holds_everything_behind_it_to_its_own_level() -> None:
    """One virtual lane.  Link 0 is shared by four flows; two of them wait for slow links further on."""
    routes = [[0, 1, 6], [1], [0, 3], [0, 4], [2, 4], [0, 5], [6]]
    paths = Paths(np.concatenate(routes).astype(np.int32), np.cumsum([0, *map(len, routes)]))
    capacity = np.array([100.0, 3.0, 100.0, 100.0, 1.0, 100.0, 50.0])
    weight = np.array([2.0, 1.0, 3.0, 1.0, 1.0, 1.0, 1.0])
    cap = np.array([np.inf] * 5 + [0.1, np.inf])
    free = max_min_rates(paths, capacity, weight=weight, cap_bytes_per_s=cap)
    # 3 B/s by weight on link 1, 1 B/s in halves on link 4; the rest is not in anybody's way
    np.testing.assert_allclose(free, [2.0, 1.0, 100 - 2 - 0.5 - 0.1, 0.5, 0.5, 0.1, 48.0])
    held = max_min_rates(paths, capacity, weight=weight, cap_bytes_per_s=cap, head_of_line=True)
    # flow 3 waits with half a byte a second per weight and holds link 0 to that; flow 1 takes what flow 0
    # leaves of link 1; flow 5 stays at its cap; link 6, behind the queue, is held by nobody
    np.testing.assert_allclose(held, [1.0, 2.0, 1.5, 0.5, 0.5, 0.1, 49.0])


@given(st.integers(0, 10**6), st.integers(2, 9))
@settings(max_examples=60, deadline=None)
def test_blocking_leaves_no_link_over_full_and_lets_nobody_pass_a_queue(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    paths = random_paths(rng, count, 6)
    capacity, weight = rng.uniform(1.0, 9.0, 6), rng.uniform(0.5, 4.0, count)
    free = max_min_rates(paths, capacity, weight=weight) / weight
    held = max_min_rates(paths, capacity, weight=weight, head_of_line=True) / weight
    use = use_of(paths, 6, None)
    assert (use @ (held * weight) <= capacity * (1 + 1e-9)).all()
    full = use @ (free * weight) >= capacity * (1 - 1e-9)
    highest = np.array([free[use[link] > 0].max(initial=0.0) for link in range(6)])
    for flow in range(count):
        links = paths.of(flow)
        queues = [
            i for i, link in enumerate(links) if full[link] and free[flow] >= highest[link] * (1 - 1e-9)
        ]
        if len(queues) == 1:
            for behind in links[: queues[0]]:
                assert (held[use[behind] > 0] <= free[flow] * (1 + 1e-9)).all()


def test_the_work_of_a_run_is_counted() -> None:
    """Two flows start and end, and a link changes twice: six events.

    Rates are solved when both start, when the first ends, and at the change that is felt; when the last ends
    and when an empty link changes nobody is left to solve for.
    """
    flows = Flows(paths=Paths(np.zeros(2, np.int32), np.arange(3)), num_bytes=np.array([10.0, 30.0]))
    alone = simulate(flows, np.array([10.0, 1.0]))
    assert (alone.num_events, alone.num_solves, alone.num_solved_flows) == (4, 2, 3)
    changes = Changes(np.array([1.0, 3.0]), np.array([1, 0], np.int32), np.array([5.0, 20.0]))
    run = simulate(flows, np.array([10.0, 1.0]), changes=changes)
    assert (run.num_events, run.num_solves, run.num_solved_flows) == (6, 3, 4)
    assert run.end_s.tolist() == [2.0, 3.5]
    nothing = Flows(paths=Paths(np.zeros(1, np.int32), np.arange(2)), num_bytes=np.zeros(1))
    assert simulate(nothing, np.ones(1)).num_events == 1
