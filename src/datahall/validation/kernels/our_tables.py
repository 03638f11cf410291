"""Our own tables: kernels and forward passes that were measured on one H200."""

from __future__ import annotations

import msgspec

from datahall.catalog import load
from datahall.catalog.entries.model import Model
from datahall.scenario.words import PHASES
from datahall.validation.kernels.operators import attention_of, expert_product, matrix_product, streamed
from datahall.validation.kernels.prediction import FORMATS_OF_TABLES, Timed, check_experts, prediction, timed
from datahall.validation.measurement import Row, RowError
from datahall.validation.scorecard import Prediction
from datahall.workload.forward import forward_pass
from datahall.workload.operator import Attention, GroupedGemm, Stream
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding

OURS = "h200-sxm"
# One kernel timed between two events: what the events and the launch add, and the least they can show.
# Read off the smallest and largest rows of h200/elementwise.csv.
EVENT_GAP_S = 3.2e-6
EVENT_FLOOR_S = 9.4e-6
# The forward passes come from an engine of library calls; its time leaves no room for these kernels.
NOT_IN_LEAN_ENGINE = {"rope", "kv_write"}
MODELS = {
    "llama3-1b": "llama-3.2-1b", "llama3-3b": "llama-3.2-3b", "llama3-8b": "llama-3.1-8b",
    "llama3-70b": "llama-3.1-70b", "llama3-405b": "llama-3.1-405b",
}  # fmt: skip


def our_gemm(row: Row) -> Prediction:
    """h200/gemm.csv: cuBLAS products in a CUDA graph, weights rotated past the L2."""
    precision = FORMATS_OF_TABLES.get(row.text("dtype"))
    if precision is None:
        raise RowError(f'GEMM in "{row.text("dtype")}" is not modelled')
    m, n, k = (row.count(column) for column in "mnk")
    found = timed(load().chip(OURS), [matrix_product(m, n, k, precision)], "gemm", "pytorch")
    label = f"{precision} {m:g} × {n:g} × {k:g}"
    return prediction(
        row,
        source=f"GEMM {precision}",
        hardware=OURS,
        label=label,
        measured_s=row.positive("ms") * 1e-3,
        found=found,
    )


def our_attention(row: Row) -> Prediction:
    """h200/attention.csv: PyTorch's scaled dot-product attention."""
    batch, q, kv, heads, kv_heads, width = (
        row.count(column) for column in ("batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim")
    )
    if q > kv:
        raise RowError("more new tokens than tokens")
    phase = "prefill" if row.text("kind").startswith("prefill") else "decode"
    shape = Attention(batch, q, kv, heads, kv_heads, width, width)
    found = timed(load().chip(OURS), [attention_of(shape)], "attention", "pytorch")
    label = f"{phase} batch {batch:g}, {q:g} on {kv:g} tokens, {heads:g}/{kv_heads:g} heads of {width:g}"
    return prediction(
        row,
        source=f"attention {phase}",
        hardware=OURS,
        label=label,
        measured_s=row.positive("ms") * 1e-3,
        found=found,
    )


def our_experts(row: Row) -> Prediction:
    """h200/moe_gemm.csv: all experts of a layer in one grouped or batched product."""
    tokens, experts, top_k, hidden, ffn = (
        row.count(column) for column in ("tokens", "experts", "topk", "hidden", "expert_ffn")
    )
    check_experts(top_k, experts)
    n, k = (2 * ffn, hidden) if row.text("op") == "gate_up" else (hidden, ffn)
    rows = max(tokens * top_k, experts)  # a batched product gives every expert at least one row
    shape = GroupedGemm(rows, experts, n, k, batched=row.text("how") == "bmm")
    operator = expert_product("experts", shape, min(rows, experts), "bf16")
    found = timed(load().chip(OURS), [operator], "grouped_gemm", "pytorch")
    label = f"{row.text('how')} {rows:g} rows, {experts:g} experts of {n:g} × {k:g}"
    return prediction(
        row,
        source="grouped GEMM",
        hardware=OURS,
        label=label,
        measured_s=row.positive("ms") * 1e-3,
        found=found,
    )


ELEMENTWISE = {  # bytes per element, and how they are touched
    "rmsnorm": (4.0, Stream(1.0, "rows")),
    "residual_add": (6.0, Stream(1.0)),
    "silu_mul_2kernels": (10.0, Stream(2.0, "strided")),
}


def our_elementwise(row: Row) -> Prediction:
    """h200/elementwise.csv: single kernels between two events."""
    op = row.text("op")
    if op not in ELEMENTWISE:
        raise RowError(f'element-wise operation "{op}" is not modelled')
    tokens, width = row.count("tokens"), row.count("width")
    size, shape = ELEMENTWISE[op]
    operator = streamed(op, tokens * width * size, msgspec.structs.replace(shape, row_width=width))
    found = timed(load().chip(OURS), [operator], "stream", "pytorch")
    edges = ((found.time_s, 1.0), (found.low_s, 0.9), (found.high_s, 1.1))
    shown = Timed(*(max(EVENT_FLOOR_S * edge, time + EVENT_GAP_S) for time, edge in edges))
    label = f"{op} {tokens:g} × {width:g}"
    return prediction(
        row,
        source="element-wise",
        hardware=OURS,
        label=label,
        measured_s=row.positive("ms") * 1e-3,
        found=shown,
    )


def our_pass(row: Row) -> Prediction:
    """h200/engine_infer.csv: whole forward passes of some layers of a model, with embedding and head."""
    model, sharding = _engine_model(row)
    batch, tokens = row.count("batch"), row.count("tokens_or_ctx")
    phase = row.text("phase")
    if phase not in PHASES:
        raise RowError(f'phase "{phase}" is not prefill or decode')
    query, past = (tokens, 0.0) if phase == "prefill" else (1.0, tokens - 1.0)
    operators = [
        operator
        for operator in forward_pass(
            model, batch=batch, query=query, past=past, sharding=sharding, fusion="lean",
            precision=Precision.named(row.text("precision")),
        )
        if operator.name not in NOT_IN_LEAN_ENGINE
    ]  # fmt: skip
    found = timed(load().chip(OURS), operators, "pass", "pytorch", sustained=True)
    return prediction(
        row,
        source=f"forward pass {phase} {row.text('precision')}",
        hardware=OURS,
        label=f"{row.text('model')} {phase} batch {batch:g}, {tokens:g} tokens",
        measured_s=row.positive("ms_run") * 1e-3,
        found=found,
    )


def _engine_model(row: Row) -> tuple[Model, Sharding]:
    name, _, shard = row.text("model").partition("-tp")
    model = load().model(MODELS.get(name, name))
    num_layers = int(row.count("layers_run"))
    if num_layers > model.num_layers:
        raise RowError(f"{model.name} has fewer layers than were run")
    kept = msgspec.structs.replace(model, layers=model.layers[:num_layers], num_layers=num_layers)
    share = shard.removesuffix("shard")
    if shard and not share.isdecimal():
        raise RowError(f'"tp{shard}" is not a share of a model')
    sharding = Sharding(tp=float(share) if shard else 1.0)
    sharding.check(kept)
    return kept, sharding
