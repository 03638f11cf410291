"""Questions of money as they are asked: decisions with margins, exit codes, bad input with its place and a fix."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.answer import Table
from datahall.catalog import Catalog
from datahall.errors import DatahallError, ScenarioError, UnknownNameError
from datahall.report.output import render

SHELF = Catalog(user=False)
CHEAP = {"model": "llama-3.1-8b", "chips": "h100-sxm", "tp": 1, "buy": "rent", "catalog": SHELF}


def table(answer: dh.Answer, title: str) -> Table:
    return next(one for one in answer.tables if one.title == title)


def test_deepseeks_day_as_a_question() -> None:
    answer = dh.show_cost("h800-sxm", price=2.0, chips=1814, catalog=SHELF)
    assert answer.results["day_usd"] == 87_072.0


def test_a_run_has_three_accountings_and_four_scopes_side_by_side() -> None:
    answer = dh.show_cost("llama-3.1-405b", catalog=SHELF)
    rows = table(answer, "one run by three accountings, and by all that owning takes").rows
    assert [row[0] for row in rows] == ["rental", "amortised", "upfront", "operated"]
    shares = {row[0]: row[2:5] for row in table(answer, "four scopes of one cost").rows}
    for scope in ("chips", "compute"):
        share, low, high = shares[scope]
        assert low <= share <= high, scope
    assert shares["with staff"][0] == 1.0


def test_own_leads_with_owning() -> None:
    rented, owned = (dh.show_cost("h100-sxm", own=own, catalog=SHELF) for own in (False, True))
    assert rented.results["chip_usd_per_hour"] == rented.results["rented_usd_per_hour"]
    assert owned.results["chip_usd_per_hour"] == owned.results["owned_usd_per_hour"]


def test_where_nobody_rents_it_out_the_owner_is_the_one_asked_for() -> None:
    answer = dh.show_cost("h100-sxm", owner="neocloud", as_of="2030-01-01", catalog=SHELF)
    owned = dh.show_cost("h100-sxm", owner="neocloud", as_of="2030-01-01", own=True, catalog=SHELF)
    assert "owned by a neocloud" in answer.headline
    assert answer.results["chip_usd_per_hour"] == owned.results["chip_usd_per_hour"]


def test_a_chip_that_nobody_sells_is_a_no() -> None:
    answer = dh.show_cost("trainium3", catalog=SHELF)
    assert answer.verdict == "no"
    assert "not priced" in answer.headline


def test_dates_and_kinds_of_prices_are_shown() -> None:
    columns = [
        column.name for column in table(dh.show_cost("h100-sxm", catalog=SHELF), "offers on demand").columns
    ]
    assert {"as of", "counts"} <= set(columns)


def test_no_table_of_money_has_more_than_seven_columns() -> None:
    answers = (
        dh.show_cost("h100-sxm", catalog=SHELF),
        dh.show_cost("gpt-4", catalog=SHELF),
        dh.show_stage(customers=1500, tokens_per_customer="3M", **CHEAP),
    )
    for answer in answers:
        assert all(len(one.columns) <= 7 for one in answer.tables)
        assert "nan" not in render(answer, "table")


def test_a_dear_api_is_built_and_a_cheap_one_bought() -> None:
    build = dh.show_build_or_buy(tokens_per_month="20B", api="gpt-4o", **CHEAP)
    buy = dh.show_build_or_buy(tokens_per_month="20M", **CHEAP)
    assert build.headline.startswith("Build")
    assert buy.headline.startswith("Buy")
    flips = build.results["break_even_tokens"]
    assert isinstance(flips, float)
    assert flips < 20e9


def test_the_answer_flips_where_it_says() -> None:
    at = dh.show_build_or_buy(tokens_per_month="1B", api="gpt-4o", **CHEAP).results["break_even_tokens"]
    assert isinstance(at, float)
    for times, builds in ((0.9, False), (1.1, True)):
        answer = dh.show_build_or_buy(tokens_per_month=times * at, api="gpt-4o", **CHEAP)
        assert answer.results["builds"] is builds


def test_an_api_that_was_measured_too_slow_is_not_bought() -> None:
    answer = dh.show_build_or_buy(tokens_per_month="20M", latency="1s", api_latency="2s", **CHEAP)
    assert answer.headline.startswith("Build: the API is too slow")
    assert "no choice at any volume" in answer.binding
    assert {row[-1] for row in table(answer, "the same at other volumes").rows} == {"build"}


def test_neither_within_the_latency_is_a_no() -> None:
    answer = dh.show_build_or_buy(tokens_per_month="20M", latency="1ms", api_latency="2s", **CHEAP)
    assert answer.verdict == "no"


def test_customers_who_pay_less_than_they_cost_are_a_no() -> None:
    paying, losing = (
        dh.show_stage(customers=1500, tokens_per_customer="3M", revenue=usd, **CHEAP) for usd in (30.0, 0.01)
    )
    assert (paying.verdict, losing.verdict) == ("yes", "no")
    assert paying.results["margin_fraction"] == pytest.approx(1.0 - paying.results["customer_usd"] / 30.0)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"priced": "h100-sxm", "provider": "nobody"}, "provider"),
        ({"priced": "h100-sxm", "owner": "nobody"}, "owner"),
        ({"priced": "h9000"}, "priced"),
        ({"priced": "h100-sxm", "price": 0}, "price"),
        ({"priced": "h100-sxm", "price": -1}, "price"),
        ({"priced": "h100-sxm", "price": 1e300}, "price"),
        ({"priced": "h100-sxm", "life": "0s"}, "life"),
        ({"priced": "h100-sxm", "interest": "200 %"}, "interest"),
        ({"priced": "h100-sxm", "used": 0}, "used"),
        ({"priced": "h100-sxm", "tokens": "1T"}, "tokens"),
        ({"priced": "llama-3.1-8b", "chips": 8, "tokens": "1T", "spot_price": 1.0}, "spot_price"),
        ({"priced": "llama-3.1-8b", "chips": 8, "tokens": "1T", "predict": True}, "predict"),
        ({"priced": "llama-3.1-8b", "tokens": "1T"}, "chips"),
        ({"priced": "gpt-4", "depreciation": "market", "life": "5y"}, "life"),
    ],
)
def test_bad_input_says_where_and_what_to_do(given: dict[str, Any], field: str) -> None:
    with pytest.raises(DatahallError) as caught:
        dh.show_cost(**given, catalog=SHELF)
    assert isinstance(caught.value, ScenarioError | UnknownNameError)
    assert caught.value.field == field
    assert caught.value.hint
