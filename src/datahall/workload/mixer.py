"""What mixes tokens in a layer: self-attention, latent attention, or a recurrence."""

from __future__ import annotations

import numpy as np

from datahall.catalog.entries.model import Layer, Mla, Recurrent
from datahall.catalog.number_formats import bytes_per_value
from datahall.workload.fusion import Passes
from datahall.workload.operator import Attention, GroupedGemm, Number, Operator, Stream
from datahall.workload.scan import chunked_scan
from datahall.workload.step import (
    Chunk,
    Step,
    attention_core,
    linear,
    moved,
    stream,
    wide_batched,
)

STATE_FORMAT = "fp32"  # recurrent states are kept in fp32 by vLLM for Qwen3-Next and Nemotron-H


def mixer_operators(step: Step, layer: Layer, count: float) -> tuple[Operator, ...]:
    """The operators between a layer's first norm and its first residual addition."""
    match layer.mixer:
        case "full" | "window":
            return self_attention(step, layer.window if layer.mixer == "window" else 0, count)
        case "mla":
            assert step.model.mla is not None
            return latent_attention(step, step.model.mla, count)
        case "linear" | "mamba":
            assert step.model.recurrent is not None
            return recurrence(step, step.model.recurrent, layer.mixer == "linear", count)
        case "none":
            return ()


def self_attention(step: Step, window: int, count: float) -> tuple[Operator, ...]:
    """Multi-head, grouped-query or multi-query attention over all tokens or a window of them."""
    model, tokens = step.model, step.attention_tokens
    heads = model.num_heads / step.sharding.attention_tp
    kv_heads = step.sharding.local_kv_heads(model)
    queries, keys = heads * model.head_dim, kv_heads * model.head_dim
    gated = queries if model.attention_gate else 0.0
    width = queries + gated + 2 * keys
    operators = [*linear(step, "qkv", tokens, width, model.hidden, count, gathered=True)]
    if model.qk_norm != "none":
        row = model.head_dim if model.qk_norm == "head" else queries
        operators.append(
            stream(step, "qk_norm", tokens * (queries + keys), step.fusion.norm, count, row_width=row)
        )
    operators += _position_and_cache(step, tokens * (queries + keys), tokens * 2 * keys, count)
    for chunk in step.chunks:
        shape = _core_shape(step, chunk, heads, kv_heads, model.head_dim, model.head_dim, window)
        operators.append(attention_core(step, chunk, shape, _kv_format(step), 2 * keys, count))
    if model.attention_gate:
        operators.append(stream(step, "attention_gate", tokens * queries, step.fusion.gated, count))
    return (*operators, *linear(step, "attention_output", tokens, model.hidden, queries, count))


def latent_attention(step: Step, mla: Mla, count: float) -> tuple[Operator, ...]:
    """Multi-head latent attention: expanded to full heads (prefill) or absorbed into the latent (decode).

    The projections down to the latent are whole on every chip, those up to the heads are split.
    Reference: DeepSeek-V2 (2024), section 2.1 and appendix C.
    """
    model, tokens = step.model, step.attention_tokens
    heads = model.num_heads / step.sharding.attention_tp
    head_dim, latent = mla.nope_head_dim + mla.rope_head_dim, mla.kv_rank + mla.rope_head_dim
    operators = [*linear(step, "qkv_down", tokens, mla.q_rank + latent, model.hidden, count)]
    operators.append(
        stream(step, "latent_norm", tokens * (mla.q_rank + mla.kv_rank), step.fusion.norm, count)
    )
    operators += linear(step, "q_up", tokens, heads * head_dim, mla.q_rank or model.hidden, count)
    turned = tokens * (heads + 1) * mla.rope_head_dim
    operators += _position_and_cache(step, turned, tokens * latent, count)
    core = _absorbed_core if step.absorbed else _expanded_core
    operators += core(step, mla, heads, count)
    return (
        *operators,
        *linear(step, "attention_output", tokens, model.hidden, heads * mla.value_head_dim, count),
    )


def _expanded_core(step: Step, mla: Mla, heads: Number, count: float) -> tuple[Operator, ...]:
    """Keys and values of every visible token are projected up, then attention is multi-head."""
    head_dim = mla.nope_head_dim + mla.rope_head_dim
    operators: list[Operator] = []
    for chunk in step.chunks:
        shape = _core_shape(step, chunk, heads, heads, head_dim, mla.value_head_dim, 0)
        rows = shape.batch * (shape.q_len + chunk.past)
        up = heads * (mla.nope_head_dim + mla.value_head_dim)
        operators += linear(step, "kv_up", rows, up, mla.kv_rank, count)
        values = heads * (head_dim + mla.value_head_dim)
        operators.append(attention_core(step, chunk, shape, step.precision.wide, values, count))
    return tuple(operators)


def _absorbed_core(step: Step, mla: Mla, heads: Number, count: float) -> tuple[Operator, ...]:
    """Queries move into the latent space, where all heads share one key whose first part is the value.

    Engines keep the two absorbed matrices in the wide format whatever the weights are stored in.
    """
    tokens, latent = step.attention_tokens, mla.kv_rank + mla.rope_head_dim
    into = GroupedGemm(tokens * heads, heads, mla.kv_rank, mla.nope_head_dim, batched=True)
    out_of = GroupedGemm(tokens * heads, heads, mla.value_head_dim, mla.kv_rank, batched=True)
    cores = [
        attention_core(
            step,
            chunk,
            _core_shape(step, chunk, heads, 1.0, latent, mla.kv_rank, 0),
            _kv_format(step),
            latent,
            count,
        )
        for chunk in step.chunks
    ]
    return (
        wide_batched(step, "absorb_q", into, count),
        *cores,
        wide_batched(step, "absorb_v", out_of, count),
    )


def recurrence(step: Step, recurrent: Recurrent, delta: bool, count: float) -> tuple[Operator, ...]:
    """A layer whose memory is one matrix per head: gated delta net (`delta`) or Mamba-2.

    Per token and state value the scan decays (1 FLOP), adds an outer product (2) and reads out (2); the
    delta rule also predicts the value it corrects (2).  Sequences share the state traffic of their chunk.
    Reference: Yang et al. (2024), Gated Delta Networks; Dao and Gu (2024), Transformers are SSMs.
    """
    model, tokens = step.model, step.attention_tokens
    heads, values, convolved, state = recurrent_widths(recurrent, step.sharding.attention_tp)
    gates = (2 if delta else 1) * heads
    scan_flop = tokens * ((7 if delta else 5) * state + 2 * recurrent.conv_width * convolved)
    width = values + convolved + gates
    into = linear(step, "recurrent_in", tokens, width, model.hidden, count, gathered=True)
    out_of = linear(step, "recurrent_out", tokens, model.hidden, values, count)
    if not step.cached:
        return (*into, *_whole_sequences(step, recurrent, values, convolved, scan_flop, count), *out_of)
    sequences = sum((chunk.batch for chunk in step.chunks), 0.0) / step.sharding.attention_dp
    kept_bytes = sequences * (
        state * bytes_per_value(STATE_FORMAT) + (recurrent.conv_width - 1) * convolved * step.wide_bytes
    )
    scan = moved(
        step,
        "conv_scan",
        kept_bytes + tokens * (2 * convolved + gates + 2 * values) * step.wide_bytes,
        kept_bytes + tokens * (convolved + 2 * values) * step.wide_bytes,
        count,
        flop=scan_flop,
        shape=Stream(3.0),  # convolution, scan, gated norm
    )
    return (*into, scan, *out_of)


def _whole_sequences(
    step: Step, recurrent: Recurrent, values: Number, convolved: Number, scan_flop: Number, count: float
) -> tuple[Operator, ...]:
    """Convolution, scan by chunks and gated norm of sequences whose states nobody keeps."""
    tokens = step.attention_tokens
    reads, writes, shape = chunked_scan(values, (convolved - values) / 2, recurrent.key_dim, tokens)
    return (
        stream(step, "convolution", tokens * convolved, Passes(1, 1, 1), count),
        moved(step, "scan", reads, writes, count, flop=scan_flop, shape=shape),
        stream(step, "scan_gate", tokens * values, Passes(1, 2, 1), count),
    )


def recurrent_widths(recurrent: Recurrent, tp: Number) -> tuple[Number, Number, Number, Number]:
    """Heads, value width, convolved channels and state values of one recurrent layer on one of `tp` chips."""
    heads = recurrent.num_heads / tp
    values = heads * recurrent.head_dim
    keys = np.maximum(recurrent.num_key_heads / tp, 1.0) * recurrent.key_dim
    return heads, values, values + 2 * keys, values * recurrent.key_dim


def _core_shape(
    step: Step, chunk: Chunk, heads: Number, kv_heads: Number, head_dim: float, value_dim: float, window: int
) -> Attention:
    return Attention(
        batch=chunk.batch / step.sharding.attention_dp,
        q_len=chunk.query / step.sharding.cp,
        kv_len=chunk.query + chunk.past,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        value_dim=value_dim,
        window=float(window),
    )


def _kv_format(step: Step) -> str:
    return step.precision.kv if step.cached else step.precision.wide


def _position_and_cache(step: Step, turned: Number, stored: Number, count: float) -> tuple[Operator, ...]:
    """Rotary position on `turned` values, and `stored` values written to the cache in its format."""
    operators: list[Operator] = []
    if step.model.position == "rope":
        operators.append(stream(step, "rope", turned, step.fusion.rope, count))
    if step.cached:
        kv_bytes = bytes_per_value(step.precision.kv)
        operators.append(moved(step, "kv_write", stored * step.wide_bytes, stored * kv_bytes, count))
    return tuple(operators)
