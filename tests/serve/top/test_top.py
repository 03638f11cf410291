"""What is seen of a gateway is what it told between two looks."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.telemetry.requests import BEGAN_NS, MS, told
from tests.serve.top.instrumented import BEGAN_S, Pages

from datahall.serve.telemetry.instruments import FIRST_TOKENS_S
from datahall.serve.telemetry.metrics import Histogram, exposed
from datahall.serve.top.latency import Latency
from datahall.serve.top.moment import Moment, between
from datahall.serve.top.page import read_page
from datahall.serve.top.reading import Left, Reading, reading_of


def reading(page: str, at_s: float) -> Reading:
    found = reading_of(read_page(page), at_s)
    assert found is not None
    return found


def moment(*, seconds: float = 2.0) -> Moment:
    """Two requests before the first look, five after it."""
    pages = Pages()
    before = pages.after([told(), told(key="other", served="large", model="large")])
    pages.num_waiting = 7
    slow = told(first_ns=BEGAN_NS + 700 * MS, ended_ns=BEGAN_NS + 2000 * MS)
    after = pages.after(
        [
            told(),
            slow,
            told(key="new"),
            told(result="failed", status=502, charged_nano_usd=0, first_ns=0),
            told(result="refused", status=401, code="invalid_api_key", key="", model="", served=""),
        ]
    )
    return between(reading(before, 10.0), reading(after, 10.0 + seconds), BEGAN_S + 60.0)


def test_rates_are_of_what_came_between_and_money_of_all() -> None:
    seen = moment()
    assert (seen.took_s, seen.up_s) == (2.0, 60.0)
    small = seen.models["small"]
    assert (small.requests_per_s, small.failed_per_s) == (2.0, 0.5)
    assert small.output_tokens_per_s == pytest.approx(4 * 11 / 2)
    assert small.tokens_per_s == pytest.approx(4 * 111 / 2)
    assert small.charged_usd == pytest.approx(4 * 0.0015)
    assert small.charged_usd_per_hour == pytest.approx(3 * 0.0015 / 2 * 3600)
    assert seen.models["large"].requests_per_s == 0.0
    assert seen.models["large"].charged_usd == pytest.approx(0.0015)
    assert seen.refused_for_per_s == {"invalid_api_key": 0.5}


def test_keys_have_rates_and_latencies_of_their_own_the_busiest_first() -> None:
    seen = moment()
    assert [*seen.keys] == [("team", "acme"), ("new", "acme"), ("other", "acme")]
    assert [rate.requests_per_s for rate in seen.keys.values()] == [1.5, 0.5, 0.0]
    assert seen.keys["team", "acme"].failed_per_s == 0.5
    team, new, other = (rate.first for rate in seen.keys.values())
    assert (team.num, new.num, other.num) == (2, 1, 0)
    assert 0.5 < (team.at(0.99) or 0.0) < 0.75
    assert 0.02 < (new.at(0.99) or 0.0) < 0.04
    assert other.at(0.99) is None


def test_a_customer_is_all_of_its_keys_and_what_it_has_left() -> None:
    seen = moment()
    (acme,) = seen.customers.values()
    assert acme.requests_per_s == sum(rate.requests_per_s for rate in seen.keys.values())
    assert acme.charged_usd == pytest.approx(sum(rate.charged_usd for rate in seen.keys.values()))
    assert acme.first.num == 3
    assert seen.left == {
        "acme": Left(budget_usd=5.0, budget_left_usd=4.5, num_requests=None, num_tokens=900.0)
    }


def test_all_of_it_is_the_sum_of_models() -> None:
    seen = moment()
    assert seen.all.requests_per_s == sum(rate.requests_per_s for rate in seen.models.values())
    assert seen.all.whole.num == sum(rate.whole.num for rate in seen.models.values()) == 3
    assert seen.num_waiting_for == {"small": 7.0}
    assert (seen.num_open, seen.memory_bytes, seen.is_unwritten) == (5, 4e7, False)
    (upstream,) = seen.upstreams.values()
    assert (upstream.is_ready, upstream.num_open) == (True, 3)


@given(st.lists(st.floats(1e-6, 9.99), min_size=1, max_size=60), st.sampled_from((0.5, 0.9, 0.99)))
def test_a_percentile_lies_in_the_bucket_of_the_value_that_it_is(values: list[float], share: float) -> None:
    histogram = Histogram("x_seconds", "X.", FIRST_TOKENS_S, ("model",))
    for value in values:
        histogram.of("m").observe(value)
    page = read_page(exposed([histogram]).decode())
    found = Latency.of(page["x_seconds_bucket"]).at(share)
    rank = share * len(values)
    ranked = sorted(values)
    value = ranked[next(place for place in range(len(ranked)) if place + 1 >= rank)]
    bucket = bisect_left(FIRST_TOKENS_S, value)
    bounds = (0.0, *FIRST_TOKENS_S)
    assert found is not None
    assert bounds[bucket] <= found <= bounds[bucket + 1]


def test_beyond_the_last_bound_it_is_that_bound() -> None:
    histogram = Histogram("x_seconds", "X.", (0.1, 1.0), ("model",))
    histogram.of("m").observe(50.0)
    page = read_page(exposed([histogram]).decode())
    assert Latency.of(page["x_seconds_bucket"]).at(0.5) == 1.0


@pytest.mark.parametrize("page", ["", "<html>no</html>", "up 1\n", "process_start_time_seconds nonsense\n"])
def test_a_page_of_another_server_is_none(page: str) -> None:
    assert reading_of(read_page(page), 0.0) is None
