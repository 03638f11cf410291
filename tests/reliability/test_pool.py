"""How much of the time there are nodes enough: against chains that are solved, and runs that are simulated."""

from __future__ import annotations

from itertools import product
from math import exp, inf
from typing import Any

import numpy as np
import pytest

import datahall as dh
from datahall.reliability.nodes.pool import enough_nodes, repaired_within_s
from datahall.reliability.process import Cause, FailureProcess
from datahall.reliability.recovery import Recovery

DAY_S = 86_400.0


def failing(num_nodes: int, away: float, *, num_lost: int = 1) -> FailureProcess:
    """Nodes of which so many repairs of a day were under way in the mean, if all of them were always at work."""
    cause = Cause(
        name="it", component="chip", rate_per_node_day=away / num_nodes, survives="remote", num_nodes_lost=num_lost,
        repair_fraction=1.0, repair_median_s=DAY_S / exp(0.5), repair_sigma=1.0,
    )  # fmt: skip
    return FailureProcess(preset="", causes=(cause,), num_nodes=num_nodes, num_node_chips=8)


def recovery(num_spares: int, taken: float = 0.0) -> Recovery:
    """With a node of which capacity is taken away so much of the time that it is there."""
    every_s = DAY_S / taken if taken else inf
    return Recovery(
        detect_s=0.0, reschedule_s=0.0, warmup_s=0.0, num_spares=num_spares, preempted_every_s=every_s,
        back_s=DAY_S if taken else 0.0,
    )  # fmt: skip


def solved(num_nodes: int, num_spares: int, away: float, taken: float) -> float:
    """The balance of a chain over nodes in repair and nodes that were taken, one leaving at a time."""
    states = [
        (a, t)
        for a, t in product(range(num_nodes + num_spares + 1), range(num_nodes + 1))
        if max(0, a - num_spares) + t <= num_nodes
    ]
    place = {state: at for at, state in enumerate(states)}
    flow = np.zeros((len(states), len(states)))
    for (a, t), at in place.items():
        there = (num_nodes - max(0, a - num_spares) - t) / num_nodes
        rates = {
            (a + 1, t): away * there,
            (a, t + 1): num_nodes * taken * there,
            (a - 1, t): a,
            (a, t - 1): t,
        }
        for to, rate in rates.items():
            if rate and to in place:
                flow[place[to], at] += rate
                flow[at, at] -= rate
    flow[-1] = 1.0
    shares = np.linalg.solve(flow, np.eye(len(states))[-1])
    return float(sum(shares[place[a, 0]] for a in range(num_spares + 1)))


@pytest.mark.parametrize("num_nodes", [1, 3, 12])
@pytest.mark.parametrize("num_spares", [0, 1, 3])
@pytest.mark.parametrize(("away", "taken"), [(0.3, 0.0), (2.0, 0.0), (0.5, 0.01), (1.5, 0.05)])
def test_it_is_the_balance_of_a_chain(num_nodes: int, num_spares: int, away: float, taken: float) -> None:
    found = enough_nodes(failing(num_nodes, away), recovery(num_spares, taken))
    share = found.repaired_fraction * found.there_fraction
    assert share == pytest.approx(solved(num_nodes, num_spares, away, taken), abs=0.01)


def test_many_nodes_are_poisson_and_racks_go_together() -> None:
    """2 repairs under way: at most 3 of 1,000 nodes are away 86 % of the time, and at most one rack of four 41 %."""
    alone = enough_nodes(failing(1000, 2.0), recovery(3)).repaired_fraction
    assert alone == pytest.approx(exp(-2) * (1 + 2 + 2 + 4 / 3), abs=0.002)
    racks = enough_nodes(failing(1000, 2.0, num_lost=4), recovery(7)).repaired_fraction
    assert racks == pytest.approx(exp(-2) * (1 + 2), abs=0.005)


def test_a_node_alone_is_up_or_it_is_not() -> None:
    assert enough_nodes(failing(1, 1.0), recovery(0)).repaired_fraction == pytest.approx(0.5)
    assert enough_nodes(failing(2, 2.0), recovery(0)).repaired_fraction == pytest.approx(0.25)


def test_it_begins_with_nobody_away() -> None:
    """A repair of a day has come to an hour after one: E[min(T, a)] grows to the mean."""
    cause = failing(1, 1.0).causes[0]
    lasting = [repaired_within_s(cause, one) / DAY_S for one in (1.0, 3600.0, DAY_S, 100 * DAY_S, inf)]
    assert lasting == sorted(lasting)
    assert lasting[0] * DAY_S == pytest.approx(1.0)
    assert lasting[-2:] == pytest.approx([1.0, 1.0], abs=1e-3)
    short, long, whole = (
        enough_nodes(failing(1000, 2.0), recovery(1), span_s).repaired_fraction
        for span_s in (3600.0, 10 * DAY_S, inf)
    )
    assert 1.0 > short > long > whole


SPOT: dict[str, Any] = {
    "preempted_every": "20d",
    "capacity_back": "6h",
    "restart": "1min",
    "storage": "10TB/s",
}


@pytest.mark.parametrize(
    "said",
    [
        {**SPOT, "failure_rate": "0.0001/day"},
        {**SPOT, "failure_rate": "0.1/day"},
        {"spares": 0, "failure_rate": "0.003/day", "job_failures": "8/day"},
        {"spares": 1, "failure_rate": "0.003/day", "job_failures": "24/day"},
        {"spares": 2, "failure_rate": "0.01/day", "hot_spares": True},
        {"spares": 1, "node_age": "0d"},
        {"model": "llama-3.1-405b", "chips": 16_384, "spares": 5},
        {"preempted_every": "10d", "capacity_back": "2min", "notice": "0s"},
        {"preempted_every": "10d", "capacity_back": "2min", "notice": "2min"},
        {
            "model": "llama-3.1-8b", "chips": 256, "failure_rate": "0.000499573/day", "storage": "214.196GB/s",
            "tier": "remote", "hot_spares": True, "preempted_every": "1.55457d",
        },
        {"model": "llama-3.1-405b", "chips": 16_384, "storage": "1GB/s"},
        {"failure_rate": "0.02/day", "interval": "3d", "planned_every": "3d"},
    ],
)  # fmt: skip
def test_the_closed_form_of_a_run_waits_and_saves_as_the_simulation_does(said: dict[str, Any]) -> None:
    found = dh.simulate_run(
        **{"model": "llama-3.1-70b", "chips": 1024, "days": 30, "runs": 600, **said}
    ).results
    assert abs(float(found["difference_fraction"])) < 0.012  # type: ignore[arg-type]


def test_notice_saves_work_in_the_closed_form_too() -> None:
    kept = [
        dh.simulate_run(
            "llama-3.1-70b",
            chips=1024,
            days=30,
            runs=2,
            preempted_every="10d",
            capacity_back="2min",
            notice=one,
        ).results["closed_form_fraction"]
        for one in ("0s", "1s", "2min", "10min")
    ]
    assert kept[0] == kept[1] < kept[2] == kept[3]  # type: ignore[operator]
