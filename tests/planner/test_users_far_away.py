"""A plan for users who are far away keeps the limit where they are."""

from __future__ import annotations

from typing import Any

import pytest
from tests.planner.test_supply import row, serve
from tests.results import number

from datahall.errors import InfeasibleError, ScenarioError

HERE: dict[str, Any] = {"chips": ["h100-sxm"], "buy": ["rent"], "regions": ["us-east-1"]}
WAY_S = 0.09274


def test_the_way_counts_in_the_time_to_the_first_token() -> None:
    """What is planned for users overseas is what is planned within what the way leaves of the limit."""
    far = serve(**HERE, rate=200, ttft="150ms", users_in=["eu-west-2"])
    way_s = number(far, "users_round_trip_s")
    assert way_s == pytest.approx(WAY_S, rel=1e-3)
    near = serve(**HERE, rate=200, ttft=0.150 - way_s)
    for name in ("num_chips", "ttft_s", "month_usd"):
        assert number(far, name) == number(near, name)
    assert number(far, "num_chips") > number(serve(**HERE, rate=200, ttft="150ms"), "num_chips")
    assert number(far, "users_ttft_s") == pytest.approx(number(far, "ttft_s") + way_s)
    assert number(far, "users_ttft_s") <= 0.150
    assert "To users near aws-eu-west-2 the TTFT is" in far.headline
    assert any(f"--ttft {0.150 - way_s:.6g}s" in command for command in far.next_commands)


def test_another_region_is_named_with_what_it_saves_and_adds() -> None:
    answer = serve(**HERE, users_in=["us-east-1"])
    assert number(answer, "users_round_trip_s") == 0.0
    assert number(answer, "cheapest_region_saves_usd") >= 0.0
    assert number(answer, "cheapest_region_adds_s") > 0.0
    _, words = row(answer, f"chips of a month in {answer.results['cheapest_region']}")
    assert words.startswith("as much as here, ")
    assert "egress" in words


def test_what_is_sent_beside_text_leaves_too() -> None:
    text, images = (number(serve(**HERE, **more), "egress_usd") for more in ({}, {"sent": "1 MB"}))
    requests = number(serve(**HERE), "month_tokens") / 340
    assert images - text == pytest.approx(requests * 1e6 / 1e9 * 0.09)


def test_users_who_are_too_far_away_are_a_no_that_says_how_far() -> None:
    with pytest.raises(InfeasibleError, match=r"alone takes 92\.7 ms of the 80 ms") as caught:
        serve(**HERE, ttft="80ms", users_in=["eu-west-2"])
    assert caught.value.field == "users_in"


def test_where_nobody_says_where_is_asked_back() -> None:
    with pytest.raises(ScenarioError, match="nobody says where gcp-us-east5 is"):
        serve(**HERE, users_in=["us-east5"])
    with pytest.raises(ScenarioError, match="needs"):
        serve(chips=["h100-sxm"], users_in=["eu-west-2"])
