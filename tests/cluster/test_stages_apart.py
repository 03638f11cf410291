"""Stages that are not all in one scale-up domain meet the network somewhere, also where most neighbours share one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import datahall as dh
from datahall.catalog import load
from datahall.cluster.cluster import cluster_of
from datahall.cluster.groups import group_times, leaving_fraction, stage_times

SYSTEM = cluster_of(load().chip("h100-sxm"), 256).system  # domains of eight


@pytest.mark.parametrize("stages", [2, 3, 4, 7, 8, 16])
@pytest.mark.parametrize("chips", [1, 2, 4, 8, 16])
def test_neighbours_in_two_domains_are_those_that_one_counts(stages: int, chips: int) -> None:
    domain = [stage * chips // 8 for stage in range(stages)]
    apart = sum(one != other for one, other in pairwise(domain))
    found = leaving_fraction(SYSTEM, np.array([float(stages)]), np.array([float(chips)]))
    assert found[0] == pytest.approx(apart / (stages - 1))


def test_a_message_takes_the_mean_of_those_inside_and_across() -> None:
    size, one = np.array([64e6]), np.ones(1)
    inside, across = (
        group_times(SYSTEM, "send-recv", size, 2 * one, stride * one)[0] for stride in (4.0, 8.0)
    )
    assert inside < across
    (half,) = stage_times(SYSTEM, size, 3 * one, 4 * one)  # 0 | 1 in one domain, 2 in the next
    assert half == pytest.approx((inside + across) / 2)
    assert stage_times(SYSTEM, size, 2 * one, 4 * one)[0] == inside
    assert stage_times(SYSTEM, size, 2 * one, 8 * one)[0] == across
    assert stage_times(SYSTEM, size, one, one)[0] == 0.0


def test_a_slower_port_makes_a_step_and_a_token_longer_where_stages_leave_the_domain() -> None:
    def step_s(**more: object) -> float:
        laid = dh.simulate_train("llama-3.1-8b", chip="b200", chips=56, pp=14, dp=4, zero=1, **more)  # type: ignore[arg-type]
        return float(laid.results["step_s"])

    def token_s(**more: object) -> float:
        run = dh.simulate_serve("llama-3.1-405b", chip="h100-sxm", tp=4, pp=4, rate=1, requests=20, **more)  # type: ignore[arg-type]
        return float(run.results["tpot_mean_s"])

    for time_s in (step_s, token_s):
        assert time_s(nic="10 Mb/s") > 1.5 * time_s()
