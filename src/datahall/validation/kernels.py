"""Measured kernels and whole forward passes: what the silicon room is judged on.

Files are told apart by their columns: our H200 tables (GEMM, attention, grouped GEMM, element-wise,
forward passes)
and the kernel tables of AIConfigurator (GEMM, attention, MoE layers), which were measured under vLLM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from datahall.catalog import load
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.errors import DatahallError
from datahall.scenario.words import PHASES
from datahall.silicon.kernel import KernelTime, time_operators
from datahall.validation.busiest_expert import busiest
from datahall.validation.measurement import Format, Outcome, Row, RowError
from datahall.validation.scorecard import Prediction, Unsupported
from datahall.workload.forward import forward_pass
from datahall.workload.operator import (
    Attention,
    Gemm,
    GroupedGemm,
    Number,
    Operator,
    Stream,
    attention_flop,
    experts_hit,
    gemm_flop,
    visible_tokens,
)
from datahall.workload.precision import Precision, bytes_per_value
from datahall.workload.sharding import Sharding

OURS = "h200-sxm"
# One kernel timed between two events: what the events and the launch add, and the least they can show.
# Read off the smallest and largest rows of h200/elementwise.csv.
EVENT_GAP_S = 3.2e-6
EVENT_FLOOR_S = 9.4e-6
# The forward passes come from an engine of library calls; its time leaves no room for these kernels.
NOT_IN_LEAN_ENGINE = {"rope", "kv_write"}
SYSTEMS = {
    "a100_sxm": "a100-sxm-80gb", "h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200-sxm",
    "b300_sxm": "b300-sxm", "gb200": "gb200", "gb300": "gb300", "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000",
}  # fmt: skip
FORMATS_OF_TABLES = {"bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp8": "fp8", "nvfp4": "nvfp4"}
BLOCK_SCALED = "fp8_block"  # FP8 with a scale per 128 × 128 weights
# Weights, activations and arithmetic of formats that store weights narrower than they multiply.
WEIGHT_ONLY = {"w4a16_mxfp4": ("mxfp4", "bf16", "bf16"), "int4_wo": ("int4", "bf16", "bf16")}
MODELS = {
    "llama3-1b": "llama-3.2-1b", "llama3-3b": "llama-3.2-3b", "llama3-8b": "llama-3.1-8b",
    "llama3-70b": "llama-3.1-70b", "llama3-405b": "llama-3.1-405b",
}  # fmt: skip


def each(rows: Sequence[Row], predict: Callable[[Row], Prediction]) -> Iterator[Outcome]:
    """Predict row by row; what cannot be expressed becomes a counted reason."""
    for row in rows:
        try:
            yield predict(row)
        except (RowError, DatahallError) as problem:
            reason = problem.message if isinstance(problem, DatahallError) else str(problem)
            yield Unsupported(reason, row.where)


def matrix_product(m: Number, n: Number, k: Number, precision: str, weights: str | None = None) -> Operator:
    """A GEMM as an operator."""
    stored = weights or precision
    unit = {"nvfp4": "fp4", "mxfp4": "fp4"}.get(precision, precision)
    weight_bytes = n * k * bytes_per_value(stored)
    return Operator(
        name="gemm",
        shape=Gemm(m, n, k),
        precision=unit,
        weight_precision=stored,
        flop=gemm_flop(m, n, k),
        read_bytes=m * k * bytes_per_value(precision) + weight_bytes,
        write_bytes=m * n * 2.0,
        weight_bytes=weight_bytes,
    )


def _moved(name: str, moved_bytes: Number, shape: Stream = Stream()) -> Operator:  # noqa: B008  # frozen
    return Operator(
        name=name, shape=shape, precision="bf16", weight_precision="bf16", flop=0.0, read_bytes=moved_bytes,
        write_bytes=0.0,
    )  # fmt: skip


def _experts(name: str, shape: GroupedGemm, hit: Number, precision: str, weights: str = "") -> Operator:
    stored = weights or precision
    weight_bytes = hit * shape.n * shape.k * bytes_per_value(stored)
    return Operator(
        name=name,
        shape=shape,
        precision={"nvfp4": "fp4"}.get(precision, precision),
        weight_precision=stored,
        flop=gemm_flop(shape.rows, shape.n, shape.k),
        read_bytes=shape.rows * shape.k * bytes_per_value(precision) + weight_bytes,
        write_bytes=shape.rows * shape.n * 2.0,
        weight_bytes=weight_bytes,
    )


def _attention(shape: Attention, kv: str = "bf16") -> Operator:
    pairs = shape.batch * visible_tokens(shape.q_len, shape.kv_len - shape.q_len)
    cache = shape.batch * shape.kv_len * shape.num_kv_heads * 2 * shape.head_dim * bytes_per_value(kv)
    queries = shape.batch * shape.q_len * shape.num_heads * shape.head_dim * 2.0
    return Operator(
        name="attention",
        shape=shape,
        precision="bf16",
        weight_precision=kv,
        flop=attention_flop(pairs, shape.num_heads, shape.head_dim),
        read_bytes=queries + cache,
        write_bytes=queries,
    )


class Timed(msgspec.Struct, frozen=True):
    """A predicted time with its P10 and P90."""

    time_s: float
    low_s: float
    high_s: float


def timed(
    chip: Chip, operators: Sequence[Operator], band: str, stack: str, *, sustained: bool = False,
    block_scaled: bool = False, warm: bool = False, graph: bool = True,
) -> Timed:  # fmt: skip
    """Time operators on a chip and put the band of a kind of kernel around them."""
    passed = time_operators(
        chip, operators, stack=stack, sustained=sustained, block_scaled=block_scaled, warm=warm, graph=graph
    )
    total = float(sum((_scalar(kernel) for kernel in passed.kernels), 0.0))
    low, high = passed.calibration.constants.bands[band]
    return Timed(total, total * low, total * high)


def _scalar(kernel: KernelTime) -> float:
    return float(kernel.operator.count * kernel.time_s)


def _prediction(
    row: Row, *, source: str, hardware: str, label: str, measured_s: float, found: Timed, model: str = ""
) -> Prediction:
    return Prediction(
        source=row.text("source") + ": " + source if row.text("source") else source,
        hardware=hardware,
        model=model or row.text("model", "–"),
        label=label,
        where=row.where,
        measured=measured_s,
        predicted=found.time_s,
        low=found.low_s,
        high=found.high_s,
        fitted=row.fitted,
    )


def our_gemm(row: Row) -> Prediction:
    """h200/gemm.csv: cuBLAS products in a CUDA graph, weights rotated past the L2."""
    precision = FORMATS_OF_TABLES.get(row.text("dtype"))
    if precision is None:
        raise RowError(f'GEMM in "{row.text("dtype")}" is not modelled')
    m, n, k = (row.count(column) for column in "mnk")
    found = timed(load().chip(OURS), [matrix_product(m, n, k, precision)], "gemm", "pytorch")
    label = f"{precision} {m:g} × {n:g} × {k:g}"
    return _prediction(
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
    found = timed(load().chip(OURS), [_attention(shape)], "attention", "pytorch")
    label = f"{phase} batch {batch:g}, {q:g} on {kv:g} tokens, {heads:g}/{kv_heads:g} heads of {width:g}"
    return _prediction(
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
    _check_experts(top_k, experts)
    n, k = (2 * ffn, hidden) if row.text("op") == "gate_up" else (hidden, ffn)
    rows = max(tokens * top_k, experts)  # a batched product gives every expert at least one row
    shape = GroupedGemm(rows, experts, n, k, batched=row.text("how") == "bmm")
    operator = _experts("experts", shape, min(rows, experts), "bf16")
    found = timed(load().chip(OURS), [operator], "grouped_gemm", "pytorch")
    label = f"{row.text('how')} {rows:g} rows, {experts:g} experts of {n:g} × {k:g}"
    return _prediction(
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
    operator = _moved(op, tokens * width * size, msgspec.structs.replace(shape, row_width=width))
    found = timed(load().chip(OURS), [operator], "stream", "pytorch")
    edges = ((found.time_s, 1.0), (found.low_s, 0.9), (found.high_s, 1.1))
    shown = Timed(*(max(EVENT_FLOOR_S * edge, time + EVENT_GAP_S) for time, edge in edges))
    label = f"{op} {tokens:g} × {width:g}"
    return _prediction(
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
    return _prediction(
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
    ways = shard.removesuffix("shard")
    if shard and not ways.isdecimal():
        raise RowError(f'"tp{shard}" is not a share of a model')
    sharding = Sharding(tp=float(ways) if shard else 1.0)
    sharding.check(kept)
    return kept, sharding


def table_gemm(row: Row) -> Prediction:
    """AIConfigurator GEMM table; narrow formats include the cast of the activations."""
    chip, (precision, block_scaled) = _table_chip(row), _table_path(row, "gemm_dtype", "GEMM")
    m, n, k = (row.count(column) for column in "mnk")
    operators = [matrix_product(m, n, k, precision)]
    if precision not in {"bf16", "fp16"}:
        pattern = Stream(1.0, "cast" if precision == "fp8" else "plain")
        operators.append(_moved("quantise", m * k * (2.0 + bytes_per_value(precision)), pattern))
    # the block-scaled rows were launched from the host, one call that hides its cast: a graph does not pay that
    eager = (
        timed(chip, operators[:1], "gemm", "vllm", block_scaled=True, graph=False) if block_scaled else None
    )
    found = timed(chip, operators, "gemm", "vllm", block_scaled=block_scaled)
    if eager is not None and eager.time_s > found.time_s:
        found = eager
    shown = "fp8-block" if block_scaled else precision
    return _prediction(
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
    return _prediction(
        row,
        source=f"attention table {phase} {kv}",
        hardware=chip.name,
        label=f"{phase} batch {batch:g}, {q:g} on {tokens:g} tokens, {heads:g}/{kv_heads:g} heads",
        measured_s=row.positive("latency_ms") * 1e-3,
        found=timed(chip, [_attention(shape, kv)], "attention", "vllm", warm=True),
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
    _check_experts(top_k, experts)
    local, width = experts / ep, ffn / tp
    hit, copies = _reached(row.text("distribution", "uniform"), tokens, experts, top_k, ep)
    shown = FORMATS_OF_TABLES.get(row.text("moe_dtype"), row.text("moe_dtype").replace("_", "-"))
    narrow = bytes_per_value(values)
    operators: list[Operator] = []
    for name, n, k in (("expert_gate_up", 2 * width, hidden), ("expert_down", hidden, width)):
        operators.append(_experts(name, GroupedGemm(copies, local, n, k), hit, precision, weights))
        if narrow < 2.0:
            pattern = Stream(1.0, "cast" if values == "fp8" else "plain")
            operators.append(_moved("quantise", copies * k * (2.0 + narrow), pattern))
    operators += [
        _moved("dispatch", copies * hidden * 4.0, Stream(3.0)),
        _moved("activation", copies * width * 6.0),
        _moved("combine", (tokens * top_k + copies / top_k) * hidden * 2.0),
    ]
    return _prediction(
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


def _check_experts(top_k: float, num_experts: float) -> None:
    if top_k > num_experts:
        raise RowError("more experts per token than experts")


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


def _by_row(predict: Callable[[Row], Prediction]) -> Callable[[Sequence[Row]], Iterable[Outcome]]:
    return lambda rows: each(rows, predict)


FORMATS = (
    Format("GEMM", frozenset({"dtype", "m", "n", "k", "ms"}), _by_row(our_gemm)),
    Format(
        "attention",
        frozenset({"kind", "batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim", "ms"}),
        _by_row(our_attention),
    ),
    Format(
        "grouped GEMM",
        frozenset({"tokens", "experts", "topk", "hidden", "expert_ffn", "op", "ms", "how"}),
        _by_row(our_experts),
    ),
    Format("element-wise", frozenset({"op", "tokens", "width", "ms"}), _by_row(our_elementwise)),
    Format(
        "forward passes",
        frozenset({"model", "precision", "layers_run", "phase", "batch", "tokens_or_ctx", "ms_run"}),
        _by_row(our_pass),
    ),
    Format(
        "GEMM table", frozenset({"system", "gemm_dtype", "m", "n", "k", "latency_ms"}), _by_row(table_gemm)
    ),
    Format(
        "attention table",
        frozenset({"system", "batch_size", "q_len", "kv_len_past", "num_heads", "latency_ms"}),
        _by_row(table_attention),
    ),
    Format(
        "MoE table",
        frozenset({"system", "moe_dtype", "num_tokens", "num_experts", "topk", "latency_ms"}),
        _by_row(table_experts),
    ),
)
