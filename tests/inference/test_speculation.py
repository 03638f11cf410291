"""Drafted tokens: how many are kept, and what drafting and verifying cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import load
from datahall.errors import ScenarioError
from datahall.inference.engine.replica import Replica, Speculation
from datahall.inference.engine.speculation import draft_model, expected_tokens, num_verified, tokens_per_step
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.step.price import price_steps
from datahall.inference.step.table import decode_step_time

Serve = Callable[..., Replica]
SMALL = Speculation(draft="llama-3.2-1b", model=load().model("llama-3.2-1b"))


@given(st.floats(0, 0.99), st.integers(0, 8))
def test_the_closed_form_is_the_sum_of_chances(acceptance: float, num_draft: int) -> None:
    one_by_one = sum(acceptance**kept for kept in range(num_draft + 1))
    assert expected_tokens(acceptance, num_draft) == pytest.approx(one_by_one)


def test_a_draw_agrees_with_the_closed_form() -> None:
    kept = np.random.default_rng(7).random((200_000, 3)) < 0.7
    drawn = 1 + np.cumprod(kept, axis=1).sum(axis=1).mean()
    assert drawn == pytest.approx(expected_tokens(0.7, 3), rel=5e-3)


def test_without_speculation_a_step_gives_one_token() -> None:
    assert tokens_per_step(None) == num_verified(None) == 1


def test_an_impossible_chance_is_refused() -> None:
    with pytest.raises(ScenarioError, match="from 0 to 1"):
        tokens_per_step(Speculation(acceptance=1.5))


def test_ngram_drafts_are_free_and_verifying_them_is_not(serve: Serve) -> None:
    plain = price_steps(serve("llama-3.1-8b")).table
    ngram = price_steps(serve("llama-3.1-8b", speculation=Speculation(draft="ngram"))).table
    assert draft_model(serve("llama-3.1-8b", speculation=Speculation(draft="ngram"))) is None
    few = decode_step_time(ngram, 1, 1000.0) / decode_step_time(plain, 1, 1000.0)
    many = decode_step_time(ngram, 256, 1000.0) / decode_step_time(plain, 256, 1000.0)
    assert 1.0 < few < 1.15  # one sequence reads the weights once either way
    assert many > 1.5  # past the ridge four tokens cost more than one


def test_speculation_pays_for_one_user_and_not_for_a_crowd(serve: Serve) -> None:
    plain = price_steps(serve("llama-3.1-70b", tp=4)).table
    price = price_steps(serve("llama-3.1-70b", tp=4, speculation=SMALL))

    def speedup(num: int) -> float:
        return (
            price.tokens_per_step
            * decode_step_time(plain, num, 1000.0)
            / decode_step_time(price.table, num, 1000.0)
        )

    assert speedup(1) > 1.5
    assert speedup(256) < 1.0
    assert speedup(1) > speedup(32) > speedup(256)


def test_a_draft_takes_memory_of_its_own(serve: Serve) -> None:
    plain = kv_capacity(serve("llama-3.1-70b", tp=4))
    drafted = kv_capacity(serve("llama-3.1-70b", tp=4, speculation=SMALL))
    layer = kv_capacity(serve("llama-3.1-70b", tp=4, speculation=Speculation(draft="mtp")))
    assert drafted.weight_bytes > layer.weight_bytes > plain.weight_bytes
    assert drafted.block_bytes > plain.block_bytes
    assert drafted.tokens < plain.tokens
