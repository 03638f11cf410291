"""An upstream that fails is left alone and tried one request at a time; retries are a share of what is asked."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from datahall.serve.upstreams.breaker import FAILURES, LONGEST_S, Breaker
from datahall.serve.upstreams.retry_budget import MOST, SHARE, RetryBudget


def opened() -> Breaker:
    breaker = Breaker(Random(1))
    for _ in range(FAILURES):
        assert breaker.allows(0.0)
        breaker.begin()
        breaker.fail(0.0)
    return breaker


def test_a_breaker_opens_after_failures_in_a_row_and_not_before() -> None:
    breaker = Breaker(Random(1))
    for _ in range(3):
        for _ in range(FAILURES - 1):
            breaker.fail(0.0)
        assert breaker.allows(0.0)
        breaker.succeed()
    assert not opened().allows(0.5)


def test_an_open_breaker_lets_one_request_try_and_believes_it() -> None:
    breaker = opened()
    assert breaker.allows(2.0)
    breaker.begin()
    assert not breaker.allows(2.0)
    breaker.succeed()
    assert breaker.is_closed
    assert breaker.allows(2.0)


def test_a_trial_that_fails_doubles_the_wait_up_to_the_longest() -> None:
    breaker, now_s, waits_s = opened(), 0.0, []
    for _ in range(8):
        now_s += breaker.wait_s(now_s)
        assert breaker.allows(now_s)
        breaker.begin()
        breaker.fail(now_s)
        waits_s.append(breaker.wait_s(now_s))
    assert waits_s[0] > 1.5
    assert waits_s[-1] <= 1.2 * LONGEST_S


def test_a_trial_whose_client_left_says_nothing() -> None:
    breaker = opened()
    breaker.begin()
    breaker.give_up()
    assert not breaker.is_closed
    assert breaker.allows(2.0)


def test_failures_of_requests_that_began_before_do_not_lengthen_the_wait() -> None:
    breaker = opened()
    wait_s = breaker.wait_s(0.0)
    for _ in range(50):
        breaker.fail(0.5)
    assert breaker.wait_s(0.0) == wait_s


@given(st.lists(st.integers(0, 20), max_size=200))
def test_what_is_asked_again_is_a_share_of_what_is_asked(wanted: list[int]) -> None:
    budget = RetryBudget()
    for retries in wanted:
        budget.pay()
        for _ in range(retries):
            budget.take()
    assert budget.num_spent <= MOST + SHARE * len(wanted)
    assert budget.num_spent + budget.num_refused == sum(wanted)
