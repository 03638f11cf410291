import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog.entries.model import Model
from datahall.workload.memory.kv_cache import kv_bytes, kv_bytes_per_token, recurrent_state_bytes
from datahall.workload.precision import BF16, Precision

PUBLISHED = [
    ("llama-3.1-8b", 128 * 1024),
    ("llama-3.1-70b", 320 * 1024),
    ("llama-3.1-405b", 516_096),
    ("mixtral-8x7b", 128 * 1024),
    ("gpt-3-175b", 4_718_592),
    ("deepseek-v3", 70_272),  # DeepSeek-V3 report: 70 KB per token
]


@pytest.mark.parametrize(("name", "expected"), PUBLISHED)
def test_published_cache_sizes(models: dict[str, Model], name: str, expected: int) -> None:
    assert kv_bytes_per_token(models[name]) == expected


def test_eight_bit_caches_are_half(llama: Model) -> None:
    assert kv_bytes_per_token(llama, Precision.named("fp8-kv8")) == 64 * 1024


@pytest.mark.parametrize(("tp", "share"), [(1, 1), (2, 2), (8, 8), (16, 8), (32, 8)])
def test_kv_heads_are_split_then_repeated(llama: Model, tp: int, share: int) -> None:
    assert kv_bytes_per_token(llama, tp=tp) == 128 * 1024 / share


def test_the_latent_is_whole_on_every_chip(deepseek: Model) -> None:
    assert kv_bytes_per_token(deepseek, tp=8) == kv_bytes_per_token(deepseek)


def test_window_layers_stop_growing(gemma: Model) -> None:
    token = 2 * 16 * 128 * 2
    assert kv_bytes(gemma, 512) == 62 * 512 * token
    assert kv_bytes(gemma, 131072) == (52 * 1024 + 10 * 131072) * token


def test_recurrent_layers_hold_a_constant(qwen_next: Model) -> None:
    state = 36 * (32 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2)
    assert recurrent_state_bytes(qwen_next, BF16, tp=1) == state
    assert kv_bytes(qwen_next, 0) == state
    assert kv_bytes(qwen_next, 1000) - kv_bytes(qwen_next, 0) == 12 * 1000 * 2 * 2 * 256 * 2
    assert recurrent_state_bytes(qwen_next, BF16, tp=2) == state / 2


@given(context=st.integers(0, 200_000), more=st.integers(0, 1000), tp=st.sampled_from([1, 2, 4, 8, 16]))
def test_a_cache_never_shrinks_as_it_grows(
    models: dict[str, Model], context: int, more: int, tp: int
) -> None:
    for model in models.values():
        assert kv_bytes(model, context + more, tp=tp) >= kv_bytes(model, context, tp=tp)
        assert kv_bytes(model, context, tp=tp) >= kv_bytes(model, context) / tp * (1 - 1e-12)


def test_columns(gemma: Model) -> None:
    contexts = np.array([10.0, 1024.0, 50_000.0])
    assert list(kv_bytes(gemma, contexts)) == [kv_bytes(gemma, one) for one in contexts]  # type: ignore[arg-type]
