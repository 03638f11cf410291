"""What is said of keys and bills is what the ledger has."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.serve.ledger.books import TEN, opened

import datahall as dh
from datahall.errors import DatahallError
from datahall.scenario.kinds.budgets import spending
from datahall.serve.ledger.account import Refusal
from datahall.serve.ledger.accounts import Reservation
from datahall.serve.ledger.key import Key
from datahall.serve.ledger.ledger import Ledger
from datahall.serve.ledger.money import Usage
from datahall.serve.ledger.period import SECOND_NS, span_of

NOW = 1_795_000_000 * SECOND_NS


def row(answer: dh.Answer, title: str = "keys", place: int = 0) -> dict[str, object]:
    (table,) = (one for one in answer.tables if one.title == title)
    return dict(zip((column.name for column in table.columns), table.rows[place], strict=True))


def key_of(ledger: Ledger, secret: object, now_ns: int = NOW) -> Key:
    found = ledger.authenticate(str(secret).encode(), "chat", now_ns)
    assert isinstance(found, Key)
    return found


def test_a_key_that_is_made_lets_in_as_it_says(tmp_path: Path) -> None:
    state = str(tmp_path)
    made = dh.gateway_keys_create(
        name="tests", customer="acme", models="sma*", routes="chat", rpm=2, tpm="1k", parallel=3, budget="$0.5/day",
        expires="1d", state=state,
    )  # fmt: skip
    secret = made.results["key"]
    assert str(secret) in made.headline
    ledger = opened(tmp_path)
    key = key_of(ledger, secret, made_ns := key_of(ledger, secret, 0).created_ns)
    assert (key.name, key.customer, key.models, key.routes) == ("tests", "acme", ("sma*",), ("chat",))
    assert key.expires_ns == made_ns + 86400 * SECOND_NS
    limits = key.limits
    assert (limits.requests_per_minute, limits.tokens_per_minute, limits.parallel) == (2, 1000, 3)
    assert (limits.budget_nano_usd, limits.period) == (500_000_000, "day")
    assert isinstance(ledger.admit(key, "large", TEN, made_ns), Refusal)
    ledger.close(NOW)


def test_a_list_says_what_each_has_spent_while_a_gateway_runs(tmp_path: Path) -> None:
    state = str(tmp_path)
    secret = dh.gateway_keys_create(name="a", budget="500USD", state=state).results["key"]
    dh.gateway_keys_create(name="b", state=state)
    dh.gateway_keys_revoke("b", state=state)
    ledger = opened(tmp_path)
    one = ledger.admit(key_of(ledger, secret), "small", TEN, NOW)
    assert isinstance(one, Reservation)
    ledger.settle(one, Usage(5_000_000), "answered")
    ledger.commit(NOW)
    found = dh.gateway_keys_list(state=state)
    assert (row(found)["spent"], row(found)["state"], row(found, place=1)["state"]) == (
        5.0,
        "active",
        "revoked",
    )
    assert found.results == {"num_keys": 2, "num_active": 1}
    assert str(secret) not in str(found)
    ledger.close(NOW)


def test_limits_that_are_not_named_stay(tmp_path: Path) -> None:
    state = str(tmp_path)
    dh.gateway_keys_create(name="a", rpm=600, tpm=1000, budget="5USD/day", state=state)
    dh.gateway_keys_limit("a", rpm=0, state=state)
    found = row(dh.gateway_keys_limit("a", parallel=7, state=state))
    assert (found["requests/min"], found["tokens/min"], found["at once"]) == (None, 1000, 7)
    assert (found["budget"], found["over"]) == (5.0, "day")


def test_customers_share_limits_and_are_listed_with_what_all_their_keys_spent(tmp_path: Path) -> None:
    state = str(tmp_path)
    secrets = [
        dh.gateway_keys_create(name=name, customer="acme", state=state).results["key"] for name in ("a", "b")
    ]
    dh.gateway_keys_create(name="c", state=state)
    said = dh.gateway_customers_limit("acme", rpm=600, budget="5USD/month", state=state)
    assert said.results == {"name": "acme", "num_keys": 2}
    dh.gateway_customers_limit("acme", parallel=3, state=state)
    ledger = opened(tmp_path)
    for secret in secrets:
        one = ledger.admit(key_of(ledger, secret), "small", TEN, NOW)
        assert isinstance(one, Reservation)
        ledger.settle(one, Usage(1_000_000), "answered")
    ledger.close(NOW)
    found = dh.gateway_customers_list(state=state)
    assert found.results == {"num_customers": 2}
    acme, c = (row(found, "customers", place) for place in range(2))
    assert (acme["customer"], acme["keys"], acme["requests/min"], acme["at once"]) == ("acme", 2, 600, 3)
    assert (acme["budget"], acme["over"], acme["spent"]) == (5.0, "month", 2.0)
    assert (c["customer"], c["keys"], c["requests/min"]) == ("c", 1, None)


def test_a_key_with_another_secret_is_the_same_key(tmp_path: Path) -> None:
    state = str(tmp_path)
    before = dh.gateway_keys_create(name="a", rpm=5, state=state).results["key"]
    ledger = opened(tmp_path)
    was = key_of(ledger, before)
    after = dh.gateway_keys_rotate("a", state=state).results["key"]
    ledger.commit(NOW)
    assert isinstance(ledger.authenticate(str(before).encode(), "chat", NOW), Refusal)
    now = key_of(ledger, after)
    assert (now.id, now.limits) == (was.id, was.limits)
    ledger.close(NOW)
    dh.gateway_keys_revoke("a", state=state)
    with pytest.raises(DatahallError, match="revoked for good"):
        dh.gateway_keys_rotate("a", state=state)


def test_a_bill_adds_up_by_customer_key_and_model(tmp_path: Path) -> None:
    state = str(tmp_path)
    secrets = {
        name: dh.gateway_keys_create(name=name, customer=whose, state=state).results["key"]
        for name, whose in (("a", "acme"), ("b", "acme"), ("c", "other"))
    }
    ledger = opened(tmp_path, NOW)
    keys = {name: key_of(ledger, secret) for name, secret in secrets.items()}
    for name, model, prompt in (
        ("a", "small", 10**6),
        ("b", "small", 2 * 10**6),
        ("b", "large", 10**6),
        ("c", "small", 5),
    ):
        one = ledger.admit(keys[name], model, TEN, NOW)
        assert isinstance(one, Reservation)
        ledger.settle(one, Usage(prompt), "answered")
    ledger.hit(keys["c"], "small", Usage(10**6), NOW)
    assert isinstance(ledger.admit(keys["c"], "small", TEN, NOW), Reservation)
    ledger.drop()  # killed: what is open is charged what was reserved
    bill = dh.gateway_bill(month="2026-11", state=state)
    assert bill.headline == "2026-11: $13.00 for 6 requests."
    assert bill.results["charged_usd"] == 13.000_035_007
    assert bill.results["num_unsettled"] == 1
    assert row(bill, "by customer")["charged"] == 13.000_000_007
    assert [row(bill, "by key", place)["key"] for place in range(3)] == ["b", "a", "c"]
    assert row(bill, "by key", 2)["spared"] == 1.0
    assert (row(bill, "by model")["model"], row(bill, "by model")["charged"]) == ("large", 10.000_000_007)
    assert dh.gateway_bill(month="2026-10", state=state).tables == ()


def test_a_month_is_whole_to_its_edges(tmp_path: Path) -> None:
    secret = dh.gateway_keys_create(name="a", state=str(tmp_path)).results["key"]
    span = span_of("month", NOW)
    ledger = opened(tmp_path, span.start_ns - 1)
    key = key_of(ledger, secret)
    for moment in (span.start_ns - 1, span.start_ns, span.end_ns - 1, span.end_ns):
        one = ledger.admit(key, "small", TEN, moment)
        assert isinstance(one, Reservation)
        ledger.settle(one, TEN, "answered")
    ledger.close(NOW)
    found = [
        dh.gateway_bill(month=f"2026-{month}", state=str(tmp_path)).results["num_requests"]
        for month in (10, 11, 12)
    ]
    assert found == [1, 2, 1]


@pytest.mark.parametrize(
    "text", ["", "five", "5EUR", "5USD/year", "-5USD", "5USD/", "1e9USD", "5.0000000001USD"]
)
def test_what_is_no_budget_is_refused_with_what_would_be_one(text: str) -> None:
    with pytest.raises(DatahallError) as found:
        spending(text)
    assert "50USD/month" in found.value.hint


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": "a b"}, "name"), ({"name": "-x"}, "name"), ({"name": "x" * 65}, "name"), ({"rpm": -1}, "rpm"),
        ({"routes": "admin"}, "routes"), ({"expires": "0s"}, "expires"), ({"budget": "x"}, "budget"),
        ({"customer": "a\nb"}, "customer"),
    ],
)  # fmt: skip
def test_terms_that_cannot_be_are_refused(tmp_path: Path, wrong: dict[str, str], field: str) -> None:
    with pytest.raises(DatahallError) as found:
        dh.gateway_keys_create(**{"name": "a", "state": str(tmp_path / "new"), **wrong})
    assert found.value.field == field
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatahallError, match="cannot be made"):
        dh.gateway_keys_list(state=str(tmp_path / "file" / "state"))
