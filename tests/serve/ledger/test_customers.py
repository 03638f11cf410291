"""What all keys of a customer share: limits and a budget, exact as those of a key are."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.serve.ledger.books import SECOND_NS, START_NS, TEN, key_in, limited, opened
from tests.serve.telemetry.exposition import shown

from datahall.serve.ledger.account import Refusal
from datahall.serve.ledger.accounts import Reservation
from datahall.serve.ledger.folder import Folder
from datahall.serve.ledger.key import Key, Limits
from datahall.serve.ledger.keys import declare_customers
from datahall.serve.ledger.ledger import Ledger
from datahall.serve.ledger.money import Usage
from datahall.serve.telemetry.metrics import exposed
from datahall.serve.telemetry.readings import of_customers

NOW = START_NS
COST = 30_000  # nano-dollars of TEN


def let_in(ledger: Ledger, key: Key, now_ns: int = NOW, usage: Usage = TEN) -> Reservation:
    found = ledger.admit(key, "small", usage, now_ns)
    assert isinstance(found, Reservation), found
    return found


def refused(ledger: Ledger, key: Key, now_ns: int = NOW, usage: Usage = TEN) -> Refusal:
    found = ledger.admit(key, "small", usage, now_ns)
    assert isinstance(found, Refusal)
    return found


def keys_of(path: Path, *customers: str, **limits: int | str) -> list[Key]:
    """A key for each customer that is named."""
    return [
        key_in(path, f"key-{place}", customer=customer, **limits)[0]
        for place, customer in enumerate(customers)
    ]


def test_keys_of_one_customer_share_a_budget_and_others_do_not(tmp_path: Path) -> None:
    limited(tmp_path, "acme", budget_nano_usd=2 * COST)
    one, two, other = keys_of(tmp_path, "acme", "acme", "other")
    ledger = opened(tmp_path)
    let_in(ledger, one)
    held = let_in(ledger, two)
    refusal = refused(ledger, one)
    assert (refusal.status, refusal.code, refusal.retry_after_s) == (402, "insufficient_quota", 1)
    assert "the customer's" in refusal.message
    let_in(ledger, other)
    ledger.settle(held, Usage(1), "answered")
    assert ledger.customers(NOW)["acme"].spent_nano_usd == 1_000
    ledger.settle(let_in(ledger, one, usage=Usage(10, 0, 9)), Usage(), "failed")
    ledger.release(let_in(ledger, two, usage=Usage(10, 0, 9)))
    assert ledger.customers(NOW)["acme"].reserved_nano_usd == COST
    ledger.close(NOW)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"requests_per_minute": 2}, "the customer's limit of 2 requests a minute"),
        ({"tokens_per_minute": 50}, "the customer's limit of 50 tokens a minute"),
        ({"parallel": 2}, "the customer's limit of 2 requests at once"),
    ],
)
def test_keys_of_one_customer_share_limits(tmp_path: Path, limits: dict[str, int], said: str) -> None:
    limited(tmp_path, "acme", **limits)
    one, two = keys_of(tmp_path, "acme", "acme")
    ledger = opened(tmp_path)
    first = let_in(ledger, one)
    let_in(ledger, two)
    assert said in refused(ledger, one).message
    ledger.release(first)
    let_in(ledger, two)
    assert refused(ledger, one).status == 429
    ledger.close(NOW)


def test_a_key_keeps_its_own_limits_within_its_customers(tmp_path: Path) -> None:
    limited(tmp_path, "acme", requests_per_minute=10)
    one, two = keys_of(tmp_path, "acme", "acme", requests_per_minute=1)
    ledger = opened(tmp_path)
    let_in(ledger, one)
    assert "the key's limit of 1 requests a minute" in refused(ledger, one).message
    let_in(ledger, two)
    ledger.close(NOW)


def test_an_answer_of_a_cache_counts_as_a_request_of_the_customer_and_costs_nothing(tmp_path: Path) -> None:
    limited(tmp_path, "acme", requests_per_minute=1, budget_nano_usd=COST)
    one, two = keys_of(tmp_path, "acme", "acme")
    ledger = opened(tmp_path)
    assert ledger.hit(one, "small", TEN, NOW) is None
    assert ledger.hit(two, "small", TEN, NOW) is not None
    assert ledger.customers(NOW)["acme"].spent_nano_usd == 0
    ledger.close(NOW)


def test_what_is_left_to_a_customer_holds_the_length_of_an_answer(tmp_path: Path) -> None:
    limited(tmp_path, "acme", tokens_per_minute=100)
    (one,) = keys_of(tmp_path, "acme", tokens_per_minute=1000)
    ledger = opened(tmp_path)
    assert ledger.room(one, "small", 30, NOW) == 70
    ledger.close(NOW)


def test_headers_say_whatever_has_less_left(tmp_path: Path) -> None:
    limited(tmp_path, "acme", requests_per_minute=100, tokens_per_minute=30, budget_nano_usd=COST)
    one, _ = keys_of(
        tmp_path, "acme", "acme", requests_per_minute=3, tokens_per_minute=1000, budget_nano_usd=9 * COST
    )
    ledger = opened(tmp_path)
    let_in(ledger, one, usage=Usage(10))
    assert dict(ledger.headers(one, NOW)) == {
        "x-ratelimit-limit-requests": "3",
        "x-ratelimit-remaining-requests": "2",
        "x-ratelimit-reset-requests": "61s",
        "x-ratelimit-limit-tokens": "30",
        "x-ratelimit-remaining-tokens": "20",
        "x-ratelimit-reset-tokens": "61s",
        "x-budget-remaining-usd": "0.000020000",
    }
    ledger.close(NOW)


def test_limits_that_a_customer_is_given_count_what_is_open_and_spent_by_then(tmp_path: Path) -> None:
    one, two = keys_of(tmp_path, "acme", "acme")
    ledger = opened(tmp_path)
    ledger.settle(let_in(ledger, one), TEN, "answered")
    ledger.commit(NOW)
    ledger.settle(let_in(ledger, two), TEN, "answered")
    held = let_in(ledger, two)
    limited(tmp_path, "acme", budget_nano_usd=4 * COST, parallel=2)
    ledger.reload(NOW)
    standing = ledger.customers(NOW)["acme"]
    assert (standing.spent_nano_usd, standing.reserved_nano_usd, standing.num_open) == (2 * COST, COST, 1)
    let_in(ledger, one)
    assert refused(ledger, one).status == 429
    ledger.settle(held, TEN, "answered")
    assert refused(ledger, one).status == 402
    limited(tmp_path, "acme")  # without an end again
    ledger.reload(NOW)
    let_in(ledger, one)
    ledger.close(NOW)


def test_a_key_that_is_made_later_shares_what_its_customer_has(tmp_path: Path) -> None:
    limited(tmp_path, "acme", budget_nano_usd=COST)
    (one,) = keys_of(tmp_path, "acme")
    ledger = opened(tmp_path)
    let_in(ledger, one)
    late, _ = key_in(tmp_path, "late", customer="acme")
    ledger.reload(NOW)
    assert refused(ledger, late).status == 402
    ledger.close(NOW)


def test_what_a_customer_has_spent_survives_a_kill_and_ends_with_its_month(tmp_path: Path) -> None:
    limited(tmp_path, "acme", budget_nano_usd=3 * COST, period="month")
    one, two = keys_of(tmp_path, "acme", "acme", budget_nano_usd=9 * COST, period="total")
    ledger = opened(tmp_path)
    ledger.settle(let_in(ledger, one), TEN, "answered")
    let_in(ledger, two)  # charged what was held, as the gateway is killed
    ledger.drop()
    ledger = opened(tmp_path)
    assert ledger.customers(NOW)["acme"].spent_nano_usd == 2 * COST
    let_in(ledger, two)
    refusal = refused(ledger, one)
    assert refusal.retry_after_s == 1  # what is held may come back
    ledger.drop()
    ledger = opened(tmp_path)
    wait_s = refused(ledger, one).retry_after_s
    assert wait_s is not None
    next_month = NOW + wait_s * SECOND_NS
    assert datetime.fromtimestamp(next_month / SECOND_NS, UTC) == datetime(2026, 12, 1, tzinfo=UTC)
    assert refused(ledger, one, next_month - SECOND_NS).status == 402
    let_in(ledger, one, next_month)
    assert ledger.customers(next_month)["acme"].reserved_nano_usd == COST
    assert (
        ledger.standing(one, next_month).spent_nano_usd + ledger.standing(two, next_month).spent_nano_usd
        == 3 * COST
    )
    ledger.close(next_month)


def test_a_request_of_last_month_is_not_charged_to_this_one(tmp_path: Path) -> None:
    limited(tmp_path, "acme", budget_nano_usd=COST, period="day")
    (one,) = keys_of(tmp_path, "acme")
    ledger = opened(tmp_path)
    held = let_in(ledger, one)
    tomorrow = NOW + 86_400 * SECOND_NS
    let_in(ledger, one, tomorrow)
    ledger.settle(held, TEN, "answered")
    standing = ledger.customers(tomorrow)["acme"]
    assert (standing.spent_nano_usd, standing.reserved_nano_usd, standing.num_open) == (0, COST, 1)
    ledger.close(tomorrow)


def test_what_a_file_says_of_customers_is_written_down_once(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    said = {"acme": Limits(requests_per_minute=5)}
    store = Folder(tmp_path).store()
    declare_customers(store, said)
    _, change = store.keys()
    declare_customers(store, said)
    assert store.keys()[1] == change
    assert store.customers() == said
    store.close()
    ledger.commit(NOW)
    assert ledger.customers(NOW)["acme"].request_limit == 5
    ledger.close(NOW)


def test_metrics_say_what_customers_have_left(tmp_path: Path) -> None:
    limited(tmp_path, "acme", requests_per_minute=5, budget_nano_usd=10**9)
    (one,) = keys_of(tmp_path, "acme")
    ledger = opened(tmp_path)
    let_in(ledger, one)
    found = {
        line.name: (line.labels, line.value)
        for line in shown(exposed(of_customers(ledger, lambda: NOW)).decode())
    }
    acme = {"customer": "acme"}
    assert found == {
        "datahall_customer_budget_usd": (acme, 1.0),
        "datahall_customer_budget_left_usd": (acme, 0.99997),
        "datahall_customer_requests_left": (acme, 4.0),
    }
    ledger.close(NOW)
