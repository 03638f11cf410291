"""What failures take of a queue, before it is played and after: expected numbers, shares, and jobs that never end."""

from __future__ import annotations

from math import comb, inf

import numpy as np
import pytest
from tests.scheduling.queue_case import play, queue

from datahall.scheduling.machine import plain_machine
from datahall.scheduling.metrics import metrics_of
from datahall.scheduling.run import Conditions, Outage, num_failures

HOUR_S = 3600.0
EIGHT = plain_machine(8, 8)


@pytest.mark.parametrize("nodes", [5, 6, 7, 8])
def test_a_job_runs_while_as_many_nodes_are_up_as_it_takes(nodes: int) -> None:
    """Each of eight is up nine tenths of the time: six of them or more are for 96.2 % of it, all for 43 %."""
    up = sum(comb(8, k) * 0.9**k * 0.1 ** (8 - k) for k in range(nodes, 9))
    job = queue((0, HOUR_S, 8 * nodes))
    always, often = (
        num_failures(job, EIGHT, Conditions(mttf_s=90 * HOUR_S, repair_s=hours * HOUR_S))[0]
        for hours in (1e-9, 10.0)
    )
    assert always / often == pytest.approx(up, rel=1e-6)


def test_a_service_begins_no_work_anew() -> None:
    """Eight nodes that each fail every hour, for ten hours: 80 failures, where training would lose e^80 hours."""
    service = queue((0, 10 * HOUR_S, 64), serving=(True,))
    asked = Conditions(mttf_s=HOUR_S, repair_s=1e-9)
    assert num_failures(service, EIGHT, asked)[0] == pytest.approx(80.0)
    assert num_failures(queue((0, 10 * HOUR_S, 64)), EIGHT, asked)[0] > 1e30


def test_failures_take_what_was_lost_and_what_it_took_to_begin_again() -> None:
    """16 chips for 70 s and for 45: 10 s since the checkpoint at 60 and 5 to begin again are 15 of 115."""
    outage = Outage(nodes=(1,), start_s=70.0, duration_s=50.0)
    run = play(
        queue((0, 100, 16), checkpoint_s=(30.0,)),
        "backfill",
        plain_machine(2, 8),
        outages=(outage,),
        restart_s=5.0,
    )
    found = metrics_of(run)
    assert found.failed_fraction == pytest.approx(15 / 115)
    assert found.goodput_fraction == pytest.approx(100 / 115)


def test_a_job_that_is_stopped_before_it_has_begun_again_has_lost_that_time_alone() -> None:
    """Stopped at 50, again at 71 with 20 of the 60 s gone that it takes to begin: 60 and 100 s from 72 on."""
    outages = tuple(Outage(nodes=(0,), start_s=at, duration_s=1.0) for at in (50.0, 71.0))
    run = play(queue((0, 100, 8)), "fifo", plain_machine(1, 8), outages=outages, restart_s=60.0)
    assert run.end_s.tolist() == [232]
    assert (run.failed_s, run.restart_s, run.useful_s) == (8 * 50, 8 * 80, 8 * 100)


def test_a_job_of_pieces_is_not_done_before_the_last_of_them() -> None:
    """One half ends at 10.  The other loses its node at 5, goes on where the first was, and loses that at 12."""
    gone = tuple(Outage(nodes=(node,), start_s=at, duration_s=inf) for node, at in ((0, 5.0), (1, 12.0)))
    run = play(queue((0, 10, 16), gang=(False,)), "gang", plain_machine(2, 8), outages=gone)
    assert run.end_s.tolist() == [-1]
    assert not run.is_done.any()
    assert metrics_of(run).num_done == 0


def test_a_node_that_is_down_does_not_fail_and_is_repaired_no_later_for_it() -> None:
    """One node, up for 1,000 s in the mean and then 9,000 s in repair: each failure is that long, whatever comes."""
    jobs = queue((0, 200_000, 1), serving=(True,))
    run = play(jobs, "fifo", 1, mttf_s=1000.0, repair_s=9000.0, seed=7)
    assert run.num_failures > 100
    assert run.down_s == pytest.approx(9000.0 * run.num_failures)
    assert np.isfinite(run.end_s).all()
