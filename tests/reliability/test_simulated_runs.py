"""Runs event by event: against closed forms that share nothing with them, by their books, and one rule at a time."""

from __future__ import annotations

from itertools import product
from math import exp, inf

import msgspec
import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.catalog.entries.failures import Tier
from datahall.reliability.checkpoint.tier import Cadence, CheckpointTier
from datahall.reliability.ettr import best_interval_s, renewal_ettr
from datahall.reliability.nodes.spares import free_fraction
from datahall.reliability.process import Cause, FailureProcess
from datahall.reliability.recovery import ANY_SIZE, ANY_SPARES, PREEMPTED, Recovery, interrupted
from datahall.reliability.simulation.loop import advance
from datahall.reliability.simulation.outcome import LOSSES, Runs
from datahall.reliability.simulation.simulate import new_state, played_again, simulate_runs

CATALOG = Catalog(user=False)

DAY_S = 86_400.0


def failing(
    mttf_s: float,
    *,
    survives: Tier = "peer",
    repair_fraction: float = 0.0,
    num_nodes: int = 1000,
    component: str = "chip",
) -> FailureProcess:
    """A job whose nodes fail of one thing, so often that the job does every `mttf_s`."""
    cause = Cause(
        name="it", component=component, rate_per_node_day=DAY_S / mttf_s / num_nodes, survives=survives,
        repair_fraction=repair_fraction, repair_median_s=3600.0, repair_sigma=0.5,
    )  # fmt: skip
    return FailureProcess(
        preset=CATALOG.failure_preset("llama-3"), causes=(cause,), num_nodes=num_nodes, num_node_chips=8
    )


def tier(
    name: Tier = "remote", blocking_s: float = 10.0, drain_s: float = 0.0, load_s: float = 0.0
) -> CheckpointTier:
    return CheckpointTier(name=name, blocking_s=blocking_s, drain_s=drain_s, load_s=load_s)


def every(interval_s: float, of: CheckpointTier | None = None) -> Cadence:
    return Cadence(tier=of or tier(), interval_s=interval_s, share_fraction=1.0)


def restart(restart_s: float, **more: float) -> Recovery:
    return msgspec.convert({"detect_s": restart_s, "reschedule_s": 0.0, "warmup_s": 0.0, **more}, Recovery)


def played(
    process: FailureProcess, plan: list[Cadence], recovery: Recovery, *, days: float = inf, goal_s: float = inf,
    num_runs: int = 200, seed: int = 0,
) -> Runs:  # fmt: skip
    return simulate_runs(
        process, plan, recovery, until_s=days * DAY_S, goal_s=goal_s, num_runs=num_runs, seed=seed
    )


GRID = list(
    product((0.3, 1.0, 3.1, 10.0, 50.0), (60.0, 300.0, 600.0, 1800.0, 3600.0), (0.5, 6.0, 20.0, 60.0))
)


@pytest.fixture(scope="module")
def differences() -> list[float]:
    """Closed form less simulation over a hundred cases: MTTF [h], restart [s], stop for a checkpoint [s]."""
    found = []
    for hours, restart_s, blocking_s in GRID:
        mttf_s = hours * 3600.0
        interval_s = best_interval_s(blocking_s, mttf_s)
        plan = [every(interval_s, tier(blocking_s=blocking_s))]
        runs = played(failing(mttf_s), plan, restart(restart_s), days=max(20.0, hours * 4), num_runs=60)
        found.append(renewal_ettr(interval_s, blocking_s, restart_s, mttf_s) - float(runs.ettr.mean()))
    return found


def test_closed_form_and_simulation_agree_within_a_point_over_a_hundred_cases(
    differences: list[float],
) -> None:
    assert len(differences) == 100
    assert max(map(abs, differences)) < 0.01
    assert abs(np.mean(differences)) < 0.002, "no bias either"


def test_llama_3_has_its_interruptions_and_its_effective_time() -> None:
    """54 days on 16,384 chips: 419 unexpected ones; restarts of 5 min and stops of 20 s leave 91.7 %."""
    mttf_s = 54 * DAY_S / 419
    plan = [every(best_interval_s(20.0, mttf_s), tier(blocking_s=20.0))]
    runs = played(failing(mttf_s), plan, restart(300.0), days=54.0, num_runs=400)
    assert runs.num_failures.mean() == pytest.approx(419, rel=0.01)
    assert runs.num_failures.std() == pytest.approx(419**0.5, rel=0.1), "Poisson"
    assert runs.ettr.mean() == pytest.approx(0.917, abs=0.002)


@pytest.mark.parametrize(
    "recovery",
    [
        restart(300.0),
        restart(300.0, planned_every_s=DAY_S, planned_s=3600.0),
        restart(300.0, silent_s=3600.0, bisect_s=600.0),
        restart(300.0, num_spares=0),
        restart(300.0, num_spares=2, hot_spares=True),
        restart(300.0, preempted_every_s=40 * DAY_S, back_s=900.0, notice_s=60.0),
        msgspec.structs.replace(restart(300.0), speeds=(1.0, 0.75, 0.5, 0.25), stall_s=5.0),
    ],
)
@pytest.mark.parametrize("component", ["chip", "corruption"])
def test_every_second_of_a_run_is_accounted_for(recovery: Recovery, component: str) -> None:
    process = failing(7200.0, repair_fraction=0.5, num_nodes=10, component=component)
    plan = [every(60.0, tier("peer", 0.1, 0.5, 1.0)), every(1200.0, tier("remote", 10.0, 100.0, 20.0))]
    runs = played(process, plan, recovery, days=10.0, num_runs=50)
    whole = runs.work_s + sum(runs.lost_s(name) for name in LOSSES)
    assert whole == pytest.approx(runs.elapsed_s, rel=1e-9)
    assert all((runs.lost_s(name) >= 0.0).all() for name in LOSSES)
    assert runs.counts.sum() == runs.num_failures.sum()


@pytest.mark.parametrize("age_s", [None, 0.0, 5e6])
def test_the_interpreter_plays_the_same_runs_as_machine_code(age_s: float | None) -> None:
    steady = new_nodes(failing(7200.0, repair_fraction=0.5, num_nodes=10))
    process = msgspec.structs.replace(steady, age_s=age_s, job_rate_per_day=3.0)
    plan = [every(60.0, tier("host", 0.1, 0.5, 1.0)), every(1200.0, tier("remote", 10.0, 100.0, 20.0))]
    recovery = restart(300.0, num_spares=1, planned_every_s=DAY_S, planned_s=600.0)
    outcomes = []
    for play in (advance.interpreted, advance):
        state = new_state(interrupted(process, recovery), plan, recovery, 3, 5)
        state.rules["until_s"], state.rules["goal_s"] = 2 * DAY_S, inf
        play(state, 0, 3)
        outcomes.append(state.runs.tobytes())
    assert outcomes[0] == outcomes[1]


def test_the_same_seed_is_the_same_luck_and_another_is_not() -> None:
    one, same, other = (
        played(failing(7200.0), [every(600.0)], restart(300.0), days=5.0, num_runs=20, seed=seed)
        for seed in (1, 1, 2)
    )
    assert (one.ettr == same.ettr).all()
    assert not (one.ettr == other.ettr).any()


def test_checkpoints_in_one_leap_are_those_one_by_one() -> None:
    """Nothing fails: each interval has its checkpoint, and the work is what they leave of the time."""
    runs = played(failing(1e12), [every(30.0, tier(blocking_s=0.5))], restart(0.0), days=1.0, num_runs=1)
    cycles = DAY_S / 30.5
    assert runs.lost_s("blocking_s")[0] == pytest.approx(0.5 * int(cycles), abs=0.51)
    assert runs.work_s[0] == pytest.approx(30.0 * cycles, abs=31.0)


def test_work_is_done_when_it_is_done() -> None:
    runs = played(failing(7200.0), [every(600.0)], restart(300.0), goal_s=5 * DAY_S, num_runs=50)
    assert runs.work_s == pytest.approx(5 * DAY_S)
    assert (runs.elapsed_s > 5 * DAY_S).all()
    kept = renewal_ettr(600.0, 10.0, 300.0, 7200.0)
    assert runs.ettr.mean() == pytest.approx(kept, abs=0.005)


def test_a_copy_counts_once_it_is_written_out() -> None:
    """A drain of nine tenths of an interval loses nearly that much more work with each failure."""
    lost = []
    for drain_s in (0.0, 900.0):
        plan = [every(1000.0, tier(blocking_s=0.001, drain_s=drain_s))]
        runs = played(failing(20_000.0), plan, restart(1.0), days=30.0)
        lost.append(runs.lost_s("lost_s").sum() / runs.num_failures.sum())
    assert lost[0] == pytest.approx(500.0, rel=0.05)
    assert lost[1] == pytest.approx(1400.0, rel=0.06)


@pytest.mark.parametrize(
    ("survives", "half_s"),
    [("device", 50.0), ("host", 50.0), ("peer", 1000.0), ("local", 1000.0), ("remote", 1000.0)],
)
def test_a_failure_falls_back_to_the_nearest_copy_that_it_leaves(survives: Tier, half_s: float) -> None:
    plan = [every(100.0, tier("host", 1e-6)), every(2000.0, tier("remote", 1e-6))]
    runs = played(failing(40_000.0, survives=survives), plan, restart(1.0), days=60.0)
    assert runs.lost_s("lost_s").sum() / runs.num_failures.sum() == pytest.approx(half_s, rel=0.06)


def test_a_copy_that_is_left_holds_what_it_held() -> None:
    """Nine of ten failures fall back to the host's copy; the tenth loses what there is since the remote one.

    With failures every M = t = 10,000 s that is M − t/(e^(t/M) − 1) in the mean, less than half of t.
    """
    near, far = (
        failing(1000.0 / share, survives=kind).causes[0] for share, kind in ((0.9, "host"), (0.1, "remote"))
    )
    process = FailureProcess(
        preset=CATALOG.failure_preset("llama-3"), causes=(near, far), num_nodes=1000, num_node_chips=8
    )
    plan = [every(10.0, tier("host", 1e-6)), every(10_000.0, tier("remote", 1e-6))]
    runs = played(process, plan, restart(1.0), days=60.0)
    by_cause = runs.counts.sum(axis=0)
    lost_s = runs.lost_s("lost_s").sum() - 5.0 * by_cause[0]
    assert by_cause[0] / by_cause[1] == pytest.approx(9.0, rel=0.05)
    assert lost_s / by_cause[1] == pytest.approx(10_000.0 * (1 - 1 / (exp(1.0) - 1)), rel=0.05)


def test_hot_spares_are_not_rescheduled_to_while_there_are_some() -> None:
    process = failing(7200.0, repair_fraction=0.5)
    recovery = msgspec.structs.replace(restart(60.0), reschedule_s=120.0)
    cold = played(process, [every(600.0)], recovery, days=10.0)
    hot = played(process, [every(600.0)], msgspec.structs.replace(recovery, hot_spares=True), days=10.0)
    none = msgspec.structs.replace(recovery, hot_spares=True, num_spares=0)
    assert cold.lost_s("reschedule_s").sum() / cold.num_failures.sum() == pytest.approx(120.0, rel=0.02)
    assert (hot.lost_s("reschedule_s") == 0.0).all()
    without = played(process, [every(600.0)], none, days=10.0)
    assert (without.lost_s("reschedule_s") > 0.0).all(), "what is waited for is not hot"


def test_a_failure_that_throws_a_run_back_undoes_the_corruption_since() -> None:
    """A copy every 100,000 s, failures every 2,000: each lands before whatever was corrupted, so nothing is found."""
    bad = failing(4000.0, survives="remote", component="corruption").causes[0]
    plain = failing(4000.0, survives="remote").causes[0]
    process = FailureProcess(
        preset=CATALOG.failure_preset("llama-3"), causes=(bad, plain), num_nodes=1000, num_node_chips=8
    )
    runs = played(process, [every(1e5)], restart(1.0, silent_s=2e5), days=20.0, num_runs=20)
    assert runs.runs["num_silent"].sum() > 1000
    assert (runs.lost_s("silent_s") == 0.0).all()


def test_drives_outlive_a_power_cut_and_not_their_node() -> None:
    lost = {}
    kinds: tuple[Tier, ...] = ("peer", "local")
    for survives in kinds:
        plan = [every(100.0, tier("local", 1e-6)), every(2000.0, tier("remote", 1e-6))]
        runs = played(failing(40_000.0, survives=survives), plan, restart(1.0), days=60.0)
        lost[survives] = runs.lost_s("lost_s").sum() / runs.num_failures.sum()
    assert lost["local"] == pytest.approx(50.0, rel=0.1)
    assert lost["peer"] == pytest.approx(1000.0, rel=0.06)


def test_spares_are_used_up_and_waited_for() -> None:
    """Repairs of about an hour for each failure, every two hours: without spares each is waited for."""
    process = failing(7200.0, repair_fraction=1.0)
    mean_s = process.causes[0].repair_mean_s
    none, some = (played(process, [every(600.0)], restart(60.0, num_spares=num), days=20.0) for num in (0, 8))
    assert (some.lost_s("wait_s") == 0.0).all()
    waits = none.lost_s("wait_s").sum() / none.num_failures.sum()
    assert 0.5 * mean_s < waits < mean_s, "a wait ends early where another failure begins the restart anew"
    assert none.ettr.mean() < some.ettr.mean() - 0.2


def test_the_number_in_repair_is_poisson() -> None:
    """M/G/∞: a failure every 600 s and repairs of a mean of 4,080 s have 6.8 away, at the worst of 10 days 17 or so."""
    process = failing(600.0, repair_fraction=1.0)
    runs = played(process, [every(100.0, tier(blocking_s=0.1))], restart(1.0), days=10.0, num_runs=50)
    away = process.causes[0].repair_mean_s / 600.0
    assert away + 3 * away**0.5 < runs.runs["most_away"].mean() < away + 6 * away**0.5


def test_planned_stops_lose_no_work() -> None:
    recovery = restart(0.0, planned_every_s=DAY_S, planned_s=7200.0)
    runs = played(failing(1e12), [every(600.0)], recovery, days=10.5, num_runs=1)
    assert runs.runs["num_planned"][0] == 10
    assert runs.lost_s("planned_s")[0] == pytest.approx(10 * 7200.0)
    assert runs.lost_s("lost_s")[0] == 0.0


@pytest.mark.parametrize("mttf_s", [3600.0, 7200.0, 1e6])
def test_a_planned_stop_lasts_to_its_end_whatever_fails_in_it(mttf_s: float) -> None:
    """Six hours a day, of which failures shorten none: 9 stops of 10 days are 54 h in every run."""
    recovery = restart(60.0, planned_every_s=DAY_S, planned_s=6 * 3600.0)
    runs = played(failing(mttf_s), [every(60.0, tier(blocking_s=0.1))], recovery, days=9.9, num_runs=50)
    assert (runs.runs["num_planned"] == 9).all()
    assert runs.lost_s("planned_s") == pytest.approx(54 * 3600.0)


def test_more_failures_never_make_a_run_better() -> None:
    recovery = restart(60.0, planned_every_s=DAY_S, planned_s=6 * 3600.0)
    kept = [
        float(played(failing(one), [every(300.0, tier(blocking_s=1.0))], recovery, days=30.0).ettr.mean())
        for one in (1e6, 1e5, 2e4, 7200.0, 3600.0)
    ]
    assert kept == sorted(kept, reverse=True)
    assert 0.74 < kept[0] < 0.76


def test_a_node_that_fails_in_a_planned_stop_is_waited_for_only_beyond_it() -> None:
    """Repairs of an hour or so, without spares: in stops of six hours only those of the last hour are waited for."""
    process = failing(4 * 3600.0, repair_fraction=1.0)
    stops = restart(0.0, planned_every_s=8 * 3600.0, planned_s=6 * 3600.0, num_spares=0)
    runs = played(process, [every(60.0, tier(blocking_s=0.1))], stops, days=30.0)
    without = restart(0.0, num_spares=0)
    always = played(process, [every(60.0, tier(blocking_s=0.1))], without, days=30.0)
    waits, all_waits = (float(one.lost_s("wait_s").mean()) for one in (runs, always))
    assert 0.2 * all_waits < waits < 0.5 * all_waits
    whole = runs.work_s + sum(runs.lost_s(name) for name in LOSSES)
    assert whole == pytest.approx(runs.elapsed_s, rel=1e-9)


def test_a_replica_on_a_hot_spare_is_not_rescheduled() -> None:
    """Spares without end: that rescheduling would take four hours is the same as none."""
    process, plan = failing(20_000.0), [every(10_000.0, tier(blocking_s=1e-6))]
    hot = msgspec.structs.replace(restart(600.0), speeds=(1.0, 0.75, 0.5, 0.25), hot_spares=True)
    kept = [
        float(played(process, plan, msgspec.structs.replace(hot, reschedule_s=one), days=60.0).ettr.mean())
        for one in (0.0, 4 * 3600.0)
    ]
    assert kept[0] == kept[1] == pytest.approx(1 - 600.0 / 4 / 20_000.0, abs=5e-4)


def test_replicas_go_on_without_one() -> None:
    """Four replicas, of which a failure takes one for the restart: a quarter of the throughput, and a stall."""
    recovery = msgspec.structs.replace(restart(600.0), speeds=(1.0, 0.75, 0.5, 0.25), stall_s=5.0)
    runs = played(failing(20_000.0), [every(10_000.0, tier(blocking_s=1e-6))], recovery, days=60.0)
    assert runs.ettr.mean() == pytest.approx(1 - (5.0 + 600.0 / 4) / 20_000.0, abs=5e-4)
    assert (runs.lost_s("lost_s") == 0.0).all()


def test_what_takes_more_than_a_replica_stops_all() -> None:
    recovery = msgspec.structs.replace(restart(600.0), speeds=(1.0, 0.75), stall_s=5.0)
    runs = played(failing(20_000.0, survives="remote"), [every(1000.0)], recovery, days=20.0)
    assert (runs.lost_s("detect_s") > 0.0).all()
    assert (runs.lost_s("degraded_s") == 0.0).all()


def test_corruption_that_is_found_late_costs_what_was_done_since() -> None:
    """Half an interval and the delay, with each: 600/2 + 7,200 s."""
    process = failing(400_000.0, survives="remote", component="corruption")
    runs = played(
        process,
        [every(600.0, tier(blocking_s=1e-6))],
        restart(0.0, silent_s=7200.0, bisect_s=900.0),
        days=200.0,
    )
    num = runs.runs["num_silent"].sum()
    assert runs.lost_s("silent_s").sum() / num == pytest.approx(7500.0, rel=0.03)
    assert runs.lost_s("detect_s").sum() / num == pytest.approx(900.0, rel=0.03), "to find the device"


def new_nodes(steady: FailureProcess) -> FailureProcess:
    """The same on the day they are built."""
    causes = tuple(msgspec.structs.replace(one, ages=True) for one in steady.causes)
    return msgspec.structs.replace(steady, causes=causes, age_s=0.0, early_span_s=30 * DAY_S, early_shape=0.5)


def test_new_nodes_fail_more_often_until_they_have_settled() -> None:
    """A Weibull hazard with k = 0.5 up to 30 days: H(30 d) is 60 steady days."""
    steady = failing(10_000.0)
    young = new_nodes(steady)
    plan = [every(1000.0)]
    old, new = (played(one, plan, restart(1.0), days=30.0, num_runs=100) for one in (steady, young))
    assert new.num_failures.mean() / old.num_failures.mean() == pytest.approx(2.0, rel=0.03)
    late = msgspec.structs.replace(young, age_s=31 * DAY_S)
    assert played(late, plan, restart(1.0), days=30.0).num_failures.mean() == pytest.approx(
        old.num_failures.mean(), rel=0.02
    )


def test_jobs_fail_and_are_preempted_as_often_on_new_nodes_as_on_old_ones() -> None:
    """In 30 days, of 1,000 nodes: theirs 2 · 259.2 times, the job by itself 5 · 30, preempted 30 · 24 · 1000 / 8000."""
    young = msgspec.structs.replace(new_nodes(failing(10_000.0)), job_rate_per_day=5.0)
    runs = played(young, [every(1000.0)], restart(1.0, preempted_every_s=8000 * 3600.0), days=30.0)
    assert [one.name for one in runs.causes] == ["it", ANY_SIZE, PREEMPTED]
    assert runs.counts.mean(axis=0) == pytest.approx([518.4, 150.0, 90.0], rel=0.03)


def test_a_cause_more_interrupts_a_run_on_new_nodes_more_often() -> None:
    alone = new_nodes(failing(10_000.0))
    on_top = failing(50_000.0, survives="remote", component="shock").causes
    both = msgspec.structs.replace(alone, causes=(*on_top, *alone.causes))
    few, more = (
        played(one, [every(1000.0)], restart(300.0), days=30.0).num_failures.mean() for one in (alone, both)
    )
    assert more - few == pytest.approx(30 * DAY_S / 50_000.0, rel=0.15)


def test_notice_saves_the_work_of_capacity_that_is_taken() -> None:
    process = failing(1e12)
    lost = []
    for notice_s in (0.0, 120.0, 22.0):
        recovery = restart(60.0, preempted_every_s=4e6, back_s=600.0, notice_s=notice_s)
        runs = played(process, [every(1200.0, tier(blocking_s=5.0, drain_s=20.0))], recovery, days=10.0)
        lost.append(float(runs.lost_s("lost_s").mean()))
    assert lost[1] < 0.05 * lost[0]
    assert lost[2] == lost[0], "5 s to leave the chips and 20 s to be safe are more than 22 s"


def test_a_curve_of_progress_ends_where_its_run_does() -> None:
    runs = played(failing(7200.0), [every(600.0)], restart(300.0), days=5.0, num_runs=21)
    run = runs.typical
    before = runs.runs[run].copy()
    points = played_again(runs, run)
    assert points[-1].tolist() == [before["now_s"], before["work_s"]]
    assert (np.diff(points[:, 0]) >= 0.0).all()
    assert runs.ettr[run] == np.sort(runs.ettr)[10]


def test_a_failure_in_a_restart_begins_it_anew() -> None:
    """Restarts as long as the time between failures are finished once in e tries."""
    runs = played(failing(600.0), [every(30.0, tier(blocking_s=0.01))], restart(600.0), days=20.0)
    assert runs.ettr.mean() == pytest.approx(renewal_ettr(30.0, 0.01, 600.0, 600.0), abs=0.01)
    assert renewal_ettr(1e-6, 0.0, 600.0, 600.0) == pytest.approx(exp(-1))


def test_hot_spares_help_only_those_who_find_one_free() -> None:
    """Without a spare a run comes back as late as with cold ones, though nothing is repaired and nobody waits."""
    process = failing(7200.0, repair_fraction=0.0)
    cold = msgspec.structs.replace(restart(60.0), reschedule_s=120.0, num_spares=0)
    runs = [
        played(process, [every(600.0)], one, days=10.0)
        for one in (cold, msgspec.structs.replace(cold, hot_spares=True))
    ]
    assert (runs[0].work_s == runs[1].work_s).all()


def test_a_share_of_failures_finds_a_spare_free() -> None:
    """One node in repair in the mean: e⁻¹ of the time none is."""
    process = failing(3600.0 * exp(0.125), repair_fraction=1.0)
    assert free_fraction(process, 0) == 0.0
    assert free_fraction(process, 1) == pytest.approx(exp(-1.0))
    assert free_fraction(process, 2) == pytest.approx(2 * exp(-1.0))
    assert free_fraction(process, ANY_SPARES) == 1.0


def test_a_copy_that_is_written_out_just_when_the_next_begins_is_there() -> None:
    """Intervals as long as the drain: a copy is whole when the next one is taken, however times are rounded.

    Of a work of M t/(t + d) between failures t e^(−D/M) / (e^((t + d)/M) − 1) is kept.
    """
    mttf_s, drain_s, stop_s = 40_000.0, 2840.9737236, 5.005904151111111
    plan = [every(drain_s, tier(blocking_s=stop_s, drain_s=drain_s))]
    runs = played(failing(mttf_s), plan, restart(1.0), days=60.0, num_runs=1000)
    lost_s = runs.lost_s("lost_s").sum() / runs.num_failures.sum()
    cycle_s = drain_s + stop_s
    kept_s = drain_s * exp(-drain_s / mttf_s) / (exp(cycle_s / mttf_s) - 1.0)
    assert lost_s == pytest.approx(mttf_s * drain_s / cycle_s - kept_s, rel=0.015)
