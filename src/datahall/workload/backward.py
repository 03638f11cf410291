"""The backward pass as operators, each derived from the forward operator that it undoes.

A GEMM Y = X·W of (m × k) by (k × n) has two gradients, each as much arithmetic as itself:

    dX = dY·Wᵀ   (m × n)·(n × k)        dW = Xᵀ·dY   (k × m)·(m × n)

Reference: Narayanan et al. (2021), appendix; Dao (2023), FlashAttention-2, section 3.1 for attention.
"""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.model import Model
from datahall.catalog.number_formats import bytes_per_value
from datahall.workload.forward import forward_pass
from datahall.workload.fusion import Fusion, Passes
from datahall.workload.memory.activation import Recompute
from datahall.workload.operator import (
    Attention,
    Gemm,
    GroupedGemm,
    Number,
    Operator,
    Stream,
    gemm_flop,
)
from datahall.workload.precision import BF16, Precision
from datahall.workload.scan import ChunkedScan, scan_gradient
from datahall.workload.sharding import ONE_CHIP, Sharding


class Gradients(msgspec.Struct, frozen=True, kw_only=True):
    """How gradients are formed."""

    value_bytes: float = 4.0  # of a weight gradient
    accumulate: bool = True  # added to what is already there, so read and written
    flash: bool = True  # attention recomputes its scores inside backward
    quantise: bool = True  # casts of gradients to a narrow format are kernels of their own
    transposes: bool = True  # a weight gradient needs narrow copies of its operands the other way round


FP32_GRADIENTS = Gradients()


def training_pass(
    model: Model,
    *,
    batch: Number,
    seq: Number,
    sharding: Sharding = ONE_CHIP,
    precision: Precision = BF16,
    recompute: Recompute = "none",
    gradients: Gradients = FP32_GRADIENTS,
    fusion: str = "fused",
    embed: bool = True,
    head: bool = True,
) -> tuple[Operator, ...]:
    """Forward, loss and backward of one micro-batch of `batch` sequences of `seq` tokens on one chip.

    `embed` and `head` are false on pipeline stages that have none.

    >>> from datahall.catalog.entries.model import Layer
    >>> from datahall.workload.operator import total_flop
    >>> tiny = Model(name="tiny", title="", family="", year=2024, num_layers=2, hidden=64, num_heads=4,
    ...     num_kv_heads=2, head_dim=16, ffn=256, vocab=512, max_context=512,
    ...     layers=(Layer(mixer="full", mlp="dense"),) * 2)
    >>> operators = training_pass(tiny, batch=1, seq=128)
    >>> forward = total_flop([one for one in operators if not one.backward])
    >>> round(float(total_flop(operators) / forward), 3)  # flash attention redoes its scores
    3.048
    """
    forward = _forward(model, batch, seq, sharding, precision, fusion, gradients, embed, head)
    loss = (_loss(model, batch * seq, sharding, precision, Fusion.named(fusion).loss),) if head else ()
    backward = backward_pass(
        model,
        batch=batch,
        seq=seq,
        sharding=sharding,
        precision=precision,
        recompute=recompute,
        gradients=gradients,
        fusion=fusion,
        embed=embed,
        head=head,
    )
    return (*forward, *loss, *backward)


def backward_pass(
    model: Model,
    *,
    batch: Number,
    seq: Number,
    sharding: Sharding = ONE_CHIP,
    precision: Precision = BF16,
    recompute: Recompute = "none",
    gradients: Gradients = FP32_GRADIENTS,
    fusion: str = "fused",
    embed: bool = True,
    head: bool = True,
) -> tuple[Operator, ...]:
    """The operators of backward, from the loss to the embedding, recomputed forward ones included.

    Full recomputation runs every layer's forward again, selective only the attention core.
    """
    style = Fusion.named(fusion)
    forward = _forward(model, batch, seq, sharding, precision, fusion, gradients, embed, head)
    backward: list[Operator] = []
    if head and style.loss_backward.num_kernels:
        loss = _loss(model, batch * seq, sharding, precision, style.loss_backward)
        backward.append(msgspec.structs.replace(loss, name="loss_backward", backward=True))
    for operator in reversed(forward):
        if _is_recomputed(operator, recompute):
            again = msgspec.structs.replace(operator, name=f"{operator.name}_recompute", backward=True)
            backward.append(again)
        backward += gradient_operators(operator, style, gradients, precision)
    return tuple(backward)


def gradient_operators(
    forward: Operator, style: Fusion, gradients: Gradients, precision: Precision
) -> tuple[Operator, ...]:
    """The operators that undo one forward operator."""
    shape = forward.shape
    if isinstance(shape, Gemm):
        into = Gemm(shape.m, shape.k, shape.n)
        weight = Gemm(shape.k, shape.n, shape.m)
        return _gemm_gradients(forward, shape.m, shape.n, shape.k, 1.0, (into, weight), gradients, precision)
    if isinstance(shape, GroupedGemm):
        num = shape.num_experts
        into_grouped = GroupedGemm(shape.rows, num, shape.k, shape.n, shape.batched)
        weight_grouped = GroupedGemm(shape.k * num, num, shape.n, shape.rows / num, shape.batched)
        shapes = (into_grouped, weight_grouped)
        return _gemm_gradients(forward, shape.rows, shape.n, shape.k, num, shapes, gradients, precision)
    if isinstance(shape, Attention):
        return (_attention_gradient(forward, gradients),)
    return _stream_gradient(forward, shape, style, gradients)


def _gemm_gradients(
    forward: Operator,
    m: Number,
    n: Number,
    k: Number,
    num_weights: Number,
    shapes: tuple[Gemm | GroupedGemm, Gemm | GroupedGemm],
    gradients: Gradients,
    precision: Precision,
) -> tuple[Operator, ...]:
    narrow = forward.precision == precision.compute and precision.quantises_activations
    value_bytes = precision.activation_bytes_per_value if narrow else precision.wide_bytes_per_value
    gradient_bytes = num_weights * k * n * gradients.value_bytes
    flop = gemm_flop(m, n, k)
    into = msgspec.structs.replace(
        forward,
        name=f"{forward.name}_dgrad",
        shape=shapes[0],
        flop=flop,
        read_bytes=m * n * value_bytes + forward.weight_bytes,
        write_bytes=m * k * precision.wide_bytes_per_value,
        backward=True,
    )
    weight = msgspec.structs.replace(
        forward,
        name=f"{forward.name}_wgrad",
        shape=shapes[1],
        flop=flop,
        read_bytes=m * (n + k) * value_bytes + (gradient_bytes if gradients.accumulate else 0.0),
        write_bytes=gradient_bytes,
        weight_bytes=0.0,
        backward=True,
    )
    if not (narrow and gradients.quantise):
        return into, weight
    return _gradient_cast(forward, m, n, k, gradients.transposes, precision), into, weight


def _gradient_cast(
    forward: Operator, m: Number, n: Number, k: Number, transposes: bool, precision: Precision
) -> Operator:
    """The narrow copy of dY for dX, and where needed the transposed narrow copies of dY and X for dW.

    Hopper's FP8 units read both operands along k, so the weight gradient needs transposes; so do formats whose scales
    run along k.  Blackwell multiplies FP8 with one scale per tensor either way round.
    """
    narrow_bytes = precision.activation_bytes_per_value
    copies = m * (n + k) * narrow_bytes if transposes else 0.0
    return Operator(
        name=f"{forward.name}_gradient_quantise",
        shape=Stream(2.0 if transposes else 1.0),
        precision=precision.wide,
        weight_precision=precision.wide,
        flop=0.0,
        read_bytes=m * n * precision.wide_bytes_per_value + (m * k * narrow_bytes if transposes else 0.0),
        write_bytes=m * n * narrow_bytes + copies,
        count=forward.count,
        backward=True,
    )


def _attention_gradient(forward: Operator, gradients: Gradients) -> Operator:
    """Four products (dV, dP, dQ, dK) where forward has two, and with flash attention the scores again.

        FLOP = 2.5 × forward (flash), 2 × (scores kept)

    It reads q, k, v, the output and its gradient, and writes the gradients of q, k and v.
    """
    return msgspec.structs.replace(
        forward,
        name="attention_backward",
        flop=forward.flop * (2.5 if gradients.flash else 2.0),
        read_bytes=forward.read_bytes + 2 * forward.write_bytes,
        write_bytes=forward.read_bytes,
        backward=True,
    )


def _stream_gradient(
    forward: Operator, shape: Stream, style: Fusion, gradients: Gradients
) -> tuple[Operator, ...]:
    """Element-wise backward: a style's own for norms, the mirror image where nothing was saved."""
    if forward.name.endswith("_quantise"):
        return ()
    if isinstance(shape, ChunkedScan):
        return (scan_gradient(forward, shape),)
    if forward.name == "embedding":
        return (_embedding_gradient(forward, gradients),)
    if forward.name in ("mixer_norm", "mlp_norm"):
        return (_norm_gradient(forward, shape, style.add_norm, style.add_norm_backward),)
    if forward.name.endswith("_norm"):
        return (_norm_gradient(forward, shape, style.norm, style.norm_backward),)
    if forward.name in ("rope", "residual_add"):
        return (_undone(forward, shape, forward.write_bytes, forward.read_bytes),)
    reads = forward.read_bytes + forward.write_bytes
    return (_undone(forward, shape, reads, forward.read_bytes),)


def _norm_gradient(forward: Operator, shape: Stream, passes: Passes, backward: Passes) -> Operator:
    once_bytes = forward.read_bytes / passes.reads
    undoing = msgspec.structs.replace(shape, num_kernels=backward.num_kernels)
    return _undone(forward, undoing, backward.reads * once_bytes, backward.writes * once_bytes)


def _undone(forward: Operator, shape: Stream, read_bytes: Number, write_bytes: Number) -> Operator:
    return msgspec.structs.replace(
        forward,
        name=f"{forward.name}_backward",
        shape=shape,
        flop=2 * forward.flop,
        read_bytes=read_bytes,
        write_bytes=write_bytes,
        backward=True,
    )


def _embedding_gradient(forward: Operator, gradients: Gradients) -> Operator:
    """Rows of the output's gradient are added to the rows of the table that were looked up."""
    rows_bytes = forward.weight_bytes / bytes_per_value(forward.weight_precision) * gradients.value_bytes
    return msgspec.structs.replace(
        forward,
        name="embedding_backward",
        read_bytes=forward.write_bytes + rows_bytes,
        write_bytes=rows_bytes,
        weight_bytes=0.0,
        backward=True,
    )


def _is_recomputed(forward: Operator, recompute: Recompute) -> bool:
    if recompute == "full":
        return forward.name not in ("embedding", "embedding_norm", "final_norm", "head")
    return recompute == "selective" and isinstance(forward.shape, Attention)


def _loss(model: Model, tokens: Number, sharding: Sharding, precision: Precision, passes: Passes) -> Operator:
    """Softmax cross-entropy over each chip's share of the vocabulary."""
    logits_bytes = tokens / sharding.cp * model.vocab / sharding.tp * precision.wide_bytes_per_value
    return Operator(
        name="loss",
        shape=Stream(passes.num_kernels),
        precision=precision.wide,
        weight_precision=precision.wide,
        flop=0.0,
        read_bytes=passes.reads * logits_bytes,
        write_bytes=passes.writes * logits_bytes,
    )


def _forward(
    model: Model,
    batch: Number,
    seq: Number,
    sharding: Sharding,
    precision: Precision,
    fusion: str,
    gradients: Gradients,
    embed: bool,
    head: bool,
) -> tuple[Operator, ...]:
    return forward_pass(
        model,
        batch=batch,
        query=seq,
        sharding=sharding,
        precision=precision,
        logits="all" if head else "none",
        fusion=fusion,
        quantise=gradients.quantise,
        cached=False,
        latent="expanded",
        embed=embed,
    )
