"""How long a run lasted: until its last request ended, whatever fails or is repaired after that."""

from __future__ import annotations

import pytest
from tests.inference.ticking_case import one_pool, rows, simulated, times

from datahall.inference.fleet.autoscale import Autoscaling
from datahall.inference.fleet.fleet import ReplicaOutage

LATE = (ReplicaOutage(replica=1, start_s=100.0, duration_s=50.0),)
TWO = rows((0.0, 10, 5), (0.0, 10, 9))


def test_a_failure_after_the_last_request_is_no_part_of_the_run() -> None:
    plain = simulated(one_pool(2), requests=TWO)
    late = simulated(one_pool(2), requests=TWO, outages=LATE)
    assert plain.duration_s == late.duration_s == max(end for *_, end in times(plain))


def test_a_request_that_is_refused_does_not_keep_a_run_going() -> None:
    """A prompt of 20,000 tokens needs more blocks than there are."""
    asked = rows((0.0, 10, 5), (0.0, 20_000, 5))
    run = simulated(one_pool(2, num_blocks=50), requests=asked, outages=LATE)
    assert run.num_too_long + run.num_too_large == 1
    assert run.duration_s < 100.0


def test_a_run_whose_requests_wait_for_a_repair_lasts_until_it_was_cut_off() -> None:
    """Both replicas are out from 2 s on: nobody ends until they are back, and the run is cut off before."""
    out = tuple(ReplicaOutage(replica=index, start_s=2.0, duration_s=500.0) for index in range(2))
    run = simulated(one_pool(2), requests=rows((0.0, 10, 1), (0.0, 10, 300)), outages=out, until_s=200.0)
    assert run.num_unfinished == 1
    assert run.duration_s == pytest.approx(200.0, abs=5.0)


def test_an_autoscaler_looks_on_until_its_own_time_ends() -> None:
    rule = Autoscaling(target=2.0, interval_s=40.0, cold_start_s=5.0, patience_s=0.0, least=2, most=2)
    plain = simulated(one_pool(2), requests=TWO, autoscaling=rule)
    late = simulated(one_pool(2), requests=TWO, autoscaling=rule, outages=LATE)
    assert plain.duration_s == late.duration_s


def test_replicas_are_there_for_as_long_as_the_run_lasts() -> None:
    run = simulated(one_pool(2), requests=TWO, outages=LATE)
    assert run.replicas.active_s.tolist() == [run.duration_s] * 2
