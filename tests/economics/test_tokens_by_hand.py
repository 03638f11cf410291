"""What tokens cost on a replica: every dollar of its hour is in them, and in one kind of them alone."""

from __future__ import annotations

import pytest
from tests.economics.priced import CATALOG, CHIP, hourly

from datahall.economics.tokens import TokenCosts, blended_usd_per_mtok, token_costs
from datahall.inference.closed_form.capacity import Held, held
from datahall.inference.closed_form.steady_state import Load
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.inference.step.figure import step_figure
from datahall.scenario.sections.wanted.promise import Promise

REPLICA = Replica(model=CATALOG.model("llama-3.1-8b"), chip=CHIP, engine=engine("vllm"), tp=1)


def can(cached: float) -> Held:
    """Prompts of 2,000 tokens, answers of 200."""
    return held(REPLICA, Load(prompt=2000.0, output=200.0, cached=cached), Promise())


def costs(rate_per_s: float, cached: float = 1500.0, usd: float = 10.0) -> TokenCosts:
    there = can(cached)
    return token_costs(there, there.at(rate_per_s), hourly(usd), rate_per_s)


@pytest.mark.parametrize("rate_per_s", [0.05, 2.0])
def test_every_dollar_of_an_hour_is_in_the_tokens_once(rate_per_s: float) -> None:
    """$10 an hour over its requests: 500 tokens computed, 1,500 read and 200 written by each."""
    found, millions = costs(rate_per_s), rate_per_s * 3600 / 1e6
    assert found.cached is not None
    spent = millions * (found.input.value * 500 + found.cached.value * 1500 + found.output.value * 200)
    assert spent == pytest.approx(10.0)
    assert found.blended.value * millions * 2200 == pytest.approx(10.0)


@pytest.mark.parametrize("rate_per_s", [0.05, 2.0])
def test_without_a_cache_there_are_two_kinds(rate_per_s: float) -> None:
    found, millions = costs(rate_per_s, cached=0.0), rate_per_s * 3600 / 1e6
    assert found.cached is None
    spent = millions * (found.input.value * 2000 + found.output.value * 200)
    assert spent == pytest.approx(10.0)


@pytest.mark.parametrize("rate_per_s", [0.05, 2.0])
def test_a_token_that_is_read_costs_less_than_one_computed_and_that_less_than_one_written(
    rate_per_s: float,
) -> None:
    found = costs(rate_per_s)
    assert found.cached is not None
    assert 0.0 < found.cached.value < found.input.value < found.output.value


def test_twice_the_price_of_an_hour_is_twice_the_price_of_every_token() -> None:
    one, two = costs(2.0), costs(2.0, usd=20.0)
    assert two.input.value == pytest.approx(2 * one.input.value)
    assert two.output.value == pytest.approx(2 * one.output.value)


def test_more_requests_share_the_hour() -> None:
    assert costs(2.0).blended.value < costs(0.05).blended.value


def test_a_million_tokens_an_hour_at_a_dollar_cost_a_dollar() -> None:
    assert blended_usd_per_mtok("all", hourly(1.0), 1e6 / 3600).value == pytest.approx(1.0)


def test_what_is_read_of_a_cache_costs_the_time_by_which_it_lengthens_a_step() -> None:
    """One step of all that run, with the prompts of that step and the cache they attend to, and without the cache."""
    there, rate = can(1500.0), 2.0
    running = there.at(rate).decoding
    prompts = running / there.load.steps * there.load.computed
    assert prompts > 1.0

    def step_s(cached: float) -> float:
        return step_figure(
            REPLICA, num_decodes=round(running), mean_context=2000.0 + there.load.aged, chunks=((prompts, cached),)
        ).figure.value  # fmt: skip

    found = costs(rate).cached
    assert found is not None
    share = found.value * rate * 3600 / 1e6 * 1500 / 10.0
    assert share == pytest.approx((step_s(1500.0) - step_s(0.0)) / step_s(1500.0))


def test_what_a_seldom_prompt_reads_of_a_cache_is_its_own_and_shared_by_the_steps_between() -> None:
    """At a request in 20 s a step computes 0.14 tokens of a prompt, which is a step of all 500 in one of 3,600."""
    there, rate = can(1500.0), 0.05
    share = there.at(rate).decoding / there.load.steps
    assert share * there.load.computed < 1.0

    def step_s(*chunks: tuple[float, float]) -> float:
        context = 2000.0 + there.load.aged
        return step_figure(REPLICA, num_decodes=1, mean_context=context, chunks=chunks).figure.value

    found = costs(rate).cached
    assert found is not None
    reads_s = share * (step_s((500.0, 1500.0)) - step_s((500.0, 0.0)))
    mean_s = step_s() + share * (step_s((500.0, 1500.0)) - step_s())
    assert found.value * rate * 3600 / 1e6 * 1500 / 10.0 == pytest.approx(reads_s / mean_s)
