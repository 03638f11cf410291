"""The kernel tables of AIConfigurator, measured under vLLM on many chips."""

from __future__ import annotations

from datahall.catalog import load
from datahall.catalog.entries.chip import Chip
from datahall.catalog.number_formats import bytes_per_value
from datahall.validation.busiest_expert import busiest
from datahall.validation.kernels.operators import attention_of, expert_product, matrix_product, streamed
from datahall.validation.kernels.prediction import FORMATS_OF_TABLES, check_experts, prediction, timed
from datahall.validation.measurement import Row, RowError
from datahall.validation.scorecard import Prediction
from datahall.workload.operator import Attention, GroupedGemm, Operator, Stream, experts_hit

SYSTEMS = {
    "a100_sxm": "a100-sxm-80gb", "h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200-sxm",
    "b300_sxm": "b300-sxm", "gb200": "gb200", "gb300": "gb300", "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000",
}  # fmt: skip
BLOCK_SCALED = "fp8_block"  # FP8 with a scale per 128 × 128 weights
# Weights, activations and arithmetic of formats that store weights narrower than they multiply.
WEIGHT_ONLY = {"w4a16_mxfp4": ("mxfp4", "bf16", "bf16"), "int4_wo": ("int4", "bf16", "bf16")}


def table_gemm(row: Row) -> Prediction:
    """AIConfigurator GEMM table; narrow formats include the cast of the activations."""
    chip, (precision, block_scaled) = _table_chip(row), _table_path(row, "gemm_dtype", "GEMM")
    m, n, k = (row.count(column) for column in "mnk")
    operators = [matrix_product(m, n, k, precision)]
    if precision not in {"bf16", "fp16"}:
        pattern = Stream(1.0, "cast" if precision == "fp8" else "plain")
        operators.append(streamed("quantise", m * k * (2.0 + bytes_per_value(precision)), pattern))
    # the block-scaled rows were launched from the host, one call that hides its cast: a graph does not pay that
    eager = (
        timed(chip, operators[:1], "gemm", "vllm", block_scaled=True, graph=False) if block_scaled else None
    )
    found = timed(chip, operators, "gemm", "vllm", block_scaled=block_scaled)
    if eager is not None and eager.time_s > found.time_s:
        found = eager
    shown = "fp8-block" if block_scaled else precision
    return prediction(
        row, source=f"GEMM table {shown}", hardware=chip.name, label=f"{shown} {m:g} × {n:g} × {k:g}",
        measured_s=row.positive("latency_ms") * 1e-3, found=found,
    )  # fmt: skip


def table_attention(row: Row) -> Prediction:
    """AIConfigurator attention table."""
    chip, kv = _table_chip(row), _table_format(row, "kv_cache_dtype", "attention over a cache")
    batch, q, heads, kv_heads, width = (
        row.count(column)
        for column in ("batch_size", "q_len", "num_heads", "num_key_value_heads", "head_dim")
    )
    past = row.number("kv_len_past")
    if past < 0:
        raise RowError('column "kv_len_past" is below zero')
    tokens = q + past
    shape = Attention(batch, q, tokens, heads, kv_heads, width, width)
    phase = "decode" if q == 1 else "prefill"
    return prediction(
        row,
        source=f"attention table {phase} {kv}",
        hardware=chip.name,
        label=f"{phase} batch {batch:g}, {q:g} on {tokens:g} tokens, {heads:g}/{kv_heads:g} heads",
        measured_s=row.positive("latency_ms") * 1e-3,
        found=timed(chip, [attention_of(shape, kv)], "attention", "vllm", warm=True),
    )


def table_experts(row: Row) -> Prediction:
    """AIConfigurator MoE table: routing aside, both products of a gated layer and what lies around them.

    Every rank sums over the copies of all tokens, those of other ranks' experts included.
    """
    chip = _table_chip(row)
    weights, values, precision, block_scaled = _expert_formats(row)
    tokens, hidden, ffn, top_k, experts, tp, ep = (
        row.count(column)
        for column in (
            "num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size",
        )
    )  # fmt: skip
    check_experts(top_k, experts)
    local, width = experts / ep, ffn / tp
    hit, copies = _reached(row.text("distribution", "uniform"), tokens, experts, top_k, ep)
    shown = FORMATS_OF_TABLES.get(row.text("moe_dtype"), row.text("moe_dtype").replace("_", "-"))
    narrow = bytes_per_value(values)
    operators: list[Operator] = []
    for name, n, k in (("expert_gate_up", 2 * width, hidden), ("expert_down", hidden, width)):
        operators.append(expert_product(name, GroupedGemm(copies, local, n, k), hit, precision, weights))
        if narrow < 2.0:
            pattern = Stream(1.0, "cast" if values == "fp8" else "plain")
            operators.append(streamed("quantise", copies * k * (2.0 + narrow), pattern))
    operators += [
        streamed("dispatch", copies * hidden * 4.0, Stream(3.0)),
        streamed("activation", copies * width * 6.0),
        streamed("combine", (tokens * top_k + copies / top_k) * hidden * 2.0),
    ]
    return prediction(
        row, source=f"MoE table {shown}", hardware=chip.name,
        label=f"{tokens:g} tokens, top {top_k:g} of {experts:g} experts of {hidden:g} × {ffn:g}",
        measured_s=row.positive("latency_ms") * 1e-3,
        found=timed(chip, operators, "grouped_gemm", "vllm", block_scaled=block_scaled),
    )  # fmt: skip


def _reached(how: str, tokens: float, experts: float, top_k: float, ep: float) -> tuple[float, float]:
    """Experts hit and token copies of the rank that ends last."""
    if how == "balanced" or how.startswith("power_law_"):
        return busiest(int(tokens), int(experts), int(top_k), int(ep), how)
    copies = max(1.0, tokens * top_k / ep)
    return min(float(experts_hit(tokens, experts, top_k, experts / ep)), copies), copies


def _expert_formats(row: Row) -> tuple[str, str, str, bool]:
    """Formats of weights, activations and arithmetic, and whether FP8 scales are per block."""
    name = row.text("moe_dtype")
    if name in WEIGHT_ONLY:
        return *WEIGHT_ONLY[name], False
    precision, block_scaled = _table_path(row, "moe_dtype", "MoE layer")
    return precision, precision, precision, block_scaled


def _table_chip(row: Row) -> Chip:
    system = row.text("system")
    if system not in SYSTEMS:
        raise RowError(f'system "{system}" has no calibrated kernels')
    return load().chip(SYSTEMS[system])


def _table_format(row: Row, column: str, what: str) -> str:
    name = row.text(column)
    if name not in FORMATS_OF_TABLES:
        raise RowError(f"{what} in {name} is not modelled")
    return FORMATS_OF_TABLES[name]


def _table_path(row: Row, column: str, what: str) -> tuple[str, bool]:
    """The format of a row's arithmetic, and whether its scales are per block."""
    if row.text(column) == BLOCK_SCALED:
        return "fp8", True
    return _table_format(row, column, what), False
