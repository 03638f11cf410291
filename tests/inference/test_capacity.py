"""States at a rate or with users, the wait for a place, and the most that keeps the limits."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.closed_form_case import flat, limits, replace

from datahall.catalog import Catalog
from datahall.errors import InfeasibleError
from datahall.inference.closed_form import capacity
from datahall.inference.closed_form.capacity import num_replicas
from datahall.inference.closed_form.steady_state import (
    Curve,
    Load,
    _place_wait,
    at_concurrency,
    at_rate,
)
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Replica
from datahall.inference.step import column as column_module
from datahall.scenario.sections.wanted.promise import Promise


def erlang_wait(places: int, offered: float, rate: float) -> float:
    """Mean wait in M/M/c, by the sum over states."""
    terms = [offered**k / math.factorial(k) for k in range(places)]
    last = offered**places / math.factorial(places) * places / (places - offered)
    return last / (sum(terms) + last) * (offered / rate) / (places - offered)


@pytest.mark.parametrize("use", [0.31, 0.5, 0.8, 0.95])
def test_the_wait_for_a_place_is_erlangs(use: float) -> None:
    found, rate = flat(), 2.0 * use
    wait_s = erlang_wait(4, 4.0 * use, rate)
    assert _place_wait(found, 4.0 * use, rate) == pytest.approx(wait_s, rel=1e-6)
    state = at_rate(found, rate)
    assert state.decoding == pytest.approx(4.0 * use)
    assert state.ttft_s == pytest.approx(3.0 + wait_s, rel=1e-6)
    assert state.ttft_high_s == pytest.approx(5.0 + math.log(10.0) * wait_s, rel=1e-6)
    assert (state.tpot_s, state.tpot_high_s) == pytest.approx((1.0, 2.0))
    assert state.within == (use < 0.75)
    assert state.near_saturation == (use > 0.9)
    assert state.use == pytest.approx(use)


def test_few_sequences_wait_for_no_place_and_all_places_taken_wait_long() -> None:
    assert _place_wait(flat(), 1.19, 1.0) == 0.0
    assert _place_wait(flat(), 1.21, 1.0) > 0.0
    assert _place_wait(flat(most=0.9), 0.8, 1.0) == 0.0
    assert _place_wait(flat(), 4.0, 2.0) == pytest.approx(4.0 / 2.0 / 1e-3)


def test_beyond_the_greatest_rate_nothing_holds() -> None:
    for rate in (2.0, 3.0):
        state = at_rate(flat(), rate)
        assert (state.stable, state.within, state.rate_per_s) == (False, False, 2.0)
        assert math.isinf(state.ttft_s)
        assert (state.use, state.decoding) == (rate / 2.0, 4.0)
    assert at_rate(flat(), 1.999).stable
    assert at_rate(replace(flat(), most_per_s=0.0), 1.0).use == math.inf


def test_users_are_in_the_system_or_thinking() -> None:
    """n of 4 sequences are n/2 requests a second; each stays 3 s and 10 steps, then thinks for 7 s: 10 n users."""
    load = Load(prompt=10.0, output=11.0)
    state = at_concurrency(flat(), 20.0, load, think_s=7.0)
    assert state.decoding == pytest.approx(2.0)
    assert state.rate_per_s == pytest.approx(1.0)
    assert state.ttft_s == pytest.approx(3.0)
    crowd = at_concurrency(flat(), 60.0, load, think_s=7.0)
    assert crowd.rate_per_s == pytest.approx(2.0)
    assert crowd.ttft_s == pytest.approx(3.0 + 20.0 / 2.0)  # twenty of them wait at two a second
    assert crowd.use == pytest.approx(1.0)


@given(st.lists(st.floats(0.01, 5.0), min_size=2, max_size=12), st.floats(0.0, 1.0))
def test_a_rising_column_is_read_backwards(increments: list[float], share: float) -> None:
    column = np.cumsum(increments)
    places = np.arange(1.0, len(increments) + 1)
    value = share * column[-1]
    found = np.interp(value, *column_module.rising(column, places))
    assert np.interp(found, np.append(0.0, places), np.append(0.0, column)) == pytest.approx(value, abs=1e-9)
    level = np.append(column, column[-1])  # a flat end adds nothing
    longer = column_module.rising(level, np.append(places, places[-1] + 5))
    assert np.interp(value, *longer) == pytest.approx(found)


def rising(**columns: float) -> Curve:
    """A curve to 2 requests a second whose times grow with the number of sequences, up to four times."""
    base = flat()
    grown = {name: high * base.decoding for name, high in columns.items()}
    return replace(base, within=np.ones(40, bool), **grown)


@pytest.mark.parametrize(
    ("found", "slo", "rate", "ends"),
    [
        (rising(tpot_high_s=1.0), limits(tpot_s=2.0), 1.0, "TPOT"),  # 2 of 4 sequences
        (rising(ttft_high_s=0.5, ttft_s=0.0), limits(ttft_s=0.6), 0.6, "TTFT"),
        (rising(tpot_high_s=1.0, ttft_high_s=0.1, ttft_s=0.0), limits(tpot_s=2.0, ttft_s=0.1), 0.5, "TTFT"),
        (flat(), limits(), 1.5, "sequences"),  # three of four places are within the limit
        (replace(flat(), within=np.ones(40, bool)), limits(), 2.0, "sequences"),  # no TTFT is promised
    ],
)
def test_the_most_that_keeps_the_promise_by_hand(
    on_curve: Callable[..., capacity.Held], found: Curve, slo: Promise, rate: float, ends: str
) -> None:
    one, four = on_curve(found, slo), on_curve(found, slo, 4)
    assert one.rate_per_s == pytest.approx(rate, rel=0.03)
    assert one.ends == ends
    kept, broken = (
        state.stable and state.within and state.tpot_high_s <= slo.tpot_s and state.ttft_high_s <= slo.ttft_s
        for state in (one.state, one.beyond)
    )
    assert kept
    assert not broken
    assert (four.rate_per_s, four.most_per_s) == pytest.approx((4 * one.rate_per_s, 8.0))
    assert four.at(4.0).decoding == pytest.approx(2.0)
    assert (one.load.tokens_per_step, one.load.verified) == (2.0, 3.0)


@pytest.mark.parametrize(
    ("slo", "why"),
    [
        (limits(tpot_s=0.99), "TPOT of 1 s"),
        (limits(ttft_s=2.99), "TTFT of 3 s"),
        (limits(tpot_s=0.9, ttft_s=0.9), "TPOT"),
    ],
)
def test_a_promise_that_one_request_breaks_is_refused(
    on_curve: Callable[..., capacity.Held], slo: Promise, why: str
) -> None:
    with pytest.raises(InfeasibleError, match=why):
        on_curve(flat(), slo)
    assert on_curve(flat(), limits(tpot_s=2.0, ttft_s=6.0)).rate_per_s > 0


@pytest.mark.parametrize(
    ("offered", "headroom", "count"),
    [(1.8, 0.1, 1), (1.81, 0.1, 2), (2.0, 0.0, 1), (9.0, 0.1, 5), (0.0, 0.5, 1), (3.0, 0.5, 3)],
)
def test_replicas_for_a_rate_by_hand(
    on_curve: Callable[..., capacity.Held], offered: float, headroom: float, count: int
) -> None:
    two = replace(on_curve(replace(flat(), within=np.ones(40, bool)), limits()), rate_per_s=2.0)
    assert num_replicas(two, offered, headroom) == count


def test_what_holds_no_sequence_is_refused_before_its_steps_are_priced(
    shelf: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million sequences take terabytes of activations, and a table of as many columns."""
    chip = shelf.chip("h100-sxm")
    engine = msgspec.structs.replace(engine_on("vllm", chip), max_sequences=1_000_000)
    replica = Replica(model=shelf.model("llama-3.1-8b"), chip=chip, engine=engine)

    def priced(_: Replica) -> None:
        raise AssertionError("priced")

    monkeypatch.setattr(capacity, "price_steps", priced)
    with pytest.raises(InfeasibleError, match="holds no sequence"):
        capacity.held(replica, Load(prompt=100.0, output=100.0), limits())
