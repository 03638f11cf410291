"""What is answered from less, or by a smaller model: limits, sums by hand, and two models simulated."""

from __future__ import annotations

import msgspec
import pytest

from datahall.catalog import Catalog
from datahall.inference.closed_form.steady_state import Load
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.fleet import Fleet
from datahall.inference.ladder.shorter import summarised, windowed
from datahall.inference.ladder.smaller import instead, routed, smaller_of
from datahall.inference.ladder.techniques import Effect, Setting, effect
from datahall.inference.simulation.lifecycle import E2E
from datahall.inference.simulation.simulate import simulate_serving
from datahall.scenario.requests import requests_of
from datahall.scenario.sections.traffic import Traffic
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.traffic.lengths import Fixed
from datahall.workload.traffic.traffic import generate

SLO = Promise(ttft_s=2.0, tpot_s=0.05)
LOAD = Load(prompt=2000.0, output=200.0)
RATE = 2.0


@pytest.fixture(scope="module")
def plain(shelf: Catalog) -> Setting:
    chip = shelf.chip("h200-sxm")
    model = shelf.model("llama-3.1-70b")
    return Setting(replica=Replica(model=model, chip=chip, engine=engine_on("vllm", chip), tp=4), load=LOAD)


@pytest.fixture(scope="module")
def large(plain: Setting) -> Effect:
    return effect("", plain, SLO, RATE)


@pytest.fixture(scope="module")
def small(shelf: Catalog, plain: Setting) -> tuple[Setting, Effect]:
    return instead(plain, shelf.model("llama-3.1-8b"), SLO, RATE)


def test_a_narrower_window_holds_more(plain: Setting, large: Effect) -> None:
    held = []
    for tokens in (256, 1024, 2000):
        setting = windowed(plain, tokens)
        assert isinstance(setting, Setting)
        held.append(effect("", setting, SLO, RATE).held_per_s)
    assert held == sorted(held, reverse=True)
    assert held[-1] == pytest.approx(large.held_per_s, rel=0.01)


def test_a_window_that_no_request_outgrows_changes_nothing(plain: Setting, shelf: Catalog) -> None:
    assert windowed(plain, 2200) == "no request is longer than the window"
    latent = msgspec.structs.replace(plain.replica, model=shelf.model("deepseek-v3"))
    assert isinstance(windowed(msgspec.structs.replace(plain, replica=latent), 256), str)


def test_a_summary_is_paid_for_by_the_requests_that_read_it(plain: Setting) -> None:
    """Prompts of 500 tokens, and every fourth time 2,000 that are read to write 500."""
    setting = summarised(plain, 0.25, 4)
    assert setting.num_calls == 1.25
    assert setting.load.prompt * setting.num_calls == pytest.approx(500.0 + 2000.0 / 4)
    assert setting.load.output * setting.num_calls == pytest.approx(200.0 + 500.0 / 4)


def test_a_summary_that_one_request_reads_costs_more_than_it_saves(plain: Setting, large: Effect) -> None:
    gains = [
        effect("", summarised(plain, 0.25, num), SLO, RATE).held_per_s / large.held_per_s
        for num in (1, 4, 16, 1000)
    ]
    assert gains == sorted(gains)
    assert gains[0] < 1.0 < gains[-1]


def test_a_summary_that_is_never_written_is_a_shorter_prompt(plain: Setting) -> None:
    often = effect("", summarised(plain, 0.25, 10**9), SLO, RATE)
    load = msgspec.structs.replace(LOAD, prompt=500.0)
    short = effect("", msgspec.structs.replace(plain, load=load), SLO, RATE)
    assert often.held_per_s == pytest.approx(short.held_per_s, rel=1e-3)


def test_the_smaller_model_reads_the_same_tokens(shelf: Catalog) -> None:
    def of(name: str) -> str:
        found = smaller_of(shelf.model(name), shelf.models())
        return found.name if found is not None else ""

    assert of("llama-3.1-70b") == "llama-3.1-8b"
    assert of("qwen3-32b") == "qwen3-4b"
    assert of("deepseek-v3") == ""


def test_the_smaller_model_stands_on_the_group_that_holds_the_most_for_a_chip(
    small: tuple[Setting, Effect],
) -> None:
    setting, alone = small
    assert setting.replica.model.name == "llama-3.1-8b"
    for tp in (1, 2, 4):
        other = msgspec.structs.replace(setting, replica=msgspec.structs.replace(setting.replica, tp=tp))
        assert effect("", other, SLO, RATE).held_per_s <= alone.held_per_s


def test_nothing_and_all_that_is_routed_is_the_one_model_or_the_other(
    plain: Setting, large: Effect, small: tuple[Setting, Effect]
) -> None:
    none, every = (routed(plain, large, small, SLO, RATE, share) for share in (0.0, 1.0))
    assert none.held_per_s == pytest.approx(large.held_per_s)
    assert none.ttft_s == pytest.approx(large.ttft_s)
    assert every.held_per_s == pytest.approx(small[1].held_per_s)
    assert every.tpot_s == pytest.approx(small[1].tpot_s)


def test_the_more_is_easy_the_more_a_chip_holds(
    plain: Setting, large: Effect, small: tuple[Setting, Effect]
) -> None:
    held = [routed(plain, large, small, SLO, RATE, share / 10).held_per_s for share in range(11)]
    assert held == sorted(held)


def test_what_is_routed_takes_as_long_as_the_two_models_simulated(
    plain: Setting, large: Effect, small: tuple[Setting, Effect]
) -> None:
    """Half of the requests each, on chips divided as the rates that they hold."""
    found = routed(plain, large, small, SLO, RATE, 0.5)
    part = 0.5 / large.held_per_s * found.held_per_s  # of the chips, for the large one
    took = []
    for setting, of_chips in ((plain, part), (small[0], 1.0 - part)):
        rate = RATE / 4 * 0.5 / of_chips * setting.replica.num_chips
        sent = Traffic(rate_per_s=rate, isl=Fixed(2000), osl=Fixed(200), requests=800)
        run = simulate_serving(
            Fleet.of(setting.replica), generate(requests_of(sent, max_context=0), 0), warmup_s=20.0
        )
        took.append(run.mean_s(E2E))
    assert found.e2e_s == pytest.approx(sum(took) / 2.0, rel=0.2)
