import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.workload.operator import (
    attention_flop,
    experts_hit,
    gemm_flop,
    keys_read,
    visible_tokens,
)

lengths = st.integers(0, 60)


@given(query=st.integers(1, 60), past=lengths, window=st.integers(0, 80))
def test_visible_tokens_is_the_sum_over_each_token(query: int, past: int, window: int) -> None:
    counted = sum(min(past + i, window or past + i) for i in range(1, query + 1))
    assert visible_tokens(query, past, window) == counted


@given(query=st.integers(1, 60), past=lengths, window=st.integers(0, 80))
def test_keys_read_is_the_union_of_what_each_token_sees(query: int, past: int, window: int) -> None:
    seen = set()
    for position in range(past, past + query):
        first = max(0, position - window + 1) if window else 0
        seen |= set(range(first, position + 1))
    assert keys_read(query, past, window) == len(seen)


def test_attention_flop_by_brute_force() -> None:
    heads, head_dim, value_dim, query, past = 3, 4, 5, 6, 7
    flop = 0
    for _ in range(heads):
        for token in range(1, query + 1):
            flop += (past + token) * (2 * head_dim + 2 * value_dim)
    assert attention_flop(visible_tokens(query, past), heads, head_dim, value_dim) == flop


def test_gemm_flop_counts_a_multiply_and_an_add() -> None:
    assert gemm_flop(2, 3, 5) == sum(2 for _ in range(2) for _ in range(3) for _ in range(5))


def test_experts_hit_against_a_thousand_random_routings() -> None:
    generator = np.random.default_rng(7)
    experts, top_k, tokens, local = 64, 6, 20, 16
    scores = generator.random((1000, tokens, experts))
    chosen = np.argpartition(scores, top_k, axis=2)[:, :, :top_k]
    hit = [np.unique(one[one < local]).size for one in chosen]
    assert experts_hit(tokens, experts, top_k, local) == pytest.approx(np.mean(hit), rel=0.01)


@given(tokens=st.integers(1, 4000))
def test_experts_hit_stays_between_top_k_and_all(tokens: int) -> None:
    hit = experts_hit(tokens, 256, 8, 256)
    assert 8 - 1e-9 <= hit <= 256
