"""What storage is needed, where the time of two tiers goes, and how many nodes of a young fleet are away."""

from __future__ import annotations

from math import sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.planner.training.laid.job import laid_job
from datahall.reliability.checkpoint.account import plan_account, restarting_fraction, restarts_cost_most
from datahall.reliability.checkpoint.plan import CheckpointPlan
from datahall.reliability.checkpoint.storage import StorageNeed, storage_need
from datahall.reliability.checkpoint.tier import Cadence, CheckpointTier
from datahall.reliability.nodes.spares import nodes_away, spares_for
from datahall.reliability.process import FailureProcess, Nodes, process_of
from datahall.reliability.run import Run, run_of
from datahall.reliability.sections.goodput import goodput_of
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario
from datahall.units import DAY_S

CATALOG = Catalog(user=False)


def asked(**said: Any) -> Scenario:
    return read_names(
        form_of("simulate run"), {"model": "llama-3.1-405b", "chips": 16_384, "days": 30, **said}, CATALOG
    )


def run(**said: Any) -> Run:
    return run_of(asked(**said), laid_job(asked(**said)))


def need(**said: Any) -> StorageNeed:
    return storage_need(run(**said), asked(**said))


def test_what_storage_without_end_would_keep_is_what_a_run_with_it_keeps() -> None:
    """At 20 GB/s a copy is 280 s on its way, and again when it is read: a run on storage without limit saves both."""
    slow, endless = run(storage="20GB/s"), run(storage="1PB/s")
    more = need(storage="20GB/s").more_fraction
    assert more == pytest.approx(endless.plan.ettr - slow.plan.ettr, abs=1e-3)
    # of a copy every M = 3 h, 280 s to load and 280 s that the copy was behind
    assert more == pytest.approx(2 * slow.plan.last.tier.drain_s / slow.plan.mttf_s, rel=0.2)
    assert need(storage="1PB/s").more_fraction == pytest.approx(0.0, abs=1e-4)


def test_a_copy_is_written_in_the_interval_that_is_asked_or_best() -> None:
    size = run().job.size.total_bytes
    hourly = need(interval="1h")
    assert hourly.needs_bytes_per_s == pytest.approx(size / 3600)
    assert hourly.interval_s == 3600
    assert hourly.best_s == need().best_s == need().interval_s
    found = run()
    tier, mttf_s = found.plan.last.tier, found.plan.mttf_s
    assert need().best_s == pytest.approx(sqrt(2 * tier.blocking_s * mttf_s), rel=0.05), "Young's"


def test_storage_writes_while_the_run_goes_on_or_while_it_stands() -> None:
    """One that stops for its copies has written when it goes on: all of the stop, and not only what comes after it."""
    apart, stopped = need(storage="20GB/s"), need(storage="20GB/s", synchronous=True)
    tier = run(storage="20GB/s", synchronous=True).plan.last.tier
    assert apart.drain_s == pytest.approx(run(storage="20GB/s").plan.last.tier.drain_s)
    assert stopped.drain_s == pytest.approx(tier.blocking_s)
    assert stopped.drain_s > run(storage="20GB/s").job.size.total_bytes / 20e9


def test_the_time_of_two_tiers_by_hand() -> None:
    """A failure in 10,000 s; three of four fall back to a copy in 100 s, the last to one in 900 s that is 50 s behind.

    Lost are ¾ · 50 s and ¼ · (450 + 50) s of a failure: 37.5 and 125.
    """
    near = CheckpointTier(name="host", blocking_s=1.0, drain_s=0.0, load_s=10.0)
    far = CheckpointTier(name="remote", blocking_s=9.0, drain_s=50.0, load_s=30.0)
    plan = CheckpointPlan(
        cadences=(
            Cadence(tier=near, interval_s=100.0, share_fraction=0.75),
            Cadence(tier=far, interval_s=900.0, share_fraction=0.25),
        ),
        mttf_s=10_000.0,
        fixed_s=85.0,
    )
    made: Any = SimpleNamespace(plan=plan, job=SimpleNamespace(step_s=10.0))
    first, second = plan_account(made)
    assert (first.num_steps, second.num_steps) == (10.0, 90.0)
    assert restarting_fraction(plan) == pytest.approx(1e-2, rel=0.01)  # 85 + ¾ · 10 + ¼ · 30 = 100 s
    assert (first.blocking_fraction, second.blocking_fraction) == pytest.approx((0.01 * plan.ettr,) * 2)
    assert second.lost_fraction / first.lost_fraction == pytest.approx(125 / 37.5)
    assert first.lost_fraction == pytest.approx(37.5 / 10_000, rel=0.03)
    whole = plan.ettr + restarting_fraction(plan)
    whole += sum(one.blocking_fraction + one.lost_fraction for one in (first, second))
    assert whole == pytest.approx(1.0)


@pytest.mark.parametrize(("restart_s", "most"), [(290.0, False), (310.0, True)])
def test_restarts_cost_most_where_they_are_longer_than_half_an_interval(restart_s: float, most: bool) -> None:
    """Of 600 s between copies that cost nothing 300 are lost to a failure."""
    tier = CheckpointTier(name="remote", blocking_s=0.0, drain_s=0.0, load_s=0.0)
    plan = CheckpointPlan(
        cadences=(Cadence(tier=tier, interval_s=600.0, share_fraction=1.0),),
        mttf_s=10_000.0,
        fixed_s=restart_s,
    )
    assert restarts_cost_most(plan) == most


def away_between(process: FailureProcess, span_s: float) -> float:
    """Nodes that are away in the mean of a time, over four hundred moments of it."""
    edges = np.linspace(0.0, span_s, 401)
    return float(np.mean([nodes_away(process, moment) for moment in (edges[:-1] + edges[1:]) / 2]))


@pytest.mark.parametrize("days", [5.0, 20.0, 200.0])
def test_nodes_away_in_the_mean_of_a_run_are_those_of_all_its_moments(days: float) -> None:
    """New nodes: none is away when they start, and ever fewer fail."""
    process = process_of(CATALOG.failure_preset("llama-3"), CATALOG, 512, Nodes(num_chips=8, age_s=0.0))
    found = spares_for(process, 0.99, days * DAY_S)
    assert found.away_mean == pytest.approx(away_between(process, days * DAY_S), rel=4e-3)


def test_spares_of_a_plan_are_for_the_time_that_its_run_takes_with_interruptions() -> None:
    """Half of the time is lost to failures: a work of 5 days takes 10 or more, in which new nodes settle."""
    said = {"node_age": "0 s", "failure_rate": "0.03", "storage": "100GB/s"}
    found = goodput_of(asked(**said), run(**said), 5 * DAY_S)
    assert found.elapsed_s > 1.3 * 5 * DAY_S
    assert found.elapsed_s == pytest.approx(5 * DAY_S / found.ettr)
    assert found.spares.away_mean == pytest.approx(away_between(found.run.process, found.elapsed_s), rel=4e-3)
