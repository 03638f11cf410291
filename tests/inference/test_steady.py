"""The closed-form steady state: Little's law, limits, and what the percentiles must obey."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import load as catalogue
from datahall.inference.closed_form.bottleneck import mean_step
from datahall.inference.closed_form.capacity import held, num_replicas
from datahall.inference.closed_form.steady_state import Curve, Load, at_concurrency, at_rate, curve
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.fleet import Fleet
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.simulation.histogram import TPOT, TTFT
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.step.column import step_times
from datahall.inference.step.price import price_steps
from datahall.scenario.requests import requests_of
from datahall.scenario.sections.traffic import Traffic
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.traffic.lengths import Fixed
from datahall.workload.traffic.traffic import generate


def replica(
    model: str = "llama-3.1-8b", chip: str = "h100-sxm", tp: int = 1, engine: str = "vllm", dp: int = 1
) -> Replica:
    shelf = catalogue()
    part = shelf.chip(chip)
    return Replica(model=shelf.model(model), chip=part, engine=engine_on(engine, part), tp=tp, dp=dp, ep=dp)


def curve_of(one: Replica, load: Load, percentile: float = 0.95) -> Curve:
    return curve(price_steps(one).table, one, load, kv_capacity(one), percentile=percentile)


CHAT = Load(prompt=512.0, output=128.0)


def test_sequences_rate_and_stay_obey_little() -> None:
    found = curve_of(replica(), CHAT)
    inner = (found.decoding > 0.5) & (found.decoding < 0.25 * found.most)
    stay_s = (CHAT.output - 1) * found.tpot_s
    np.testing.assert_allclose((found.rate_per_s * stay_s)[inner], found.decoding[inner], rtol=0.07)


def test_more_sequences_make_longer_steps_and_more_requests() -> None:
    found = curve_of(replica(), CHAT)
    assert np.all(np.diff(found.tpot_s) > -1e-9)
    assert np.all(np.diff(found.rate_per_s) >= 0)


@pytest.mark.parametrize(
    ("model", "chip", "tp", "dp"),
    [
        ("llama-3.1-8b", "h100-sxm", 1, 1),
        ("llama-3.1-70b", "h200", 8, 1),
        ("qwen3-30b-a3b", "h200", 1, 1),
        ("qwen3-30b-a3b", "h200", 1, 2),
    ],
)
def test_a_request_alone_decodes_in_steps_of_one_sequence(model: str, chip: str, tp: int, dp: int) -> None:
    one, load = replica(model, chip, tp, dp=dp), Load(prompt=2000.0, output=200.0)
    table = price_steps(one).table
    single, none = np.ones(1), np.zeros(1)
    alone_s = step_times(table, single, single, 2100.0, none, single).item()
    found = curve_of(one, load)
    assert at_rate(found, 1e-9).tpot_s == pytest.approx(alone_s, rel=0.01)
    assert found.step_s[0] == pytest.approx(alone_s, rel=0.01)


def test_the_curve_ends_where_the_cache_is_full() -> None:
    one = replica("llama-3.1-70b", "h200", 2)
    found = curve_of(one, Load(prompt=8000.0, output=500.0))
    assert found.limit == "cache"
    assert found.decoding[-1] == pytest.approx(kv_capacity(one).tokens / 8250, rel=0.02)


@given(use=st.floats(0.01, 0.97), percentile=st.floats(0.5, 0.99))
@settings(max_examples=60, deadline=None)
def test_a_percentile_above_the_median_is_above_the_state_it_is_of(use: float, percentile: float) -> None:
    found = curve_of(replica(), CHAT, percentile)
    state, median = (
        at_rate(found, use * found.most_per_s),
        at_rate(curve_of(replica(), CHAT, 0.5), use * found.most_per_s),
    )
    assert state.stable
    assert state.tpot_high_s >= median.tpot_high_s * (1 - 1e-9)
    assert state.ttft_high_s >= median.ttft_high_s * (1 - 1e-9)
    assert state.use == pytest.approx(use)


def test_beyond_the_curve_it_is_unstable_and_says_the_rate_it_holds() -> None:
    found = curve_of(replica(), CHAT)
    state = at_rate(found, 1.2 * found.most_per_s)
    assert not state.stable
    assert state.rate_per_s == pytest.approx(found.most_per_s)


def test_users_beyond_what_fits_wait_for_their_turn() -> None:
    found = curve_of(replica(), CHAT)
    many, more = (at_concurrency(found, users, CHAT, think_s=0.0) for users in (4000.0, 8000.0))
    assert more.rate_per_s == pytest.approx(many.rate_per_s, rel=0.01)
    assert more.ttft_s - many.ttft_s == pytest.approx(4000.0 / many.rate_per_s, rel=0.05)


RANKS = ("qwen3-30b-a3b", 4)  # of a model with experts, at which they meet


@pytest.mark.parametrize(
    ("use", "tpot", "ttft", "ranks"),
    [
        (0.3, 0.05, 0.25, None),
        (0.6, 0.06, 0.25, None),
        (0.8, 0.08, 0.35, None),
        (0.3, 0.08, 0.25, RANKS),
        (0.6, 0.08, 0.25, RANKS),
    ],
)
def test_the_closed_form_is_near_what_is_simulated(
    use: float, tpot: float, ttft: float, ranks: tuple[str, int] | None
) -> None:
    one = replica(ranks[0], dp=ranks[1]) if ranks else replica()
    found = curve_of(one, CHAT)
    rate = use * found.most_per_s
    said = Traffic(rate_per_s=rate * one.dp, isl=Fixed(512), osl=Fixed(128), requests=6000)
    run = simulate_serving(
        Fleet.of(one), generate(requests_of(said, one.model.max_context), 7), warmup_s=10.0
    )
    state = at_rate(found, rate)
    assert state.tpot_s == pytest.approx(run.mean_s(TPOT), rel=tpot)
    assert state.ttft_s == pytest.approx(run.mean_s(TTFT), rel=ttft)


@pytest.mark.parametrize("one", [replica(), replica("llama-3.1-70b", tp=4), replica(RANKS[0], dp=RANKS[1])])
def test_the_time_per_token_is_that_of_a_step_whose_kernels_are_timed_without_a_table(one: Replica) -> None:
    found = curve_of(one, CHAT)
    state = at_rate(found, 0.2 * found.most_per_s)  # further up uneven steps add to it
    assert mean_step(one, CHAT, state).figure.value == pytest.approx(state.tpot_s, rel=0.05)


def test_tighter_limits_hold_less() -> None:
    one = replica("llama-3.1-70b", "h100-sxm", 4)
    loose = held(one, CHAT, Promise(ttft_s=2.0, tpot_s=0.1))
    tight = held(one, CHAT, Promise(ttft_s=2.0, tpot_s=0.03))
    assert tight.rate_per_s < loose.rate_per_s <= loose.most_per_s
    assert tight.ends == "TPOT"
    assert tight.state.tpot_high_s == pytest.approx(0.03, rel=1e-3)


def test_replicas_cover_the_offered_rate_with_headroom() -> None:
    one = held(replica(), CHAT, Promise(ttft_s=1.0, tpot_s=0.05))
    for offered in (0.1, one.rate_per_s, 7.3 * one.rate_per_s):
        count = num_replicas(one, offered, headroom=0.1)
        assert count * one.rate_per_s * 0.9 >= offered * (1 - 1e-9)
        assert count == 1 or (count - 1) * one.rate_per_s * 0.9 < offered
