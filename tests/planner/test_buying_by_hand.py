"""A service and a run as they are bought, by hand: what is paid once, what stops on spot, what is as published."""

from __future__ import annotations

from math import exp
from typing import Any

import pytest
from tests.economics.priced import asked

import datahall as dh
from datahall.breakdown import false_nodes
from datahall.planner.buying.growth import growth_of, volume
from datahall.planner.buying.run import as_trained, bought_run
from datahall.planner.buying.service import Choice, asked_of, choice_of
from datahall.planner.serving.money.cost import Served
from datahall.reliability.closed_form import expected
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.money.hosted import Business
from datahall.scenario.sections.traffic import Traffic

CHEAP: dict[str, Any] = {"model": "llama-3.1-8b", "chips": "h100-sxm", "tp": 1}
MONTH_S = 2_629_800.0


def question(tokens: float, **said: Any) -> Scenario:
    return asked("show build-or-buy", **{**CHEAP, "tokens_per_month": tokens, **said})


def choice(tokens: float, **said: Any) -> Choice:
    return choice_of(question(tokens, **said), tokens)


def best(tokens: float, **said: Any) -> Served:
    found = choice(tokens, **said).best
    assert found is not None
    return found


def test_staff_is_paid_once_however_the_chips_are_had() -> None:
    """Beside the month, whatever its chips: a service is never cheaper than those who run it."""
    for way in ("own", "rent"):
        found = best(20e9, buy=way, staff=50_000.0)
        assert found.own.fixed is not None
        assert found.own.fixed.value == found.fixed_usd == 50_000.0
        if found.had.owned is not None:
            assert "staff" not in {part.name for part in found.had.owned.parts.parts}
        free = best(20e9, buy=way, staff=0.0)
        assert found.month_usd == pytest.approx(free.month_usd + 50_000.0)


def test_ones_own_chips_flip_at_one_number_of_customers() -> None:
    said: dict[str, Any] = {
        "tokens_per_customer": 3e6, "model": "llama-3.1-8b", "buy": "own", "api": "gpt-4o", "staff": 20_000.0,
    }  # fmt: skip
    few, many = (dh.show_stage(customers=count, **said) for count in (1400, 200_000))
    flips = few.results["flips_at"]
    assert flips == pytest.approx(many.results["flips_at"], rel=0.02)
    for answer in (few, many):
        for row in answer.tables[0].records():
            assert row["one_s_own_usd"] is None or row["one_s_own_usd"] > 20_000.0
        flipped = next(
            row for row in answer.tables[0].records() if row["customers"] == answer.results["flips_at"]
        )
        assert flipped["run_on"] == "one's own chips"
    figure = many.figure
    assert figure is not None
    assert not false_nodes(figure)
    assert figure.value == pytest.approx(many.results["customer_usd"])


@pytest.mark.parametrize("tokens", [20e9, 3e12])
def test_a_replica_on_spot_stops_with_its_own_host_alone_and_writes_no_checkpoints(tokens: float) -> None:
    """600 s of restart, a host 6 h: e^(600/21600) = 1.0282 times the price, however many replicas there are."""
    found = best(tokens, buy="spot", preempted_every="6h")
    assert (found.num_chips > 8) == (tokens > 1e12)
    assert found.had.market is not None
    assert found.had.market.price is not None
    assert found.had.usd_per_hour == pytest.approx(found.had.market.price.value * exp(600 / 21_600))


@pytest.mark.parametrize(("takes", "is_late"), [("1s", False), ("2s", True)])
def test_an_api_as_slow_as_is_allowed_is_not_late(takes: str, is_late: bool) -> None:
    """And only where it is late is a chip taken that is dearer."""
    found = choice(20e6, latency="1s", api_latency=takes)
    assert found.api_is_late is found.builds is is_late


def test_a_firm_does_not_grow_on_an_api_that_is_too_slow() -> None:
    """15 customers of 100,000 tokens are 1.5M, which an API would serve for cents."""
    said = {**CHEAP, "customers": 15, "tokens_per_customer": 1e5, "latency": "1s", "api_latency": "2s"}
    scenario = asked("show stage", **said)
    growth, found = growth_of(scenario)
    assert volume(scenario.one(Business)) == growth.tokens == 1.5e6
    assert found.api_is_late
    assert growth.api is None
    assert growth.is_own


def test_a_peak_takes_replicas_and_not_tokens() -> None:
    """Twice the peak over the mean: twice the rate that is planned for."""
    for ratio in (1.0, 2.0):
        there = asked_of(question(20e9, buy="rent", peak_to_mean=ratio), 20e9)
        rate = 20e9 / there.request_tokens / MONTH_S
        assert there.scenario.one(Traffic).rate_per_s == pytest.approx(ratio * rate)


@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_a_replica_serves_what_it_holds_less_headroom_and_peak(ratio: float) -> None:
    found, there = best(20e9, buy="rent", peak_to_mean=ratio), asked_of(question(20e9), 20e9)
    one = found.candidate
    assert not one.num_added
    held = one.held_per_s * (1 - one.headroom_fraction) * there.request_tokens
    assert found.own.replica_tokens == pytest.approx(held * MONTH_S / ratio)


def test_what_is_dearer_by_a_volume_is_not_built() -> None:
    """20M tokens a month fill no chip; 3T fill many, and cost more by GPT-4o mini."""
    few, many = (choice(tokens, buy="own", api="gpt-4o-mini") for tokens in (20e6, 3e12))
    for found, builds in ((few, False), (many, True)):
        both = found.at_volume
        assert both is not None
        assert found.builds is both.builds is builds
    flips = many.break_even
    assert flips is not None
    assert 20e6 < flips.value < 3e12


def test_published_chip_hours_are_of_the_published_run_alone() -> None:
    """1T of its 15.6T tokens: laid out, and at most a fifteenth of its 35.09M hours and some."""
    found = bought_run(asked("show cost", priced="llama-3.1-405b", tokens=1e12))
    assert found.run is not None
    assert found.cost.published is None
    assert found.cost.chip_hours.value < 0.15 * 35.09e6
    whole = bought_run(asked("show cost", priced="llama-3.1-405b"))
    assert (whole.run, whole.cost.chip_hours.value) == (None, 35.09e6)


def test_a_price_that_is_said_is_of_new_hardware() -> None:
    """GPT-4's A100s were 1.75 years old when it began."""
    for said, years in (({}, 1.75), ({"capex": 15_000.0}, 0.0)):
        owned = bought_run(asked("show cost", priced="gpt-4", depreciation="market", **said)).cost.owned
        assert owned is not None
        assert owned.terms.age_years == pytest.approx(years, abs=0.01)


def test_the_network_of_a_published_run_is_that_of_its_own_chips() -> None:
    """DeepSeek's H800 had 50 GB/s each; another chip has what it is sold with."""
    for said, nic in (({}, 50e9), ({"chip": "trainium2"}, None)):
        run = as_trained(asked("show cost", priced="deepseek-v3", **said))
        assert run.one(FabricDesign).nic_bytes_per_s == nic


def test_failures_lengthen_a_run() -> None:
    """Its steps over the share of the time that moves it forward."""
    found = bought_run(asked("show cost", priced="gpt-4", predict=True))
    assert found.run is not None
    steps_s = found.run.job.setup.job.num_steps(found.cost.num_tokens) * found.run.step_s
    assert found.cost.wall_s == pytest.approx(steps_s / expected(found.run).ettr)
    assert found.cost.wall_s > 1.01 * steps_s


def test_a_rent_that_is_said_and_one_of_some_providers_stand_before_that_of_its_time() -> None:
    """GPT-4's A100s were rented at $1.44 (Epoch's figure of the time)."""
    then, own, others = (
        bought_run(asked("show cost", priced="gpt-4", **said)).cost.rent
        for said in ({}, {"price": 2.0}, {"provider": "lambda"})
    )
    assert then is not None
    assert own is not None
    assert others is not None
    assert (then.value, own.value) == (1.44, 2.0)
    assert others.name.startswith("lambda")
