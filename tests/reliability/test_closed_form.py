"""The closed form of a run where each of its terms is large: beside events that know no formula, and by hand."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf
from types import SimpleNamespace
from typing import Any

import pytest

from datahall.catalog.entries.failures import Tier
from datahall.reliability.checkpoint.plan import CheckpointPlan, shares_of
from datahall.reliability.checkpoint.tier import Cadence, CheckpointTier
from datahall.reliability.closed_form import expected, is_short, stopped_s
from datahall.reliability.process import Cause, FailureProcess, mttf_s
from datahall.reliability.recovery import Recovery, interrupted
from datahall.reliability.run import Run, stopping
from datahall.reliability.simulation.simulate import simulate_runs

HOUR_S, DAY_S = 3600.0, 86_400.0
NODES = 100


def failing(
    every_h: float, survives: Tier = "peer", *, repair_h: float = 0.0, name: str = "it", sigma: float = 0.1
) -> Cause:
    """What one of a hundred nodes does so often; each time it is repaired for so long, or not at all."""
    return Cause(
        name=name, component="chip", rate_per_node_day=24.0 / every_h / NODES, survives=survives,
        repair_fraction=float(repair_h > 0), repair_median_s=repair_h * HOUR_S, repair_sigma=sigma,
    )  # fmt: skip


NEVER = failing(1e12)


def every(
    interval_s: float, blocking_s: float = 1.0, *, drain_s: float = 0.0, load_s: float = 0.0
) -> Cadence:
    tier = CheckpointTier(name="remote", blocking_s=blocking_s, drain_s=drain_s, load_s=load_s)
    return Cadence(tier=tier, interval_s=interval_s, share_fraction=1.0)


def back(**times: Any) -> Recovery:
    return Recovery(**{"detect_s": 0.0, "reschedule_s": 0.0, "warmup_s": 0.0, **times})


def a_run(causes: Sequence[Cause], recovery: Recovery, copies: Cadence) -> Run:
    """A hundred nodes with one tier of copies."""
    process = FailureProcess(preset="", causes=tuple(causes), num_nodes=NODES, num_node_chips=8)  # type: ignore[arg-type]
    meets = interrupted(process, recovery)
    stop = stopping(shares_of(meets.causes), recovery)[1]
    plan = CheckpointPlan(cadences=(copies,), mttf_s=mttf_s(meets) / stop, fixed_s=recovery.fixed_s)
    job: Any = SimpleNamespace(step_s=1.0)
    return Run(
        job=job, process=process, recovery=recovery, causes=meets.causes, tiers=(copies.tier,), plan=plan,
        mttf_s=mttf_s(meets),
    )  # fmt: skip


def taken(every_h: float, **times: Any) -> Recovery:
    """Capacity of any of the nodes is taken away so often."""
    return back(preempted_every_s=every_h * HOUR_S * NODES, **times)


OUT = (1.0, 0.75, 0.5, 0.25)
WHOLE_RUNS = {
    "it ends after one and a half of its intervals": (
        [failing(40)], back(warmup_s=600.0), every(40 * HOUR_S, 60.0, drain_s=1800.0), 60 * HOUR_S,
    ),
    "planned stops cut every other interval": (
        [failing(40)], back(warmup_s=600.0, planned_every_s=60 * HOUR_S, planned_s=6 * HOUR_S),
        every(40 * HOUR_S, 60.0, drain_s=1800.0), inf,
    ),
    "copies are hardly written out before the next": (
        [failing(10)], back(warmup_s=600.0, planned_every_s=30 * HOUR_S, planned_s=8 * HOUR_S),
        every(8 * HOUR_S, 60.0, drain_s=7 * HOUR_S), inf,
    ),
    "failures are noticed while a repair is waited for": (
        [failing(5, repair_h=3)], back(detect_s=2 * HOUR_S, warmup_s=60.0, num_spares=0), every(600.0), inf,
    ),
    "failures are noticed while capacity is waited for": (
        [NEVER], taken(10, detect_s=3 * HOUR_S, warmup_s=60.0, back_s=2 * HOUR_S), every(600.0), inf,
    ),
    "no hot spare stands in for capacity that is taken away": (
        [NEVER], taken(20, detect_s=60.0, reschedule_s=3 * HOUR_S, warmup_s=60.0, hot_spares=True, back_s=HOUR_S),
        every(600.0), inf,
    ),
    "some failures take one replica and others all": (
        [failing(5), failing(10, "remote", name="far")], back(warmup_s=3000.0, speeds=OUT, stall_s=60.0),
        every(600.0, load_s=3000.0), inf,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE_RUNS)
def test_where_a_term_is_large_the_simulation_has_it_too(name: str) -> None:
    causes, recovery, copies, until_s = WHOLE_RUNS[name]
    run = a_run(causes, recovery, copies)
    found = simulate_runs(
        run.process, run.plan.cadences, recovery, until_s=min(until_s, 300 * DAY_S), goal_s=inf,
        num_runs=3000 if until_s < inf else 80, seed=3,
    )  # fmt: skip
    kept = found.work_s.sum() / found.elapsed_s.sum()
    assert expected(run, until_s).ettr == pytest.approx(kept, abs=0.012)


def test_a_run_is_as_long_as_its_work_takes_while_repairs_become_more() -> None:
    """A repair of 20 h begins every 20 h, and nobody stands by: all are there e^(−a/20) of the time, then e^−1 of it.

    In 20 h that is 12.64, and in 20 more 7.36: work of 20 h is done after 40, and not after 20 / e^−1 = 54.
    """
    run = a_run([failing(20, repair_h=20, sigma=0.01)], back(num_spares=0), every(600.0))
    assert expected(run, inf, 20 * HOUR_S).ettr == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize(("notice_s", "is_saved"), [(60.0, True), (59.0, False)])
def test_notice_saves_a_copy_that_is_written_out_within_it(notice_s: float, is_saved: bool) -> None:
    """A copy stops the run for 10 s and is there 50 s later; it takes 30 s to read.  Two hours, hourly copies.

    Saved, each time costs 600 + 30 s, and 10 s for the copy: e^(−640/7200), and hourly copies leave 3600/3610.
    """
    run = a_run(
        [NEVER],
        taken(2, warmup_s=600.0, back_s=1e-3, notice_s=notice_s),
        every(3600.0, 10.0, drain_s=50.0, load_s=30.0),
    )
    saved = exp(-640 / 7200) * 3600 / 3610
    kept = expected(run).ettr
    assert kept == pytest.approx(saved, rel=1e-5) if is_saved else kept < saved - 0.2


def test_planned_stops_of_a_day_by_hand() -> None:
    """Every five hours of 24, at 5, 10, 15 and 20, for two hours each: a third."""
    run = a_run([NEVER], back(planned_every_s=5 * HOUR_S, planned_s=2 * HOUR_S), every(600.0))
    assert expected(run, DAY_S).leaves["planned"] == pytest.approx(2 / 3)


def test_a_stop_keeps_what_there_is_since_the_last_restart() -> None:
    """Failures every minute and copies every nine hours: a minute's work, of which a stop for a copy takes its part.

    Where a stop comes long before the next failure, the run would have kept the work anyway, but for one in so many.
    """
    assert stopped_s(every(9 * HOUR_S, HOUR_S), 60.0, inf) == pytest.approx(60 * 0.9)
    copies = every(HOUR_S, 10.0, drain_s=600.0)
    assert stopped_s(copies, DAY_S, DAY_S / 1000) == pytest.approx(
        stopped_s(copies, DAY_S, inf) / 1000, rel=1e-3
    )


@pytest.mark.parametrize(("hours", "is_few"), [(0.9, False), (1.1, True), (19.9, True), (20.1, False)])
def test_a_run_of_less_than_twenty_copies_is_a_short_one(hours: float, is_few: bool) -> None:
    """Of one that ends before its first copy there is nothing to be seen of an interval."""
    assert is_short(a_run([NEVER], back(), every(HOUR_S)), hours * HOUR_S) == is_few


def test_the_wall_rate_by_hand() -> None:
    """Every 10,000 s one: 400 s to come back, 100 s to read a copy that is 200 s late, and half of 1,800 s of work."""
    rare = a_run(
        [failing(10_000 / 3600)], back(warmup_s=400.0), every(1800.0, 90.0, drain_s=200.0, load_s=100.0)
    )
    assert expected(rare).wall_rate_ettr == pytest.approx((1 - 0.04 - 0.01 - 0.02 - 0.09) / 1.05)


def test_the_wall_rate_waits_for_capacity_that_was_taken_away() -> None:
    """Every other of the failures, 10,000 s apart, waits half an hour: 900 s in the mean beside 400 and 900."""
    both = a_run(
        [failing(20_000 / 3600)], taken(20_000 / 3600, warmup_s=400.0, back_s=1800.0), every(1800.0, 90.0)
    )
    assert expected(both).wall_rate_ettr == pytest.approx((1 - 0.04 - 0.09 - 0.09) / 1.05, rel=1e-6)


def test_the_wall_rate_counts_what_stops_the_whole_run() -> None:
    """Replicas are lost every hour and go on; capacity goes every 20,000 s and takes the run with it."""
    recovery = taken(20_000 / 3600, warmup_s=400.0, back_s=1800.0, speeds=OUT)
    run = a_run([failing(1)], recovery, every(1800.0, 90.0))
    found = expected(run)
    whole = (1 - (400 + 1800 + 900) / 20_000) / 1.05
    assert found.wall_rate_ettr == pytest.approx(whole * found.leaves["replicas"])
    assert found.leaves["replicas"] == pytest.approx(1 - 400 / 4 / 3600, rel=1e-3), (
        "a quarter for 400 s an hour"
    )


def test_the_wall_rate_of_a_run_that_loses_no_work_at_all() -> None:
    """All that stops it gives notice enough for a copy: no failure asks for the last one."""
    recovery = taken(2, warmup_s=600.0, back_s=1e-3, notice_s=600.0, speeds=OUT)
    run = a_run([failing(2)], recovery, every(600.0, 10.0, load_s=120.0))
    found = expected(run)
    kept = (1 - (600 + 120 + 10) / 7200) / (1 + 10 / 600)
    assert found.wall_rate_ettr == pytest.approx(kept * found.leaves["replicas"], rel=1e-5)


def test_the_wall_rate_has_no_hot_spare_for_capacity_that_was_taken_away() -> None:
    """Every 20 hours 60 + 60 s, an hour until it is back, three to move and five minutes of work."""
    run = a_run(
        [NEVER],
        taken(20, detect_s=60.0, reschedule_s=3 * HOUR_S, warmup_s=60.0, hot_spares=True, back_s=HOUR_S),
        every(600.0),
    )
    lost_s = 120 + 3600 + 3 * 3600 + 300
    assert expected(run).wall_rate_ettr == pytest.approx((1 - lost_s / 72_000) / (1 + 1 / 600), abs=1e-3)
