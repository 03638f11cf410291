"""A cause that takes several nodes at once takes a spare for each of them, and all come back together."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.reliability.checkpoint.tier import Cadence, CheckpointTier
from datahall.reliability.process import Cause, FailureProcess
from datahall.reliability.recovery import Recovery
from datahall.reliability.simulation.outcome import Runs
from datahall.reliability.simulation.simulate import simulate_runs

CATALOG = Catalog(user=False)

DAY_S = 86_400.0


def runs(num_nodes_lost: int, num_spares: int, mttf_s: float = 5 * DAY_S) -> Runs:
    """Thirty days of a job of 1,000 nodes that fails so often, each time of what takes so many nodes."""
    cause = Cause(
        name="rack", component="host", rate_per_node_day=DAY_S / mttf_s / 1000, survives="remote",
        num_nodes_lost=num_nodes_lost, repair_fraction=1.0, repair_median_s=3600.0, repair_sigma=0.1,
    )  # fmt: skip
    process = FailureProcess(
        preset=CATALOG.failure_preset("llama-3"), causes=(cause,), num_nodes=1000, num_node_chips=8
    )
    tier = CheckpointTier(name="remote", blocking_s=1.0, drain_s=0.0, load_s=0.0)
    return simulate_runs(
        process, [Cadence(tier=tier, interval_s=600.0, share_fraction=1.0)],
        Recovery(detect_s=60.0, reschedule_s=0.0, warmup_s=0.0, num_spares=num_spares),
        until_s=30 * DAY_S, goal_s=np.inf, num_runs=200, seed=1,
    )  # fmt: skip


@pytest.mark.parametrize("num", [1, 4, 18])
def test_all_nodes_of_a_failure_are_away_at_once(num: int) -> None:
    found = runs(num, 1000)
    failed = found.num_failures > 0
    away = found.runs["most_away"]
    assert failed.sum() > 150
    assert (away[failed] % num == 0).all()
    assert np.median(away[failed]) == num
    assert (away[~failed] == 0).all()


@pytest.mark.parametrize("num", [4, 18])
def test_one_spare_too_few_is_waited_for(num: int) -> None:
    """Every failure waits for the repair of an hour where one of its nodes has no spare; with all of them none does,
    but for those that come within the hour of another."""
    few, enough = runs(num, num - 1), runs(num, num)
    waited = few.lost_s("wait_s").sum() / few.num_failures.sum()
    assert waited == pytest.approx(3600.0, rel=0.05)
    assert enough.lost_s("wait_s").sum() < 0.05 * few.lost_s("wait_s").sum()
    num_more = few.num_failures.sum() - few.runs["num_waits"].sum()
    assert 0 <= num_more < 0.02 * few.num_failures.sum(), "one that comes in the wait of another prolongs it"
