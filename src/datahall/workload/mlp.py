"""What follows the mixer in a layer: a dense MLP, or routed experts beside shared ones."""

from __future__ import annotations

from datahall.catalog.entries.model import Layer, Moe
from datahall.workload.operator import GroupedGemm, Number, Operator, Stream, experts_hit
from datahall.workload.step import Step, expert_linear, linear, moved, stream, wide_linear

_INDEX_BYTES = 4.0


def mlp_operators(step: Step, layer: Layer, count: float) -> tuple[Operator, ...]:
    """The operators between a layer's second norm and its second residual addition."""
    match layer.mlp:
        case "dense":
            return dense_mlp(step, step.model.ffn, "", count)
        case "moe":
            assert step.model.moe is not None
            return mixture_of_experts(step, step.model.moe, count)
        case "none":
            return ()


def dense_mlp(step: Step, ffn: int, prefix: str, count: float) -> tuple[Operator, ...]:
    """Up (with its gate in one GEMM), activation, down; the width is split over the group."""
    model, tokens, width = step.model, step.tokens, ffn / step.sharding.tp
    up = "gate_up" if model.gated_mlp else "up"
    columns = (2 if model.gated_mlp else 1) * width
    return (
        *linear(step, prefix + up, tokens, columns, model.hidden, count, gathered=True),
        _activation(step, prefix + "activation", tokens * width, count),
        *linear(step, prefix + "down", tokens, model.hidden, width, count),
    )


def mixture_of_experts(step: Step, moe: Moe, count: float) -> tuple[Operator, ...]:
    """Router, gather of the token copies, grouped GEMMs over the experts hit, weighted sum, shared experts.

    Routing is uniform: a chip gets 1/ep of the copies of all batches that meet at its experts.
    """
    model, sharding = step.model, step.sharding
    width = moe.expert_ffn / sharding.expert_tp
    copies = step.tokens * sharding.expert_groups * moe.top_k / sharding.ep
    local = moe.num_experts / sharding.ep
    hit = experts_hit(step.tokens * sharding.expert_groups, moe.num_experts, moe.top_k, local)
    columns = (2 if model.gated_mlp else 1) * width
    up = "expert_gate_up" if model.gated_mlp else "expert_up"
    operators = [
        wide_linear(step, "router", step.stream_tokens, moe.num_experts, model.hidden, count),
        _dispatch(step, moe, copies, count),
        *expert_linear(step, up, GroupedGemm(copies, local, columns, model.hidden), hit, count),
        _activation(step, "expert_activation", copies * width, count),
        *expert_linear(step, "expert_down", GroupedGemm(copies, local, model.hidden, width), hit, count),
        _combine(step, copies, count),
    ]
    if moe.shared_ffn:
        operators += dense_mlp(step, moe.shared_ffn, "shared_", count)
    if moe.shared_gate:
        operators.append(wide_linear(step, "shared_gate", step.stream_tokens, 1.0, model.hidden, count))
    return tuple(operators)


def _activation(step: Step, name: str, elements: Number, count: float) -> Operator:
    return stream(
        step, name, elements, step.fusion.gated if step.model.gated_mlp else step.fusion.plain, count
    )


def _dispatch(step: Step, moe: Moe, copies: Number, count: float) -> Operator:
    """Top-k of the router's scores, a sort by expert, a gather of the rows: three kernels."""
    scores = step.stream_tokens * moe.num_experts * step.wide_bytes
    rows = copies * step.model.hidden * step.wide_bytes
    indices = copies * 2 * _INDEX_BYTES
    return moved(step, "dispatch", scores + rows + indices, rows + indices, count, shape=Stream(3.0))


def _combine(step: Step, copies: Number, count: float) -> Operator:
    """The weighted sum of a token's expert outputs."""
    row_bytes = step.model.hidden * step.wide_bytes
    return moved(step, "combine", copies * row_bytes, step.stream_tokens * row_bytes, count)
