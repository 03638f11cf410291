"""The slowest of many: bounds against integrals and draws, slow hosts, and the same luck for the same seed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.events import stream
from datahall.training.pipeline.straggler import (
    Stragglers,
    expected_maximum,
    gaussian_excess,
    quantiles,
    slow_class_loss,
    slow_hosts,
    slow_share,
    stage_speeds,
)


@pytest.mark.parametrize(
    ("ranks", "exact"),
    [(1, 0.0), (2, 1 / math.sqrt(math.pi)), (3, 1.5 / math.sqrt(math.pi)), (10, 1.5387527)],
)
def test_the_expected_maximum_is_exact(ranks: int, exact: float) -> None:
    assert expected_maximum(ranks) == pytest.approx(exact, abs=1e-6)


@given(st.integers(2, 200_000))
def test_the_bound_is_above_the_expectation_and_close(ranks: int) -> None:
    assert 0.0 < expected_maximum(ranks) <= gaussian_excess(ranks)
    if ranks > 1000:
        assert expected_maximum(ranks) > 0.85 * gaussian_excess(ranks)


def test_draws_agree_with_the_integral() -> None:
    drawn = stream(3, "check").standard_normal((500, 1024)).max(axis=1)
    assert drawn.mean() == pytest.approx(expected_maximum(1024), abs=4 * drawn.std() / math.sqrt(500))


def speeds(
    who: Stragglers, *, replicas: int = 64, seed: int = 0, step: int = 0, chips: int = 8
) -> np.ndarray:
    return stage_speeds(
        who, num_replicas=replicas, num_stages=4, num_chips=chips, num_host_chips=8, seed=seed, step=step
    )


def test_a_group_is_as_slow_as_the_slowest_of_its_chips() -> None:
    who = Stragglers(jitter_fraction=0.02)
    drawn = np.stack([speeds(who, replicas=512, seed=seed) for seed in range(4)])
    expected = 1.0 + 0.02 * expected_maximum(8)
    assert drawn.mean() == pytest.approx(expected, abs=5 * drawn.std() / math.sqrt(drawn.size))
    most = np.array([speeds(who, replicas=512, seed=9, step=step).max() for step in range(40)])
    expected = 1.0 + 0.02 * expected_maximum(512 * 4 * 8)
    assert most.mean() == pytest.approx(expected, abs=5 * most.std() / math.sqrt(most.size))


def test_the_same_seed_gives_the_same_luck_and_a_step_its_own() -> None:
    who = Stragglers(slow_hosts_fraction=0.02, jitter_fraction=0.01)
    assert (speeds(who, seed=7) == speeds(who, seed=7)).all()
    assert not (speeds(who, seed=7) == speeds(who, seed=8)).all()
    assert not (speeds(who, seed=7, step=1) == speeds(who, seed=7)).all()


def test_slow_hosts_are_slow_in_every_step_and_as_many_as_asked() -> None:
    who = Stragglers(slow_hosts_fraction=0.05, slow_by_fraction=0.1)
    first = speeds(who)
    assert (first == speeds(who, step=5)).all()
    assert set(np.unique(first)) == {1.0, 1.1}
    assert int((first > 1).sum()) == round(0.05 * 4 * 64)
    assert int(slow_hosts(who, num_hosts=256, seed=0).sum()) == 13


def test_hosts_are_shared_by_small_groups_and_groups_span_hosts() -> None:
    who = Stragglers(slow_hosts_fraction=0.25)
    small = speeds(who, chips=2)  # four groups to a host: all of them slow, or none
    assert all(len(set(host)) == 1 for host in small.T.reshape(-1, 4).tolist())
    large = speeds(who, chips=32)  # four hosts to a group
    assert (large > 1).mean() > (speeds(who) > 1).mean()


def test_nobody_slow_is_one_everywhere() -> None:
    assert (speeds(Stragglers()) == 1.0).all()
    assert not Stragglers().any


@given(st.floats(0.0, 0.2), st.floats(0.0, 0.5), st.integers(1, 5000))
def test_a_slow_class_costs_at_most_its_slowness_and_more_with_more_hosts(f: float, s: float, n: int) -> None:
    assert 0.0 <= slow_class_loss(f, s, n) <= slow_class_loss(f, s, n + 1) + 1e-15 <= s + 1e-12


def test_megascale_did_not_lose_what_a_strict_barrier_would_cost() -> None:
    assert slow_class_loss(0.005, 0.1, 1536) == pytest.approx(0.1, rel=1e-3)
    share = slow_share(0.7 / 55.2, 0.1)
    assert slow_class_loss(0.005, 0.1, 1536, share) == pytest.approx(0.7 / 55.2, rel=1e-3)


def test_quantiles_are_the_same_compiled_and_not() -> None:
    many = stream(1, "u").random(5000)
    assert (quantiles(many)[:100] == quantiles(many[:100])).all()
