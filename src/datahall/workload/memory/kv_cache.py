"""What a sequence leaves on a chip: keys and values, latents, or a state of fixed size.

Symbols: c context [tokens], g KV heads, d head width, t tensor parallelism, w window [tokens].
"""

from __future__ import annotations

import numpy as np

from datahall.catalog.entries.model import Layer, Model
from datahall.catalog.number_formats import bytes_per_value
from datahall.workload.mixer import STATE_FORMAT, recurrent_widths
from datahall.workload.operator import Number
from datahall.workload.precision import BF16, Precision


def kv_bytes_per_token(
    model: Model,
    precision: Precision = BF16,
    tp: Number = 1.0,
) -> Number:
    """Cache that one more token takes on each of `tp` chips while every window has room [B].

        GQA  Σ_layers 2·max(g/t, 1)·d·b      MLA  Σ_layers (kv_rank + rope)·b, whole on every chip

    Attention spread over sequences instead of heads (DP attention) is tp = 1.  Beyond its window a layer
    adds nothing: `kv_bytes` knows.  References: Ainslie et al. (2023), GQA; DeepSeek-V2 (2024), section 2.1.

    >>> from datahall.catalog.entries.model import Layer
    >>> llama = Model(name="llama-3.1-8b", title="", family="", year=2024, num_layers=32, hidden=4096,
    ...     num_heads=32, num_kv_heads=8, head_dim=128, ffn=14336, vocab=128256, max_context=131072,
    ...     layers=(Layer(mixer="full", mlp="dense"),) * 32)
    >>> float(kv_bytes_per_token(llama)) / 1024, float(kv_bytes_per_token(llama, tp=16)) / 1024
    (128.0, 16.0)
    """
    values: Number = 0.0
    for layer, count in model.layer_groups():
        values = values + count * kv_values_per_token(model, layer, tp)
    return values * precision.kv_bytes_per_value


def kv_bytes(
    model: Model,
    context: Number,
    precision: Precision = BF16,
    tp: Number = 1.0,
) -> Number:
    """Memory that one sequence of `context` tokens holds on each of `tp` chips [B].

        Σ_layers min(c, w)·values·b  +  recurrent states

    >>> from datahall.catalog.entries.model import Layer
    >>> near, far = Layer(mixer="window", mlp="dense", window=512), Layer(mixer="full", mlp="dense")
    >>> gemma = Model(name="gemma-3-1b", title="", family="", year=2025, num_layers=26, hidden=1152,
    ...     num_heads=4, num_kv_heads=1, head_dim=256, ffn=6912, vocab=262144, max_context=32768,
    ...     layers=((near,) * 5 + (far,)) * 4 + (near,) * 2)
    >>> float(kv_bytes(gemma, 32768)) / 2**20
    139.0
    """
    held: Number = 0.0
    for layer, count in model.layer_groups():
        tokens = np.minimum(context, layer.window) if layer.mixer == "window" else context
        held = held + count * tokens * kv_values_per_token(model, layer, tp)
    return held * precision.kv_bytes_per_value + recurrent_state_bytes(model, precision, tp)


def kv_values_per_token(model: Model, layer: Layer, tp: Number) -> Number:
    """Values that one token stores in one layer on each of `tp` chips."""
    if layer.mixer in ("full", "window"):
        heads: Number = np.maximum(model.num_kv_heads / tp, 1.0)
        return 2 * heads * model.head_dim
    if layer.mixer == "mla" and model.mla is not None:
        return float(model.mla.kv_rank + model.mla.rope_head_dim)
    return 0.0


def recurrent_state_bytes(
    model: Model,
    precision: Precision,
    tp: Number,
) -> Number:
    """Memory of the recurrent layers of one sequence on each of `tp` chips, whatever its length [B].

    Σ_layers heads/t·head_dim·key_dim·4  +  (conv_width − 1)·channels·b
    """
    num_layers = sum(layer.mixer in ("linear", "mamba") for layer in model.layers)
    if model.recurrent is None or not num_layers:
        return 0.0
    _, _, convolved, state = recurrent_widths(model.recurrent, tp)
    conv_bytes = (model.recurrent.conv_width - 1) * convolved * precision.wide_bytes_per_value
    return num_layers * (state * bytes_per_value(STATE_FORMAT) + conv_bytes)
