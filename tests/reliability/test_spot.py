"""Spot capacity: runs on what 34 public traces give and take, as exponential times of their means."""

from __future__ import annotations

import csv
from math import exp, inf
from pathlib import Path

import pytest

from datahall.catalog import Catalog
from datahall.reliability.checkpoint.tier import Cadence, CheckpointTier
from datahall.reliability.process import Cause, FailureProcess
from datahall.reliability.recovery import Recovery
from datahall.reliability.simulation.outcome import Runs
from datahall.reliability.simulation.simulate import simulate_runs

CATALOG = Catalog(user=False)

HOUR_S, DAY_S = 3600.0, 86_400.0
TRACES = list(
    csv.DictReader((Path(__file__).parent / "spot_traces.csv").read_text(encoding="utf-8").splitlines())
)
TAKEN = [row for row in TRACES if int(row["times_taken"])]
NEVER = Cause(
    name="never", component="chip", rate_per_node_day=1e-12, survives="peer", repair_fraction=0.0,
    repair_median_s=0.0, repair_sigma=0.0,
)  # fmt: skip


def on_spot(up_s: float, down_s: float, restart_s: float, interval_s: float, blocking_s: float) -> Runs:
    """Runs of 200 days on one node that is taken away and comes back."""
    tier = CheckpointTier(name="remote", blocking_s=blocking_s, drain_s=0.0, load_s=0.0)
    return simulate_runs(
        FailureProcess(preset=CATALOG.failure_preset("llama-3"), causes=(NEVER,), num_nodes=1, num_node_chips=1),
        [Cadence(tier=tier, interval_s=interval_s, share_fraction=1.0)],
        Recovery(
            detect_s=0.0, reschedule_s=0.0, warmup_s=restart_s, preempted_every_s=up_s, back_s=down_s
        ),
        until_s=200 * DAY_S,
        goal_s=inf,
        num_runs=20,
        seed=0,
    )  # fmt: skip


def up_and_down(row: dict[str, str]) -> tuple[float, float]:
    """Mean times up and down that give the share of time up [s]."""
    up_s, share = float(row["mean_up_hours"]) * HOUR_S, float(row["up_percent"]) / 100.0
    return up_s, up_s * (1.0 / share - 1.0)


def test_the_traces_are_those_of_the_note() -> None:
    assert len(TRACES) == 34
    assert len(TAKEN) == 31, "three of Google's were never taken"


@pytest.mark.parametrize("row", TAKEN, ids=[row["trace"] for row in TAKEN])
def test_a_run_on_a_trace_has_its_capacity_and_keeps_what_the_formula_says(row: dict[str, str]) -> None:
    """As often taken as the trace counts, whose share of time up and mean time up are all that the run knows of it.

    A cycle is U up and D down; of U a restart R is lost, and half an interval.

    The mean work of a time up is what whole intervals of it there are after R:  e^(−R/U) · t / (e^((t+d)/U) − 1).
    """
    up_s, down_s = up_and_down(row)
    runs = on_spot(up_s, down_s, restart_s=180.0, interval_s=600.0, blocking_s=10.0)
    if (
        int(row["nodes"]) == 1
    ):  # of several, the trace counts when any or all were gone, and does not say which
        taken = runs.num_failures.sum() / runs.elapsed_s.sum() * float(row["days"]) * DAY_S
        assert taken == pytest.approx(int(row["times_taken"]), rel=0.1)
    cycles = runs.elapsed_s.sum() / (up_s + down_s)
    assert runs.num_failures.sum() == pytest.approx(cycles, rel=0.1), "what is gone is not taken again"
    work_s = exp(-180.0 / up_s) * 600.0 / (exp(610.0 / up_s) - 1.0)
    assert runs.ettr.mean() == pytest.approx(work_s / (up_s + down_s), rel=0.1)
