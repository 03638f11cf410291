"""Collisions: case e11 of the research (8,192 hosts), spraying, and a closed form beside the solver."""

from __future__ import annotations

from math import exp, factorial

import numpy as np
import pytest

from datahall.errors import ScenarioError
from datahall.fabric.routing.ecmp import SPRAY_EFFICIENCY, Sharing, permutation, sharing, spread
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Wire

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
    found = sharing(spread(SMALL, source, target, "spray", rng), SMALL.link_bytes_per_s, LINE)
    assert found.mean_fraction == pytest.approx(SPRAY_EFFICIENCY)
    assert found.slowest_fraction == pytest.approx(SPRAY_EFFICIENCY)


def test_sprayed_shares_add_up_to_one_on_each_tier() -> None:
    rng = np.random.default_rng(0)
    source, target = permutation(128, rng)
    ways = spread(SMALL, source, target, "spray", rng)
    assert ways.share_fraction is not None
    leaving = SMALL.link_source[ways.paths.links] == source[ways.paths.owners()]
    total = np.bincount(ways.paths.owners()[leaving], ways.share_fraction[leaving], source.size)
    np.testing.assert_allclose(total, 1.0)


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
