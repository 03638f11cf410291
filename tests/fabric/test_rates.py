"""Max-min fair rates: the textbook's examples, the conditions that define them, and a linear program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from datahall.errors import ScenarioError
from datahall.fabric.flows.rates import fill, max_min_rates
from datahall.fabric.routing.paths import route
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Floats, Paths, Wire


def paths_of(*routes: list[int]) -> Paths:
    links = np.array([link for one in routes for link in one], np.int32)
    return Paths(links, np.cumsum([0, *(len(one) for one in routes)]))


@st.composite
def problems(draw: st.DrawFn) -> tuple[Paths, Floats, Floats, Floats]:
    """Random paths, capacities, weights and caps; some flows pass no link but then have a cap."""
    num_links = draw(st.integers(1, 7))
    routes = draw(
        st.lists(st.lists(st.integers(0, num_links - 1), max_size=4, unique=True), min_size=1, max_size=9)
    )
    amounts = st.floats(0.5, 20.0).map(lambda x: round(x, 2))
    capacity = draw(st.lists(st.one_of(st.just(0.0), amounts), min_size=num_links, max_size=num_links))
    weight = draw(st.lists(amounts, min_size=len(routes), max_size=len(routes)))
    cap = draw(st.lists(st.one_of(st.just(np.inf), amounts), min_size=len(routes), max_size=len(routes)))
    caps = [30.0 if not one and np.isinf(limit) else limit for one, limit in zip(routes, cap, strict=True)]
    return paths_of(*routes), np.array(capacity), np.array(weight), np.array(caps)


def lexicographic_levels(paths: Paths, capacity: Floats, weight: Floats, cap: Floats) -> Floats:
    """Raise the lowest level as far as a linear program can, fix who cannot rise further, repeat."""
    num_flows = paths.num_flows
    fixed = np.full(num_flows, np.nan)
    uses = np.zeros((capacity.size, num_flows))
    for flow in range(num_flows):
        uses[paths.of(flow), flow] += weight[flow]

    def best(goal: int | None, floor: float | None) -> float:
        """The highest common level of the free flows, or of one of them with the rest at `floor` or more."""
        free = np.isnan(fixed)
        bounds = [
            (0 if floor is None else floor, cap[f] / weight[f]) if free[f] else (fixed[f], fixed[f])
            for f in range(num_flows)
        ]
        cost = np.zeros(num_flows + 1)
        cost[num_flows if goal is None else goal] = -1
        rows = np.hstack([uses, np.zeros((capacity.size, 1))])
        limits = capacity.copy()
        if goal is None:
            above = np.zeros((int(free.sum()), num_flows + 1))
            above[np.arange(above.shape[0]), np.flatnonzero(free)] = -1
            above[:, num_flows] = 1
            rows, limits = np.vstack([rows, above]), np.concatenate([limits, np.zeros(above.shape[0])])
        answer = linprog(cost, A_ub=rows, b_ub=limits, bounds=[*bounds, (0, 1e9)], method="highs")
        assert answer.status == 0, answer.message
        return float(-answer.fun)

    while np.isnan(fixed).any():
        level = best(None, None)
        stuck = [
            f for f in np.flatnonzero(np.isnan(fixed)) if best(f, max(0.0, level - 1e-7)) <= level + 1e-4
        ]
        assert stuck
        fixed[stuck] = max(0.0, level - 1e-7)  # a hair inside, so that the next program has a solution
    return fixed


@given(problems())
@settings(max_examples=60, deadline=None)
def test_rates_equal_a_linear_program(problem: tuple[Paths, Floats, Floats, Floats]) -> None:
    paths, capacity, weight, cap = problem
    found = max_min_rates(paths, capacity, weight=weight, cap_bytes_per_s=cap)
    np.testing.assert_allclose(
        found / weight, lexicographic_levels(paths, capacity, weight, cap), atol=1e-3, rtol=1e-3
    )


@given(problems())
@settings(max_examples=300, deadline=None)
def test_no_link_is_over_full_and_every_flow_has_its_bottleneck(
    problem: tuple[Paths, Floats, Floats, Floats],
) -> None:
    paths, capacity, weight, cap = problem
    rates = max_min_rates(paths, capacity, weight=weight, cap_bytes_per_s=cap)
    used = np.bincount(paths.links, rates[paths.owners()], capacity.size)
    assert (used <= capacity * (1 + 1e-9) + 1e-12).all()
    level = rates / weight
    highest = np.zeros(capacity.size)
    np.maximum.at(highest, paths.links, level[paths.owners()])
    for flow in range(paths.num_flows):
        links = paths.of(flow)
        full = (used[links] >= capacity[links] * (1 - 1e-9) - 1e-12) & (
            level[flow] >= highest[links] * (1 - 1e-9)
        )
        assert full.any() or rates[flow] == pytest.approx(cap[flow])


def test_the_compiled_kernel_gives_what_the_interpreted_one_does() -> None:
    rng = np.random.default_rng(5)
    fabric = fat_tree(128, Wire(50e9))
    paths = route(fabric, rng.integers(0, 128, 300), rng.integers(0, 128, 300), rng.integers(0, 99, 300))
    assert paths.links.size < 2_000  # so that max_min_rates interprets
    found = max_min_rates(paths, fabric.link_bytes_per_s)
    rate, bottleneck = np.zeros(300), np.zeros(300, np.int32)
    every, slot = np.arange(300, dtype=np.int32), np.full(fabric.num_links, -1, np.int32)
    share, ones, caps = np.empty(0), np.ones(300), np.full(300, np.inf)
    ways = every, paths.links, paths.offsets[:-1], paths.offsets[1:]
    fill(*ways, share, fabric.link_bytes_per_s, ones, caps, slot, rate, bottleneck)
    np.testing.assert_array_equal(found, rate)
    assert (slot == -1).all()


def test_a_ring_on_a_fat_tree_has_full_rate() -> None:
    fabric = fat_tree(128, Wire(50e9))
    chips = np.arange(128)
    rates = max_min_rates(route(fabric, chips, (chips + 1) % 128), fabric.link_bytes_per_s)
    np.testing.assert_allclose(rates, 50e9)


def test_one_flow_over_two_paths_takes_half_of_each() -> None:
    both = Paths(np.array([0, 1, 2], np.int32), np.array([0, 3]))
    rates = max_min_rates(both, np.array([10.0, 4.0, 4.0]), share_fraction=np.array([1.0, 0.5, 0.5]))
    assert rates.tolist() == [8.0]


def test_a_blocked_flow_holds_back_the_victim_behind_it() -> None:
    # flows 0 and 1 meet on the slow link 1; flow 2 shares only link 0 with flow 0
    paths = paths_of([0, 1], [2, 1], [0, 3])
    capacity = np.array([10.0, 2.0, 10.0, 10.0])
    assert max_min_rates(paths, capacity).tolist() == [1.0, 1.0, 9.0]
    assert max_min_rates(paths, capacity, head_of_line=True).tolist() == [1.0, 1.0, 1.0]


def test_links_that_are_out_carry_nothing_and_flows_without_links_have_no_limit() -> None:
    rates = max_min_rates(paths_of([0], [1], []), np.array([0.0, 5.0]))
    assert rates.tolist() == [0.0, 5.0, np.inf]
    assert max_min_rates(paths_of([], []), np.array([1.0]), cap_bytes_per_s=3.0).tolist() == [3.0, 3.0]
    assert max_min_rates(paths_of(), np.array([1.0])).size == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capacity": np.array([-1.0, 1.0])}, "link 0 has a bandwidth of -1"),
        ({"capacity": np.array([1.0, np.nan])}, "link 1 has a bandwidth of nan"),
        ({"weight": np.array([1.0, 0.0])}, "weight of flow 1 is 0"),
        ({"weight": np.ones(3)}, "3 weights for 2 flows"),
        ({"cap_bytes_per_s": np.array([1.0, -2.0])}, "cap of flow 1 is -2"),
        ({"share_fraction": np.ones(9)}, "9 shares for 2 steps"),
        ({"capacity": np.array([1.0])}, "passes link 1; the fabric has 1"),
    ],
)
def test_what_cannot_be_solved_is_said(change: dict[str, Floats], message: str) -> None:
    capacity = change.pop("capacity", np.ones(2))
    with pytest.raises(ScenarioError, match=message):
        max_min_rates(paths_of([0], [1]), capacity, **change)


def test_two_links_that_are_nearly_as_full_end_two_levels() -> None:
    """19.5 shares of one link, 19 of the other, two of them of both: 0.5 / 19.5, then what is left over 17."""
    paths = paths_of([1], [0], [0, 1], [0, 1], [0])
    weight = np.array([17.5, 13.0, 1.0, 1.0, 4.0])
    found = max_min_rates(paths, np.array([0.5, 0.5]), weight=weight) / weight
    low = 0.5 / 19.5
    high = (0.5 - 2 * low) / 17
    assert found == pytest.approx([low, high, low, low, high])
