"""Collisions: case e11 of the research (8,192 hosts), spraying, and a closed form beside the solver."""

from __future__ import annotations

from itertools import pairwise
from math import exp, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.errors import ScenarioError
from datahall.fabric.flows.failures import failed
from datahall.fabric.flows.rates import max_min_rates
from datahall.fabric.routing.paths import route
from datahall.fabric.routing.policies import (
    MOST_SPRAYED,
    SPRAY_EFFICIENCY,
    Sharing,
    _stride,
    permutation,
    sharing,
    spread,
)
from datahall.fabric.routing.pooling import pooled, pools
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Wire
from datahall.scenario.sections.failure import Failure
from datahall.scenario.words import Policy

LINE = 50e9
TREE = fat_tree(8192, Wire(LINE))
SMALL = fat_tree(128, Wire(LINE))


def measured(num_parts: int, seed: int = 1) -> Sharing:
    rng = np.random.default_rng(seed)
    source, target = permutation(8192, rng)
    return sharing(spread(TREE, source, target, "ecmp", rng, num_parts), TREE.link_bytes_per_s, LINE)


@pytest.mark.parametrize(
    ("num_parts", "mean", "striped"),
    [
        (1, 0.408, 0.408), (2, 0.562, 0.445), (4, 0.709, 0.493), (8, 0.824, 0.556), (16, 0.905, 0.624),
        (32, 0.952, 0.689), (64, 0.977, 0.753),
    ],
)  # fmt: skip
def test_a_permutation_of_8192_hosts_gets_what_was_measured(
    num_parts: int, mean: float, striped: float
) -> None:
    found = measured(num_parts)
    assert found.mean_fraction == pytest.approx(mean, abs=0.03)
    assert found.striped_mean_fraction == pytest.approx(striped, abs=0.03)
    assert found.slowest_fraction <= found.mean_fraction


def fullest(num_links: int) -> float:
    """Expected flows on the fullest of so many links that each carry a Poisson(1) number of them."""
    below = np.cumsum([exp(-1) / factorial(count) for count in range(60)])
    most = np.diff(np.append(0.0, np.minimum(below, 1.0) ** num_links))
    return float(most @ np.arange(60))


def test_the_slowest_flow_of_one_path_gets_a_seventh() -> None:
    slowest = np.mean([measured(1, seed).slowest_fraction for seed in range(8)])
    assert slowest == pytest.approx(0.143, abs=0.03)
    assert 1 / fullest(4 * 8192) == pytest.approx(slowest, abs=0.03)
    assert measured(64).slowest_fraction == pytest.approx(0.856, abs=0.04)


def test_spraying_gets_line_rate_less_its_overhead() -> None:
    rng = np.random.default_rng(0)
    source, target = permutation(128, rng)
    pool = pools(SMALL, "spray")
    ways = spread(SMALL, source, target, "spray", rng, pool=pool)
    found = sharing(ways, pooled(pool, SMALL.link_bytes_per_s), LINE)
    assert found.mean_fraction == pytest.approx(SPRAY_EFFICIENCY)
    assert found.slowest_fraction == pytest.approx(SPRAY_EFFICIENCY)


@pytest.mark.parametrize("num_hosts", [64, 2048, 8192])
def test_spraying_on_a_network_without_a_narrow_place_gets_line_rate_however_many_paths_there_are(
    num_hosts: int,
) -> None:
    """Every port at once, across the middle; up to 1,024 ways out of a pod, or 32 cables to one spine."""
    fabric = clos(num_hosts, Wire(LINE, 0.0), radix=64)
    half = np.arange(num_hosts, dtype=np.int32)
    pool = pools(fabric, "spray")
    far, rng = (half + num_hosts // 2) % num_hosts, np.random.default_rng(0)
    ways = spread(fabric, half, far, "spray", rng, pool=pool)
    found = sharing(ways, pooled(pool, fabric.link_bytes_per_s), LINE)
    assert found.slowest_fraction == pytest.approx(SPRAY_EFFICIENCY)
    assert found.mean_fraction == pytest.approx(SPRAY_EFFICIENCY)


@given(st.integers(2, 12), st.integers(2, 4), st.integers(0, 10_000))
def test_a_pool_is_all_links_between_a_subtree_and_the_next_level(half: int, pods: int, seed: int) -> None:
    fabric = clos(half * half * pods, Wire(1.0, 0.0), radix=2 * half, tiers=3)
    pool = pools(fabric, "spray")
    assert pool is not None
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, fabric.num_hosts, (2, 40)).astype(np.int32)
    apart = source != target
    source, target = source[apart], target[apart]
    one, other = (route(fabric, source, target, rng.integers(0, 2**40, source.size)) for _ in range(2))
    np.testing.assert_array_equal(pool[one.links], pool[other.links])  # whichever way it goes
    total = np.bincount(pool, fabric.link_bytes_per_s, fabric.num_links)
    stands = np.unique(pool)
    np.testing.assert_allclose(pooled(pool, fabric.link_bytes_per_s)[stands], total[stands])


def test_where_a_link_is_out_every_path_counts_by_itself() -> None:
    """Eight chips of two-port leaves and two spines: without one way up, one spine has all of what leaves that leaf,
    and of what comes to it; packets that went up to the other cannot come down there."""
    fabric = clos(8, Wire(LINE, 0.0), radix=4)
    up = np.flatnonzero((fabric.link_source == 8) & (fabric.link_target >= 12))
    broken = failed(fabric, Failure(links=(int(up[0]),)))
    assert pools(fabric, "spray") is not None
    assert pools(broken, "spray") is None
    ways = spread(
        broken, np.array([0, 1], np.int32), np.array([4, 5], np.int32), "spray", np.random.default_rng(0)
    )
    assert not np.isin(ways.paths.links, np.flatnonzero(broken.link_bytes_per_s == 0)).any()
    found = sharing(ways, broken.link_bytes_per_s, LINE)
    assert found.mean_fraction == pytest.approx(SPRAY_EFFICIENCY / 2)


def test_of_more_paths_than_are_taken_all_sources_together_meet_every_one() -> None:
    """1,024 ways out of a pod, of which a flow takes 256: with one link out elsewhere nobody loses more than a link."""
    fabric = clos(2048, Wire(LINE, 0.0), radix=64)
    down = int(fabric.num_links - 1)
    broken = failed(fabric, Failure(links=(down,)))
    pod = np.arange(1024, dtype=np.int32)
    ways = spread(broken, pod, pod + 1024, "spray", np.random.default_rng(0))
    found = sharing(ways, broken.link_bytes_per_s, LINE)
    assert found.mean_fraction > 0.8 * SPRAY_EFFICIENCY


def test_destination_routing_has_one_way_to_each_target() -> None:
    rng = np.random.default_rng(0)
    ways = spread(SMALL, np.array([40, 41], np.int32), np.array([3, 3], np.int32), "deterministic", rng)
    assert ways.paths.of(0)[-3:].tolist() == ways.paths.of(1)[-3:].tolist()


def test_the_same_seed_gives_the_same_paths() -> None:
    one, other = (measured(2, seed=9) for _ in range(2))
    assert one == other
    assert measured(2, seed=10) != one


def test_a_way_to_route_that_does_not_exist_is_said() -> None:
    ends = np.zeros(1, np.int32), np.ones(1, np.int32)
    with pytest.raises(ScenarioError, match="did you mean spray"):
        spread(SMALL, *ends, "sprai", np.random.default_rng(0))  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="0 paths per flow"):
        spread(SMALL, *ends, "ecmp", np.random.default_rng(0), 0)


@pytest.mark.parametrize("out", [(8,), (9,), (8, 9), (8, 10)])
@pytest.mark.parametrize("policy", ["spray", "adaptive"])
def test_every_way_that_a_failure_leaves_is_taken(policy: Policy, out: tuple[int, ...]) -> None:
    """Eight leaves under four spines: whichever spines are out, all others carry alike."""
    fabric = failed(clos(32, Wire(10.0), radix=8, tiers=2), Failure(switches=out))
    source, target = np.arange(32, dtype=np.int32), np.roll(np.arange(32, dtype=np.int32), 4)
    ways = spread(fabric, source, target, policy, np.random.default_rng(0))
    if policy == "adaptive":
        assert ways.ways is not None
        assert ways.ways_offsets is not None
        assert set(np.diff(ways.ways_offsets).tolist()) == {4 - len(out)}
        rows = [tuple(ways.ways.links[a:b].tolist()) for a, b in pairwise(ways.ways.offsets.tolist())]
        assert len(set(rows)) == len(rows)
        return
    assert ways.share_fraction is not None
    up = fabric.node_tier[fabric.link_target[ways.paths.links]] == 2
    np.testing.assert_allclose(ways.share_fraction[up], 1 / (4 - len(out)))


def test_packets_are_sprayed_by_the_width_of_the_paths() -> None:
    """Two spines, of which one keeps half: four chips that send out of their leaf get the whole cut, evenly."""
    fabric = failed(clos(16, Wire(10.0), radix=8, tiers=2), Failure(switches=(4,), left_fraction=0.5))
    chips = np.arange(4, dtype=np.int32)
    ways = spread(fabric, chips, chips + 4, "spray", np.random.default_rng(0))
    assert ways.share_fraction is not None
    leaving = fabric.node_tier[fabric.link_target[ways.paths.links]] == 2
    np.testing.assert_allclose(np.sort(ways.share_fraction[leaving][:4]), [1 / 6, 1 / 6, 1 / 3, 1 / 3])
    rates = max_min_rates(ways.paths, fabric.link_bytes_per_s, share_fraction=ways.share_fraction)
    np.testing.assert_allclose(rates, (2 * 10.0 + 2 * 5.0) / 4)


@given(st.integers(1, 20 * MOST_SPRAYED))
def test_steps_from_path_to_path_meet_every_one_of_them(num_paths: int) -> None:
    """Also where only some are taken at once: sources that begin elsewhere take the others."""
    (step,) = _stride(np.array([num_paths]), MOST_SPRAYED).tolist()
    assert len(set((np.arange(num_paths) * step % num_paths).tolist())) == num_paths
    assert (step == 1) or num_paths > MOST_SPRAYED
