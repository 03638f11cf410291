"""A job that has too few nodes waits until it has enough: nothing of it fails meanwhile, and nothing ends it earlier.

The oracle shares nothing with the loop: machines one by one, each with a life that is used up while it works, and a job
that takes the first of those that are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import exp, inf
from random import Random

import pytest

from datahall.reliability.checkpoint.tier import Cadence, CheckpointTier
from datahall.reliability.process import Cause, FailureProcess
from datahall.reliability.recovery import ANY_SPARES, Recovery
from datahall.reliability.simulation.outcome import LOSSES, Runs
from datahall.reliability.simulation.simulate import simulate_runs

DAY_S, HOUR_S = 86_400.0, 3600.0
NODES, DAYS = 24, 20.0
EVERY_S, STOP_S = 600.0, 5.0  # work between copies, and how long each stops the job
MEDIAN_S, SIGMA = 5 * HOUR_S, 1.0  # of repairs
NOISE = 0.015  # of the time, between two settings of 400 runs with luck of their own


def runs(
    failures_per_day: float = 2.0,
    *,
    job_failures_per_day: float = 0.0,
    num_spares: int = ANY_SPARES,
    restart_s: float = 300.0,
    taken_every_s: float = inf,
    back_s: float = 0.0,
    median_s: float = MEDIAN_S,
    num_nodes: int = NODES,
    num_runs: int = 400,
) -> Runs:
    """Twenty days of 24 nodes of which one fails so often and is repaired in some hours."""
    cause = Cause(
        name="it", component="chip", rate_per_node_day=failures_per_day / num_nodes, survives="peer",
        repair_fraction=1.0, repair_median_s=median_s, repair_sigma=SIGMA,
    )  # fmt: skip
    process = FailureProcess(
        preset="",
        causes=(cause,),
        num_nodes=num_nodes,
        num_node_chips=8,
        job_rate_per_day=job_failures_per_day,
    )
    tier = CheckpointTier(name="remote", blocking_s=STOP_S, drain_s=0.0, load_s=0.0)
    recovery = Recovery(
        detect_s=restart_s / 2, reschedule_s=restart_s / 2, warmup_s=0.0, num_spares=num_spares,
        preempted_every_s=taken_every_s, back_s=back_s,
    )  # fmt: skip
    return simulate_runs(
        process, [Cadence(tier=tier, interval_s=EVERY_S, share_fraction=1.0)], recovery,
        until_s=DAYS * DAY_S, goal_s=inf, num_runs=num_runs, seed=0,
    )  # fmt: skip


def kept(found: Runs) -> float:
    return float(found.ettr.mean())


def waits(found: Runs) -> float:
    """Share of the time in which there were too few nodes, as those that failed are noticed meanwhile."""
    return float(found.lost_s("wait_s").sum() / found.elapsed_s.sum())


def oracle(
    dice: Random, failures_per_day: float, job_failures_per_day: float, num_spares: int, restart_s: float
) -> tuple[float, float]:
    """One run by machines: shares of the time that were kept, and in which there were too few of them."""
    life_s, job_life_s = (
        NODES / failures_per_day * DAY_S,
        DAY_S / job_failures_per_day if job_failures_per_day else inf,
    )
    lives = [dice.expovariate(1 / life_s) for _ in range(NODES + num_spares)]
    back_at = [0.0] * len(lives)
    job_left = dice.expovariate(1 / job_life_s) if job_life_s < inf else inf
    now = worked = short = 0.0
    left, up_s = 0.0, 0.0  # of a restart; work since it
    while now < DAYS * DAY_S:
        whole = [one for one in range(len(lives)) if back_at[one] <= now]
        runs_now = len(whole) >= NODES
        used = whole[:NODES]
        step = min(DAYS * DAY_S - now, min((at - now for at in back_at if at > now), default=inf))
        step = min(step, min((lives[one] for one in used), default=inf), job_left if runs_now else inf)
        for one in used:
            lives[one] -= step
        now += step
        if runs_now:
            job_left -= step
            again = min(left, step)
            left -= again
            up_s += step - again
        else:
            short += step
            left = max(restart_s / 2, left - step)  # it is noticed while nodes are waited for
        failed = [one for one in used if lives[one] <= 1e-9]
        for one in failed:
            lives[one] = dice.expovariate(1 / life_s)
            back_at[one] = now + dice.lognormvariate(0.0, SIGMA) * MEDIAN_S
        if job_left <= 1e-9 or (failed and runs_now):
            worked += up_s // (EVERY_S + STOP_S) * EVERY_S
            left, up_s = restart_s, 0.0
            job_left = dice.expovariate(1 / job_life_s) if job_life_s < inf else inf
    worked += up_s * EVERY_S / (EVERY_S + STOP_S)
    return worked / now, short / now


@pytest.mark.parametrize(
    ("failures", "job_failures", "num_spares"), [(2.0, 0.0, 0), (2.0, 8.0, 0), (4.0, 8.0, 1), (6.0, 3.0, 3)]
)
def test_it_waits_and_keeps_what_a_simulation_of_single_machines_does(
    failures: float, job_failures: float, num_spares: int
) -> None:
    dice = Random(1)
    pairs = [oracle(dice, failures, job_failures, num_spares, 300.0) for _ in range(150)]
    theirs, short = (sum(one) / len(pairs) for one in zip(*pairs, strict=True))
    found = runs(failures, job_failures_per_day=job_failures, num_spares=num_spares)
    assert waits(found) == pytest.approx(short, abs=0.015)
    assert kept(found) == pytest.approx(theirs, abs=0.015)
    assert 0.05 < short < 0.6


def falls(shares: Sequence[float]) -> bool:
    """Whether no share is more than chance above the one before."""
    return all(later < before + NOISE for before, later in pairwise(shares))


@pytest.mark.parametrize("num_spares", [0, 1, 4, ANY_SPARES])
@pytest.mark.parametrize("taken_every_s", [inf, 20 * DAY_S])
def test_more_failures_of_nodes_never_help(num_spares: int, taken_every_s: float) -> None:
    shares = [
        kept(runs(one, num_spares=num_spares, taken_every_s=taken_every_s, back_s=6 * HOUR_S))
        for one in (0.003, 0.1, 0.5, 2.0, 8.0, 30.0)
    ]
    assert falls(shares)
    assert shares[-1] < shares[0] - 0.1


@pytest.mark.parametrize("num_spares", [0, 1, 4])
def test_more_failures_of_the_job_never_help(num_spares: int) -> None:
    found = [runs(job_failures_per_day=one, num_spares=num_spares) for one in (0.0, 2.0, 8.0, 24.0, 100.0)]
    assert falls([kept(one) for one in found])
    assert waits(found[-1]) == pytest.approx(waits(found[0]), abs=0.02), "they repair nothing"


@pytest.mark.parametrize("num_spares", [0, 2])
def test_a_longer_restart_never_helps(num_spares: int) -> None:
    assert falls(
        [kept(runs(num_spares=num_spares, restart_s=one)) for one in (0.0, 60.0, 600.0, 3600.0, 14_400.0)]
    )


def test_later_capacity_and_fewer_spares_never_help() -> None:
    assert falls(
        [kept(runs(taken_every_s=20 * DAY_S, back_s=one)) for one in (0.0, 600.0, HOUR_S, 6 * HOUR_S, DAY_S)]
    )
    assert falls([kept(runs(4.0, num_spares=one)) for one in (ANY_SPARES, 8, 4, 2, 1, 0)])


def test_capacity_of_independent_nodes_is_there_as_often_as_all_of_them_are() -> None:
    """24 nodes, each taken once in 20 days for six hours: all are there (1 + 0.25/20)^−24 = 74 % of the time."""
    found = runs(1e-6, taken_every_s=20 * DAY_S, back_s=6 * HOUR_S, restart_s=0.0)
    assert 1.0 - waits(found) == pytest.approx((1.0 + 0.25 / 20.0) ** -24, abs=0.015)


def test_one_node_is_there_or_it_is_not() -> None:
    """It fails twice in a day that it works and is away 5 h e^½ = 8.24 h then: there for 1/(1 + 0.687) of the time."""
    found = runs(2.0, num_nodes=1, num_spares=0, restart_s=0.0)
    assert 1.0 - waits(found) == pytest.approx(1.0 / (1.0 + 2.0 * 5.0 * exp(0.5) / 24.0), abs=0.02)


@pytest.mark.parametrize("num_spares", [0, 2])
def test_every_second_of_a_run_that_waits_is_accounted_for(num_spares: int) -> None:
    found = runs(
        8.0, num_spares=num_spares, job_failures_per_day=8.0, taken_every_s=20 * DAY_S, back_s=HOUR_S
    )
    whole = found.work_s + sum(found.lost_s(name) for name in LOSSES)
    assert whole == pytest.approx(found.elapsed_s, rel=1e-9)
    assert found.elapsed_s == pytest.approx(DAYS * DAY_S, abs=STOP_S), "but for the last copy"
    assert found.counts.sum() == found.num_failures.sum()
