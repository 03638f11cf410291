"""What is measured of a run does not depend on how long it fills, drains and lasts."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import datahall as dh
from datahall.inference.fleet.service import Service, simulate_service
from datahall.inference.fleet.span import MeasuredWindow, enough_requests, expected_s, measured_window
from datahall.inference.simulation.histogram import E2E
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Think
from datahall.workload.traffic.traffic import Traffic
from datahall.workload.traffic.users import Users

times = st.floats(1e-3, 1e6)


@given(times, st.floats(1.001, 1e6))
def test_the_middle_is_most_of_a_run_and_lies_within_it(stay: float, stays: float) -> None:
    coming_s = stays * stay
    window = measured_window(coming_s, stay, num_requests=0, first_s=0.0)
    assert 0 < window.start_s < window.end_s < coming_s
    assert window.end_s - window.start_s >= 0.66 * coming_s
    assert window.start_s <= 2 * stay


@given(times)
def test_a_run_of_unknown_stays_has_no_drain_apart(coming_s: float) -> None:
    assert 0 < measured_window(coming_s, 0.0, num_requests=0, first_s=0.0).start_s < coming_s
    assert measured_window(coming_s, 0.0, num_requests=0, first_s=0.0).end_s == inf


def test_a_rush_longer_than_the_run_leaves_no_middle() -> None:
    assert measured_window(40.0, 30.0, first_s=39.0, num_requests=0) == MeasuredWindow()
    assert measured_window(400.0, 30.0, first_s=39.0, num_requests=0) == MeasuredWindow(60.0, 340.0)


def test_of_a_burst_all_is_measured() -> None:
    assert measured_window(10.0, 30.0, first_s=30.0, num_requests=0) == MeasuredWindow()


def test_the_end_is_told_by_the_number_of_requests_where_that_is_known() -> None:
    """They may come faster than is expected: the last tenth of them drains the fleet whenever it comes."""
    assert measured_window(100.0, 5.0, num_requests=1000, first_s=0.0) == MeasuredWindow(10.0, num_rows=900)


@pytest.mark.parametrize("rate_per_s", [0.1, 50.0, 5_000.0])
@pytest.mark.parametrize("stay", [0.5, 20.0])
def test_a_run_lasts_many_stays_whatever_the_rate(rate_per_s: float, stay: float) -> None:
    asked = Traffic(arrivals=Arrivals(rate_per_s=rate_per_s), num_requests=1)
    assert enough_requests(asked, stay) / rate_per_s >= 6 * stay * 0.999
    users = Traffic(users=Users(num=round(rate_per_s) + 1), num_requests=1)
    assert enough_requests(users, stay) >= 6 * (round(rate_per_s) + 1)


@pytest.mark.parametrize(("users", "each"), [(1_000, 12), (20_000, 10), (100_000, 6)])
def test_a_run_of_which_nobody_says_how_long_is_six_to_twelve_stays(users: int, each: int) -> None:
    """Twelve, or fewer where these were more than 200,000 requests, though six at least."""
    assert enough_requests(Traffic(users=Users(num=users), num_requests=1), 30.0) == each * users
    arrivals = Traffic(arrivals=Arrivals(rate_per_s=users / 30.0), num_requests=1)
    assert enough_requests(arrivals, 30.0) == pytest.approx(each * users, abs=1)


def test_users_come_as_long_as_their_stays_last() -> None:
    asked = Traffic(users=Users(num=4), num_requests=40)
    assert expected_s(asked, 3.0) == pytest.approx(30.0)
    assert expected_s(asked) == 0.0


def run_of(**asked: object) -> Any:
    return dh.simulate_serve("llama-3.1-8b", chip="h100-sxm", **asked).results  # type: ignore[arg-type]


@pytest.mark.parametrize("load", [{"rate": 12}, {"users": 60}])
def test_rates_are_those_of_the_load_however_long_the_run(load: dict[str, int]) -> None:
    short, long = (run_of(**load, requests=num) for num in (1_500, 6_000))
    for name in ("requests_per_s", "output_tokens_per_s", "prompt_tokens_per_s", "tpot_mean_s"):
        assert short[name] == pytest.approx(long[name], rel=0.1), name
    if "rate" in load:
        assert long["requests_per_s"] == pytest.approx(12, rel=0.03)
    else:  # Little's law: users are all there, all the time
        present = long["output_tokens_per_s"] * long["tpot_mean_s"]
        assert present == pytest.approx(60, rel=0.05)


def test_a_burst_beyond_what_is_held_keeps_no_promise() -> None:
    answer = dh.simulate_serve("llama-3.1-8b", chip="h100-sxm", rate=1000, requests=50)
    assert answer.verdict == "no"
    assert answer.headline.startswith("Overloaded")
    assert any("whole run" in note for note in answer.notes)


def test_what_replicas_do_while_they_drain_is_not_in_their_means(read: Callable[[str], Service]) -> None:
    text = """version = 1
model = "llama-3.1-8b"
[[deployment]]
chip = "h100-sxm"
[[traffic]]
users = 200
requests = 6000
"""
    outcome = simulate_service(read(text))
    run = outcome.run
    assert run.drain_apart
    assert run.measured_s < run.duration_s - outcome.service.window.start_s
    assert run.requests_per_s * run.mean_s(E2E) == pytest.approx(200, rel=0.08)  # Little's law
    assert run.replicas.cache_mean_fraction[0] > 0.5 * run.replicas.cache_peak_fraction[0]
    # paid until the last is computed, whose token is then on its way to the user
    assert run.replicas.active_s.tolist() == pytest.approx([run.duration_s], abs=0.1)


def test_what_fills_and_drains_an_overloaded_fleet_is_apart_where_the_run_is_long(
    read: Callable[[str], Service],
) -> None:
    """Twice what it holds, for minutes, where a request is computed in seconds: the queue is no part of a stay."""
    text = """version = 1
model = "llama-3.1-8b"
[[deployment]]
chip = "h100-sxm"
[[traffic]]
rate = 60
isl = 1000
osl = 200
requests = 6000
"""
    run = simulate_service(read(text)).run
    assert not run.stable
    assert run.drain_apart
    assert run.measured_s < run.duration_s


SERVE: dict[str, object] = {"isl": 1000, "osl": 200}


def test_a_time_that_is_never_reached_changes_nothing() -> None:
    plain, cut = (run_of(users=300, requests=1500, **more) for more in ({}, {"until": "1h"}))
    assert plain == cut


def test_an_overloaded_service_holds_what_it_holds_however_much_comes() -> None:
    """By the ends while the load lasts: neither what fills the batches nor the drain counts as served."""
    full, *loads = (run_of(**SERVE, rate=rate, requests=6000) for rate in (24, 30, 60, 300))
    for load in loads:
        assert not load["stable"]
        assert load["sustained_per_s"] == pytest.approx(full["sustained_per_s"], rel=0.05)
        assert load["requests_per_s"] == pytest.approx(load["sustained_per_s"], rel=0.02)


def test_replicas_that_get_more_than_they_hold_are_seen_to_be_overloaded() -> None:
    found = dh.simulate_serve("llama-3.1-8b", chip="h100-sxm", rate=300, replicas=10, isl=1000, osl=200)
    assert found.verdict == "no"
    assert found.headline.startswith("Overloaded")
    enough = int(found.next_commands[0].split("--replicas ")[1].split()[0])
    assert dh.simulate_serve(
        "llama-3.1-8b", chip="h100-sxm", rate=300, replicas=enough, isl=1000, osl=200
    ).results["stable"]


def test_one_request_is_measured() -> None:
    assert run_of(rate=5, requests=1)["good_fraction"] == 1.0


def test_a_load_that_moves_over_a_day_is_said_to_be_seen_in_part() -> None:
    found = dh.simulate_serve("llama-3.1-8b", chip="h100-sxm", rate=5, swing="50%", requests=500)
    assert any("less than a day" in note for note in found.notes)


@pytest.mark.parametrize("users", [5, 60])
def test_what_drains_is_not_measured_however_fast_users_are(users: int) -> None:
    """The closed form may expect a longer run than there is; the last of the requests are left out all the same."""
    found = run_of(users=users, requests=40 * users)
    assert found["requests_per_s"] * found["tpot_mean_s"] > 0
    present = found["output_tokens_per_s"] * found["tpot_mean_s"]
    assert present == pytest.approx(users, rel=0.1)


def test_meters_count_what_is_under_way() -> None:
    """One user keeps a replica busy all the time, though most of an answer is one event that ends after it is read."""
    found = dh.simulate_serve("llama-3.1-8b", chip="h100-sxm", users=1, isl=100, osl=2000, requests=12)
    replicas = next(table for table in found.tables if table.title == "replicas").rows[0]
    assert replicas[2] == pytest.approx(1.0, abs=0.01)


def test_the_queue_of_one_replica_is_that_of_the_fleet() -> None:
    found = dh.simulate_serve("llama-3.1-8b", chip="h100-sxm", isl=1000, osl=200, rate=60, requests=4000)
    replicas = next(table for table in found.tables if table.title == "replicas").rows[0]
    assert found.results["queue_mean"] == pytest.approx(replicas[5], rel=1e-6)


def test_users_do_not_march_together() -> None:
    """Requests of one length that all begin at once meet again after each answer, and wait for each other's prompts."""
    found = run_of(users=100, isl=2000, osl=300, requests=2000)
    assert found["ttft_p95_s"] < 3 * found["ttft_p50_s"]


def test_users_come_as_often_as_they_think() -> None:
    asked = Traffic(users=Users(num=4, think=Think(mean_s=7.0)), num_requests=40)
    assert expected_s(asked, 3.0) == pytest.approx(100.0)
