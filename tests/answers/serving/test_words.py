"""Numbers that are out of the ordinary are still said in words that read well."""

from __future__ import annotations

import re

import pytest

import datahall as dh
from datahall.catalog import Catalog
from datahall.units import fmt

SHELF = Catalog(user=False)


@pytest.mark.parametrize(
    ("headroom", "said"),
    [
        (0, "at that load"),
        ("20 %", "at 25 % more load"),
        ("60 %", "at 2.5× the load"),
        ("99.9 %", "at 1,000× the load"),
    ],
)
def test_headroom_is_a_percentage_until_it_is_a_multiple(headroom: str | int, said: str) -> None:
    plan = dh.plan_serve(
        "llama-3.1-8b",
        rate=1,
        isl=100,
        osl=10,
        chips="h200",
        precision="fp8",
        headroom=headroom,
        catalog=SHELF,
    )
    assert said in plan.headline


def test_one_of_several_is_none() -> None:
    assert fmt(1, "tokens") == "1 token"
    assert fmt(2, "tokens") == "2 tokens"


@pytest.mark.parametrize(("num", "ranks"), [(1, "on the one rank"), (3, "on each of 3 ranks")])
def test_ranks_of_a_fleet_are_counted(num: int, ranks: str) -> None:
    run = dh.simulate_serve("llama-3.1-8b", rate=2, requests=30, isl=100, osl=10, replicas=num, catalog=SHELF)
    (check,) = [table for table in run.tables if "closed form" in table.title]
    assert ranks in check.note


def test_what_came_during_the_warm_up_was_served_though_not_measured() -> None:
    run = dh.simulate_serve(
        "llama-3.1-8b", rate=2, requests=30, isl=100, osl=10, warmup="10 min", catalog=SHELF
    )
    assert run.results["num_finished"] == 30
    assert run.headline.startswith("No request was measured")
    assert "served" not in run.headline
    assert run.binding.startswith("30 requests came, all before the end of the warm-up, after 10 min")


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "llama-3.1-8b", "rate": 1, "isl": 100, "osl": 10},
        {"model": "llama-3.1-70b", "users": 10_000, "ttft": "1 s", "tpot": "50 ms"},
    ],
)
def test_a_rate_of_a_plan_has_its_unit(asked: dict[str, object]) -> None:
    said = dh.plan_serve(**asked, chips="h200", catalog=SHELF).binding  # type: ignore[arg-type]
    assert "requests/s without them" in said
    assert not re.search(r"\d (without|in closed form|within|a step)\b", said), said


def test_a_rate_of_techniques_has_its_unit() -> None:
    said = dh.show_techniques("llama-3.1-8b", chip="h200", rate=5, catalog=SHELF).binding
    assert said.count("requests/s") == 4
