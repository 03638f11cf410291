"""One pass through a model on one chip: its tokens, and how an operator is made from a shape."""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.model import Model
from datahall.catalog.number_formats import bytes_per_value
from datahall.workload.fusion import Fusion, Passes
from datahall.workload.operator import (
    Attention,
    Gemm,
    GroupedGemm,
    Number,
    Operator,
    Stream,
    attention_flop,
    gemm_flop,
    keys_read,
    visible_tokens,
)
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding


class Chunk(msgspec.Struct, frozen=True):
    """`batch` sequences that each bring `query` new tokens after `past` ones already in the cache."""

    batch: Number
    query: Number
    past: Number


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What every operator of a pass needs to know; `tokens` are the new ones of the tensor-parallel group."""

    model: Model
    chunks: tuple[Chunk, ...]
    sharding: Sharding
    precision: Precision
    fusion: Fusion
    tokens: Number
    quantise: bool = True  # casts to a narrow format are kernels of their own
    cached: bool = True  # keys and values go to a cache (serving), not only to the next kernel (training)
    absorbed: bool = False  # latent attention attends in the latent space

    @property
    def attention_tokens(self) -> Number:
        """New tokens that the attention layers of this chip handle."""
        return self.tokens / self.sharding.attention_dp

    @property
    def stream_tokens(self) -> Number:
        """New tokens that the norms and residual additions of this chip handle."""
        return self.tokens / self.sharding.stream_split

    @property
    def wide_bytes(self) -> float:
        return self.precision.wide_bytes_per_value


_PLAIN = Stream()


def stream(
    step: Step, name: str, elements: Number, passes: Passes, count: float, *, row_width: Number | None = None
) -> Operator:
    """Element-wise work over `elements` values of the wide format, in rows of `row_width` (else of a token)."""
    width = step.model.hidden if row_width is None else row_width
    return moved(
        step,
        name,
        passes.reads * elements * step.wide_bytes,
        passes.writes * elements * step.wide_bytes,
        count,
        shape=Stream(passes.num_kernels, passes.pattern, width),
    )


def moved(
    step: Step,
    name: str,
    read_bytes: Number,
    write_bytes: Number,
    count: float,
    *,
    flop: Number = 0.0,
    weight_bytes: Number = 0.0,
    shape: Stream = _PLAIN,
) -> Operator:
    """Memory-bound work of so many bytes in and out."""
    wide = step.precision.wide
    return Operator(
        name=name,
        shape=shape,
        precision=wide,
        weight_precision=wide,
        flop=flop,
        read_bytes=read_bytes,
        write_bytes=write_bytes,
        weight_bytes=weight_bytes,
        count=count,
    )


def linear(
    step: Step, name: str, m: Number, n: Number, k: Number, count: float, *, gathered: bool = False
) -> tuple[Operator, ...]:
    """A linear layer in the model's precision, with the cast of its input where that is a kernel.

    Under sequence parallelism the input of a layer split by columns is `gathered`: each chip casts its own tokens
    and narrow ones are sent.
    """
    own = m * k / (step.sharding.stream_split if gathered else 1.0)
    return (*cast(step, name, own, count), _product(step, name, Gemm(m, n, k), m, n * k, count))


def wide_linear(step: Step, name: str, m: Number, n: Number, k: Number, count: float) -> Operator:
    """A linear layer that is never quantised: router, head."""
    return _product(step, name, Gemm(m, n, k), m, n * k, count, wide=True)


def expert_linear(
    step: Step, name: str, shape: GroupedGemm, num_hit: Number, count: float
) -> tuple[Operator, ...]:
    """A grouped GEMM that reads only the experts that some token reached."""
    product = _product(step, name, shape, shape.rows, num_hit * shape.n * shape.k, count)
    return (*cast(step, name, shape.rows * shape.k, count), product)


def wide_batched(step: Step, name: str, shape: GroupedGemm, count: float) -> Operator:
    """A projection per head that is never quantised, as one batched GEMM."""
    return _product(step, name, shape, shape.rows, shape.num_experts * shape.n * shape.k, count, wide=True)


def _product(
    step: Step,
    name: str,
    shape: Gemm | GroupedGemm,
    rows: Number,
    weights: Number,
    count: float,
    *,
    wide: bool = False,
) -> Operator:
    precision = step.precision
    weight_format = precision.wide if wide else precision.weights
    input_format = precision.wide if wide else precision.activations
    weight_bytes = weights * bytes_per_value(weight_format)
    return Operator(
        name=name,
        shape=shape,
        precision=precision.wide_compute if wide else precision.compute,
        weight_precision=weight_format,
        flop=gemm_flop(rows, shape.n, shape.k),
        read_bytes=rows * shape.k * bytes_per_value(input_format) + weight_bytes,
        write_bytes=rows * shape.n * step.wide_bytes,
        weight_bytes=weight_bytes,
        count=count,
    )


def cast(step: Step, name: str, elements: Number, count: float) -> tuple[Operator, ...]:
    """The kernel that brings a GEMM's input to a narrow format: none where there is nothing to do."""
    precision = step.precision
    if not (step.quantise and precision.quantises_activations):
        return ()
    narrow = elements * precision.activation_bytes_per_value
    # one scale for the whole tensor must be found before it is applied; a scale per block is found on the way
    shape = Stream(1.0, "cast" if precision.tensor_scaled else "plain")
    return (moved(step, f"{name}_quantise", elements * step.wide_bytes, narrow, count, shape=shape),)


def attention_core(
    step: Step, chunk: Chunk, shape: Attention, kv_format: str, kv_values: Number, count: float
) -> Operator:
    """Scores, softmax and weighted values of one chunk.

    `kv_values` is what is stored per token and read once: K and V of each KV head on this chip, or one
    latent vector.  With context parallelism a chip holds query/cp of the new tokens, in slices chosen so
    that each sees as many keys, and every key and value passes by once.
    """
    window = shape.window
    pairs = shape.batch * visible_tokens(chunk.query, chunk.past, window) / step.sharding.cp
    queries = shape.batch * shape.q_len * shape.num_heads
    kv_bytes = (
        shape.batch * keys_read(chunk.query, chunk.past, window) * kv_values * bytes_per_value(kv_format)
    )
    return Operator(
        name="attention",
        shape=shape,
        precision=step.precision.wide_compute,
        weight_precision=kv_format,
        flop=attention_flop(pairs, shape.num_heads, shape.head_dim, shape.value_dim),
        read_bytes=queries * shape.head_dim * step.wide_bytes + kv_bytes,
        write_bytes=queries * shape.value_dim * step.wide_bytes,
        count=count,
    )
