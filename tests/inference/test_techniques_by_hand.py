"""Bottlenecks and techniques: each changes one thing, pools apart, prompts alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.inference.closed_form_case import flat, limits, linear, replace, small
from tests.inference.serving_case import replica as case

from datahall.breakdown import derived
from datahall.inference.closed_form.bottleneck import mean_step, resource_shares
from datahall.inference.closed_form.capacity import held
from datahall.inference.closed_form.steady_state import (
    Load,
    State,
)
from datahall.inference.engine.replica import Speculation
from datahall.inference.ladder import techniques, without
from datahall.inference.step.figure import Resource, StepFigure
from datahall.inference.step.price import StepPrice


def test_a_step_is_shared_out_by_what_takes_its_time() -> None:
    taken: dict[Resource, float] = {"host": 0.5, "memory bandwidth": 9.0, "compute": 5.0, "interconnect": 5.5}
    shares = resource_shares(StepFigure(derived("step", 20.0, "s"), taken))
    assert shares == pytest.approx(
        {"memory bandwidth": 9 / 20, "interconnect": 5.5 / 20, "compute": 5 / 20, "host": 0.5 / 20}
    )
    assert list(shares) == ["memory bandwidth", "interconnect", "compute", "host"]


def state_of(decoding: float) -> State:
    return State(
        decoding=decoding, rate_per_s=1.0, ttft_s=1.0, tpot_s=1.0, ttft_high_s=1.0, tpot_high_s=1.0, use=0.5,
        stable=True, within=True,
    )  # fmt: skip


def test_the_mean_step_has_its_decodes_and_the_prompts_that_come_with_them() -> None:
    """20 sequences of 10 steps start 2 prompts a step: 2 · 40 tokens after 60 cached ones."""
    load = Load(prompt=100.0, output=11.0, cached=60.0)
    named = mean_step(case(), load, state_of(20.0)).figure.name
    assert "20 decodes and 80 prompt tokens" in named
    assert "1 decodes and 0 prompt tokens" in mean_step(case(), load, state_of(0.2)).figure.name
    assert "4 prompt tokens" in mean_step(case(), load, state_of(1.0)).figure.name


def test_a_prompt_alone_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    made = linear(token_s=0.5, prefill_s=0.25, head_s=2.0, host=(4.0, 8.0))
    price = StepPrice(table=made, tokens_per_step=1.0, stack="", level="measured", band=(1, 1))
    monkeypatch.setattr(techniques, "price_steps", lambda _: price)
    extra = 1 + 2 + 12
    assert techniques.prompt_time(small(), Load(prompt=80.0, output=5.0)) == pytest.approx(extra + 60)
    assert techniques.prompt_time(small(), Load(prompt=80.0, output=5.0, cached=60.0)) == pytest.approx(
        extra + 15
    )
    assert techniques.prompt_time(small(), Load(prompt=150.0, output=5.0)) == pytest.approx(
        2 * extra + 0.75 * 150
    )
    assert techniques.prompt_time(small(), Load(prompt=80.0, output=5.0, cached=80.0)) == pytest.approx(
        extra + 0.75
    )


def test_a_late_piece_of_a_prompt_attends_to_what_was_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pieces of 100 after 50 cached tokens: 50 and 150 before them, 100 on average."""
    made = linear(step_s=0.0, past_s=1.0)
    price = StepPrice(table=made, tokens_per_step=1.0, stack="", level="measured", band=(1, 1))
    monkeypatch.setattr(techniques, "price_steps", lambda _: price)
    found = techniques.prompt_time(small(), Load(prompt=250.0, output=5.0, cached=50.0))
    assert found == pytest.approx(2 * 100 * 100, rel=0.02)


@pytest.mark.parametrize(("ttft_s", "percentile"), [(0.5, 0.9), (1.0, 0.99), (0.31, 0.5)])
def test_prompts_apart_keep_the_promise_up_to_their_greatest_rate(ttft_s: float, percentile: float) -> None:
    """M/D/1: a wait of ρ/(1 − ρ) · s/2, with an exponential tail."""
    service_s, handed_s = 0.2, 0.1
    rate = techniques._prompts_under(limits(ttft_s=ttft_s, percentile=percentile), service_s, handed_s)
    busy = rate * service_s
    wait_s = busy / (1 - busy) * service_s / 2
    assert service_s + handed_s + wait_s * math.log(1 / (1 - percentile)) == pytest.approx(ttft_s, rel=1e-3)


def test_a_prompt_that_breaks_the_promise_alone_carries_nothing() -> None:
    assert techniques._prompts_under(limits(ttft_s=0.29), 0.2, 0.1) == 0.0
    assert techniques._prompts_under(limits(), 0.2, 0.1) == pytest.approx(5.0, rel=1e-4)


def test_a_hand_over_shows_the_last_layer() -> None:
    one = case()
    way = techniques.handoff_of(one)
    load = Load(prompt=3200.0, output=5.0)
    assert techniques.handover_time(one, load) == pytest.approx(way.setup_s + way.token_s * 3200.0 / 32)
    # what was found in a cache is computed no more, and is handed over all the same
    found = replace(load, cached=3000.0)
    assert techniques.handover_time(one, found) == techniques.handover_time(one, load)


PLAIN = techniques.Setting(replica=case(), load=Load(prompt=500.0, output=100.0))


def test_techniques_change_one_thing() -> None:
    stopped = without.unchunked(PLAIN)
    assert (stopped.replica.engine.chunked_prefill, stopped.replica.engine.mixed_steps) == (False, False)
    assert techniques.chunked(stopped) == PLAIN
    assert techniques.chunked(PLAIN) is None
    half = techniques.with_replica(PLAIN, engine=replace(PLAIN.replica.engine, mixed_steps=False))
    assert techniques.chunked(half) == PLAIN
    cached = techniques.prefix_cached(0.4)(PLAIN)
    assert cached is not None
    assert cached.load.cached == pytest.approx(200.0)
    assert without.one_by_one(PLAIN).replica.engine.max_sequences == 1
    narrow = techniques.narrow_cache(PLAIN)
    assert narrow is not None
    assert narrow.replica.precision.kv == "fp8"
    assert techniques.narrow_cache(narrow) is None
    apart = techniques.disaggregated(PLAIN)
    assert apart is not None
    assert apart.disaggregated
    how = Speculation(num_draft=2)
    drafted = techniques.speculative(how)(PLAIN)
    assert drafted is not None
    assert drafted.replica.speculation == how
    fp8 = techniques.quantised("fp8")(narrow)
    assert fp8 is not None
    assert (fp8.replica.precision.weights, fp8.replica.precision.kv) == ("fp8", "fp8")


def test_an_effect_is_told_per_chip() -> None:
    slo = limits(ttft_s=1.0, tpot_s=0.05)
    two = techniques.Setting(replica=replace(case(), tp=2), load=PLAIN.load)
    found, one = techniques.effect("x", two, slo, 2.0), held(two.replica, two.load, slo)
    assert found.held_per_s == pytest.approx(one.rate_per_s / 2)
    assert found.most_per_s == pytest.approx(one.most_per_s / 2)
    assert found.ttft_s == one.at(2.0).ttft_s
    assert (found.name, found.note) == ("x", "")
    assert "unstable" in techniques.effect("x", two, slo, 1e6).note
    nothing = techniques.effect("x", None, slo, 2.0)
    assert nothing.note == "already so"
    assert math.isnan(nothing.held_per_s)
    broken = techniques.effect("x", two, limits(tpot_s=1e-6), 2.0)
    assert broken.held_per_s == 0.0
    assert "TPOT" in broken.note


def test_pools_apart_are_divided_as_their_rates_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts of ¼ s: at most 4 a second; answers at 12 a second: three quarters of the chips are for prompts."""
    slo, load = limits(), Load(prompt=100.0, output=11.0)
    answers = replace(
        held(case(), load, limits(ttft_s=9.0, tpot_s=0.05)), rate_per_s=12.0, curve=flat(rate=20.0)
    )
    monkeypatch.setattr(techniques, "prompt_time", lambda *_: 0.25)
    monkeypatch.setattr(techniques, "handover_time", lambda *_: 0.5)
    monkeypatch.setattr(techniques, "_answers", lambda *_: answers)
    monkeypatch.setattr(techniques, "first_token_s", lambda *_: 0.125)
    setting = techniques.Setting(replica=replace(case(), tp=2), load=load, disaggregated=True)
    found = techniques.effect("apart", setting, slo, 1.5)
    assert found.held_per_s == pytest.approx(1 / (2 / 4 + 2 / 12), rel=1e-4)
    # 1.5 a second on three quarters of the chips: as 2 a second on a whole replica, half busy
    assert found.ttft_s == pytest.approx(0.25 + 0.5 / (2 * 0.5) * 0.25 + 0.5 + 0.125, rel=1e-4)
    assert found.tpot_s == 1.0
    assert "3 replicas for prompts to one for answers" in found.note
    full = techniques.effect("apart", setting, slo, 3.1)
    assert math.isinf(full.ttft_s)
    over = techniques.effect("apart", setting, slo, 5.1)  # 20 a second for the answers' quarter
    assert math.isnan(over.tpot_s)
    alone = techniques.effect("apart", setting, limits(ttft_s=0.7), 1.5)
    assert alone.held_per_s == 0.0
    assert "a prompt alone breaks" in alone.note


def test_answers_alone_compute_one_token_of_each_prompt() -> None:
    load = Load(prompt=400.0, output=50.0)
    found = techniques._answers(
        case(), load, limits(ttft_s=1e-6, tpot_s=0.05)
    )  # their first token is another's promise
    assert found.load.computed == 1.0
    assert found.rate_per_s > 0


@settings(max_examples=5, deadline=None)
@given(st.integers(1, 64))
def test_speed_up_of_nothing_drafted_is_none(batch: int) -> None:
    how = Speculation(num_draft=0, acceptance=0.5, draft="ngram")
    assert techniques.speed_up(case(), how, batch, 500.0) == pytest.approx(1.0)
