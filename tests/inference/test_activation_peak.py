"""The widest moment of a layer, and logits, by hand on a small model."""

from __future__ import annotations

import pytest
from tests.inference.memory_case import FULL, MLA, MOE, SMALL, WINDOW, replace, small

from datahall.catalog.entries.model import Layer, Model, Recurrent
from datahall.inference.memory.activation_peak import SAMPLER_BYTES_PER_LOGIT, activation_peak_bytes


def widest(model: Model, **options: object) -> float:
    """Values per token of the widest moment of a layer, beside hidden state and residual."""
    peak = activation_peak_bytes(small(model, max_sequences=0, **options))
    return peak / (100 * 2.0) - 2 * model.hidden


@pytest.mark.parametrize(
    ("model", "options", "values"),
    [
        (SMALL, {}, 3 * 128),  # gate, up and their product
        (SMALL, {"tp": 2}, 3 * 64),
        (replace(SMALL, gated_mlp=False), {}, 2 * 128),
        (replace(SMALL, ffn=1), {}, 2 * 64 + 2 * 32),  # queries and output, keys and values
        (replace(SMALL, ffn=1), {"tp": 8}, 2 * 8 + 2 * 8),  # one KV head stays whole
        (replace(SMALL, ffn=1, layers=(WINDOW,) * 4), {}, 192),
        (replace(SMALL, layers=(Layer(mixer="none", mlp="dense"),) * 4), {}, 384),
        (
            replace(SMALL, mla=MLA, layers=(Layer(mixer="mla", mlp="none"),) * 4),
            {},
            8 * (2 * 12 + 2 * 6) + 24 + 16,
        ),
        (replace(SMALL, mla=MLA, layers=(Layer(mixer="mla", mlp="none"),) * 4), {"tp": 4}, 2 * 36 + 40),
        # two copies of a token, each the wider of 2 · 48 and the hidden 64, and their product; 3 · 32 shared
        (replace(SMALL, moe=MOE, layers=(Layer(mixer="none", mlp="moe"),) * 4), {}, 2 * (96 + 48) + 96),
        (
            replace(SMALL, moe=MOE, layers=(Layer(mixer="none", mlp="moe"),) * 4),
            {"tp": 4},
            2 * (64 + 12) + 24,
        ),
        (
            replace(SMALL, moe=MOE, layers=(Layer(mixer="none", mlp="moe"),) * 4),
            {"tp": 4, "ep": 4},
            2 * (96 + 48) + 24,
        ),
        (
            replace(SMALL, moe=MOE, layers=(Layer(mixer="none", mlp="moe"),) * 4),
            {"dp": 4, "ep": 4},
            2 * (96 + 48) + 96,
        ),
        (
            replace(SMALL, moe=MOE, layers=(Layer(mixer="none", mlp="moe"),) * 4),
            {"dp": 4, "ep": 2},
            4 * (64 + 24) + 96,
        ),
        (replace(SMALL, moe=MOE, layers=(FULL, Layer(mixer="full", mlp="moe"), FULL, FULL)), {}, 384),
    ],
)
def test_the_widest_moment_of_a_layer_by_hand(
    model: Model, options: dict[str, object], values: float
) -> None:
    assert widest(model, **options) == pytest.approx(values)


def test_recurrent_layers_hold_their_heads_and_keys() -> None:
    part = Recurrent(num_heads=6, head_dim=10, num_key_heads=2, key_dim=7, conv_width=4)
    model = replace(SMALL, ffn=1, recurrent=part, layers=(Layer(mixer="linear", mlp="dense"),) * 4)
    assert widest(model) == pytest.approx(4 * 60 + 2 * 14)
    assert widest(model, tp=2) == pytest.approx((4 * 60 + 2 * 14) / 2)


def test_many_sequences_make_logits_the_peak() -> None:
    assert activation_peak_bytes(small(max_sequences=64)) == pytest.approx(
        SAMPLER_BYTES_PER_LOGIT * 64 * 1000
    )
    assert activation_peak_bytes(small(max_sequences=1)) == pytest.approx(100 * 2 * (128 + 384))
