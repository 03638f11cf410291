"""Single kernels as operators, from the sizes that a row of a table states."""

from __future__ import annotations

from datahall.catalog.number_formats import bytes_per_value, unit_for
from datahall.workload.operator import (
    Attention,
    Gemm,
    GroupedGemm,
    Number,
    Operator,
    Stream,
    attention_flop,
    gemm_flop,
    visible_tokens,
)


def matrix_product(m: Number, n: Number, k: Number, precision: str, weights: str | None = None) -> Operator:
    """A GEMM as an operator."""
    stored = weights or precision
    weight_bytes = n * k * bytes_per_value(stored)
    return Operator(
        name="gemm",
        shape=Gemm(m, n, k),
        precision=unit_for(precision),
        weight_precision=stored,
        flop=gemm_flop(m, n, k),
        read_bytes=m * k * bytes_per_value(precision) + weight_bytes,
        write_bytes=m * n * 2.0,
        weight_bytes=weight_bytes,
    )


def streamed(name: str, moved_bytes: Number, shape: Stream = Stream()) -> Operator:  # noqa: B008  # frozen
    return Operator(
        name=name, shape=shape, precision="bf16", weight_precision="bf16", flop=0.0, read_bytes=moved_bytes,
        write_bytes=0.0,
    )  # fmt: skip


def expert_product(name: str, shape: GroupedGemm, hit: Number, precision: str, weights: str = "") -> Operator:
    stored = weights or precision
    weight_bytes = hit * shape.n * shape.k * bytes_per_value(stored)
    return Operator(
        name=name,
        shape=shape,
        precision=unit_for(precision),
        weight_precision=stored,
        flop=gemm_flop(shape.rows, shape.n, shape.k),
        read_bytes=shape.rows * shape.k * bytes_per_value(precision) + weight_bytes,
        write_bytes=shape.rows * shape.n * 2.0,
        weight_bytes=weight_bytes,
    )


def attention_of(shape: Attention, kv: str = "bf16") -> Operator:
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
