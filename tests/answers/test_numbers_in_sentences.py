"""Numbers in sentences: thousands are separated, none has an exponent, and verbs agree with what they count."""

from __future__ import annotations

import re

import pytest

import datahall as dh
from datahall.answers.serving.simulation import _times
from datahall.errors import InfeasibleError

EXPONENT = re.compile(r"\d(\.\d+)?e[+-]?\d")


def test_a_burst_says_how_many_times_too_much_comes() -> None:
    found = dh.simulate_serve("llama-3.1-8b", rate=1_000_000, requests=100)
    said = re.search(r"comes ([\d,.]+) times what it holds", found.headline)
    assert said is not None
    assert float(said[1].replace(",", "")) > 1e4
    assert "," in said[1]
    assert not EXPONENT.search(found.headline)


def test_a_load_that_is_just_too_much_is_not_once_what_is_held() -> None:
    assert _times(1.0004) == "a little more than what"
    assert _times(1.31) == "1.31 times what"


def test_a_working_set_that_nothing_holds_says_so_in_thousands() -> None:
    with pytest.raises(InfeasibleError) as caught:
        dh.show_hierarchy("h100-sxm", working_set="1 EB", offload="nvme")
    assert "is 260,417 times what NVMe" in caught.value.message
    assert "over 260,417 chips" in caught.value.hint


@pytest.mark.parametrize(
    ("chips", "begins"), [(64, "8 domains of 8 under a 1-tier fat tree join 64 "), (8, "")]
)
def test_several_domains_join_and_one_fabric_joins(chips: int, begins: str) -> None:
    headline = dh.show_fabric("hgx", chips=chips).headline
    assert headline.startswith(begins)
    assert "1 domains" not in headline
    assert " joins 8 " in headline or chips > 8
    assert " joins " in dh.show_fabric("fat-tree", chips=64).headline


def test_a_plan_of_very_small_requests_says_its_rates_in_thousands() -> None:
    plan = dh.plan_serve("smollm2-135m", chips=["h100-sxm"], rate=5000, isl=10, osl=2)
    assert not EXPONENT.search(plan.headline + plan.binding)
    assert re.search(r"\d,\d{3} (requests/s|in closed form|without)", plan.binding)
