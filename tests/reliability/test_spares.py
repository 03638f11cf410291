"""Nodes away for repair and spares that are enough, against sums and draws of another kind."""

from __future__ import annotations

from math import exp, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.reliability.nodes.pool import under_repair
from datahall.reliability.nodes.spares import away, enough, node_availability, nodes_away, spares_for
from datahall.reliability.process import FailureProcess, Nodes, process_of, shock
from datahall.units import DAY_S

CATALOG = Catalog(user=False)


@pytest.mark.parametrize(("nodes", "spares", "percent"), [(128, 3, 2.3), (2048, 20, 1.0), (12_500, 91, 0.7)])
def test_worked_cases(nodes: int, spares: int, percent: float) -> None:
    """Half of 3.79e-3 failures of a node per day need three days: 99 % of the time so many suffice."""
    found = enough({1: nodes * 3.79e-3 * 0.5 * 3}, 0.99)
    assert found.num == spares
    assert found.num / nodes * 100 == pytest.approx(percent, abs=0.05)


@given(mean=st.floats(0.01, 60), share=st.floats(0.5, 0.9999))
def test_spares_are_the_percentile_of_a_poisson(mean: float, share: float) -> None:
    found = enough({1: mean}, share)

    def below(most: int) -> float:
        return sum(exp(-mean) * mean**k / factorial(k) for k in range(most + 1))

    assert below(found.num) >= share - 1e-12
    assert found.num == 0 or below(found.num - 1) < share
    assert found.enough_fraction == pytest.approx(min(1.0, below(found.num)))


def test_racks_that_go_as_a_whole_are_drawn_alike() -> None:
    generator = np.random.default_rng(3)
    drawn = generator.poisson(6.0, 400_000) + 18 * generator.poisson(0.3, 400_000)
    found = enough({1: 6.0, 18: 0.3}, 0.99)
    assert found.num == pytest.approx(np.quantile(drawn, 0.99, method="inverted_cdf"), abs=1)
    assert found.away_mean == pytest.approx(drawn.mean(), rel=0.02)
    assert found.num > enough({1: 6.0 + 18 * 0.3}, 0.99).num, "as many nodes that go alone need fewer"


def test_number_away_does_not_depend_on_the_spread_of_repairs() -> None:
    """M/G/∞: repairs of the same mean, drawn log-normal and constant, leave as many away."""
    generator = np.random.default_rng(7)
    rate, mean, sigma, span = 4.0, 3.0, 1.2, 20_000.0
    starts = np.sort(generator.uniform(0.0, span, generator.poisson(rate * span)))
    times = generator.lognormal(np.log(mean) - sigma**2 / 2, sigma, starts.size)
    ends = np.sort(starts + times)
    at = np.arange(100.0, span, 7.0)
    counts = np.searchsorted(starts, at) - np.searchsorted(ends, at)
    assert counts.mean() == pytest.approx(rate * mean, rel=0.02)
    assert np.quantile(counts, 0.99) == pytest.approx(enough({1: rate * mean}, 0.99).num, abs=1)


def test_many_nodes_do_not_underflow() -> None:
    found = enough({1: 5000.0}, 0.99)
    assert 5000 + 2.2 * 5000**0.5 < found.num < 5000 + 2.5 * 5000**0.5
    assert 0.99 <= found.enough_fraction < 0.9915


def test_spares_grow_with_nodes_and_with_what_is_promised() -> None:
    preset = CATALOG.failure_preset("llama-3")
    by_size = [spares_for(process_of(preset, CATALOG, nodes), 0.99) for nodes in (16, 128, 2048, 12_500)]
    assert [one.num for one in by_size] == sorted(one.num for one in by_size)
    shares = [one.num / nodes for one, nodes in zip(by_size, (16, 128, 2048, 12_500), strict=True)]
    assert shares == sorted(shares, reverse=True), "fewer of the nodes the more there are"
    promised = [
        spares_for(process_of(preset, CATALOG, 2048), share).num for share in (0.5, 0.9, 0.99, 0.9999)
    ]
    assert promised == sorted(promised)


def test_a_tpu_host_is_up_as_often_as_its_fleet_says() -> None:
    """0.08 % of machines fail a day, of which 60 % need three days: up 99.86 % of the time."""
    up = node_availability(process_of(CATALOG.failure_preset("tpu-v4"), CATALOG, 1024))
    assert up == pytest.approx(1 - 8e-4 * 0.6 * 3, abs=1e-4)


def test_causes_without_repair_send_nobody_away() -> None:
    found = process_of(CATALOG.failure_preset("llama-3"), CATALOG, 2048)
    assert away(found)[1] == pytest.approx(
        2048
        * sum(
            one.rate_per_node_day * one.repair_fraction * one.repair_mean_s / 86400.0
            for one in found.causes
            if one.component not in ("software", "unknown")
        )
    )
    assert enough({}, 0.99).num == 0


def new(age_days: float | None, num_nodes: int = 512) -> FailureProcess:
    nodes = Nodes(num_chips=8, age_s=None if age_days is None else age_days * DAY_S)
    return process_of(CATALOG.failure_preset("llama-3"), CATALOG, num_nodes, nodes)


def test_spares_of_new_nodes_are_those_that_drawn_repairs_need() -> None:
    """Failures of 512 nodes drawn from their first day on, each repair by itself: who is away in the first 20 days."""
    found, generator, num_runs, days = new(0.0), np.random.default_rng(13), 3000, 20.0
    kinds = [one for one in found.causes if one.repair_fraction]
    moments = np.linspace(0.0, days, 41)[1:]
    drawn = np.zeros((num_runs, moments.size))
    for one in kinds:
        lived_days = 90.0 / found.early_shape * (days / 90.0) ** found.early_shape
        mean = 512 * one.rate_per_node_day * one.repair_fraction * lived_days
        for run, num in enumerate(generator.poisson(mean, num_runs)):
            start = days * generator.random(num) ** (1.0 / found.early_shape)
            back = start + generator.lognormal(np.log(one.repair_median_s / DAY_S), one.repair_sigma, num)
            drawn[run] += ((start[:, None] <= moments) & (back[:, None] > moments)).sum(axis=0)
    by_law = [nodes_away(found, moment * DAY_S) for moment in moments]
    assert by_law == pytest.approx(drawn.mean(axis=0), rel=0.03)
    spares = spares_for(found, 0.99, days * DAY_S)
    assert spares.num == pytest.approx(np.quantile(drawn, 0.99), abs=1)
    assert spares.away_mean == pytest.approx(drawn.mean(), rel=0.03)
    assert spares.num > spares_for(new(None), 0.99).num


def test_old_nodes_need_the_spares_of_those_whose_age_nobody_says() -> None:
    steady, old = new(None, 2048), new(20 * 365.0, 2048)
    assert nodes_away(old) == pytest.approx(nodes_away(steady), rel=0.005)
    assert spares_for(old, 0.99, 30 * DAY_S).num == spares_for(steady, 0.99).num


def test_what_nodes_share_is_repaired_as_often_however_new_they_are() -> None:
    """Rows of 32 nodes lose their power no more often while nodes are new, and their own failures do."""
    row = shock(0.5, 32, CATALOG)
    steady, young = (
        process_of(
            CATALOG.failure_preset("llama-3"), CATALOG, 512, Nodes(num_chips=8, age_s=age_s), shocks=[row]
        )
        for age_s in (None, 0.0)
    )
    months = 60 * DAY_S
    assert away(young, months)[32] == pytest.approx(away(steady)[32], rel=0.01)
    assert away(young, months)[1] > 1.05 * away(steady)[1]


def test_a_run_on_new_nodes_begins_with_nobody_away() -> None:
    """After five days of new nodes as many are in repair as of their whole life, and of those a month old fewer."""
    found = {age: under_repair(new(age), 5 * DAY_S)[1] for age in (0.0, 30.0, None)}
    assert found[0.0] == pytest.approx(away(new(0.0), 5 * DAY_S)[1], rel=1e-6)
    assert found[0.0] > 1.5 * found[30.0] > 1.5 * found[None]
    assert away(new(30.0), 5 * DAY_S)[1] > 1.1 * found[30.0]


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 2.0, float("nan"), 1 - 1e-12])
def test_a_share_that_spares_cannot_reach_is_refused(share: float) -> None:
    with pytest.raises(ScenarioError, match="spares cannot suffice"):
        enough({1: 3.0}, share)
