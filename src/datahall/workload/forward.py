"""The forward pass of a transformer as a list of operators on one chip.

A GEMM of (m × k) by (k × n) does 2·m·n·k FLOP; attention over n heads of width d does 4·n·d FLOP per visible
query–key pair; what lies between them is memory traffic.  References: Vaswani et al. (2017), Attention is all
you need; Shoeybi et al. (2019), Megatron-LM, for the split over chips.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from datahall.catalog.entries.model import Layer, Model
from datahall.workload.fusion import Fusion
from datahall.workload.mixer import mixer_operators
from datahall.workload.mlp import mlp_operators
from datahall.workload.operator import Number, Operator
from datahall.workload.precision import BF16, Precision, attention_stays_wide
from datahall.workload.sharding import ONE_CHIP, Sharding
from datahall.workload.step import Chunk, Step, moved, stream, wide_linear

Logits = Literal["last", "all", "none"]
Latent = Literal["auto", "absorbed", "expanded"]
Part = Literal["all", "mixers", "head"]


# operators of attention that multiply weights
PROJECTIONS = {"qkv", "qkv_down", "q_up", "kv_up", "attention_output"}


def served_pass(
    describe: Callable[[Precision], Sequence[Operator]], model: Model, precision: Precision
) -> tuple[Operator, ...]:
    """A pass of a checkpoint as it is published: where attention stays wide, its projections as they are in 16 bits."""
    narrow = describe(precision)
    if not attention_stays_wide(model, precision):
        return tuple(narrow)
    wide = (one for one in describe(Precision(kv=precision.kv)) if one.name in PROJECTIONS)
    return tuple(
        next(wide) if one.name in PROJECTIONS else one
        for one in narrow
        if one.name in PROJECTIONS or one.name.removesuffix("_quantise") not in PROJECTIONS
    )


def forward_pass(
    model: Model,
    *,
    batch: Number,
    query: Number,
    past: Number = 0.0,
    sharding: Sharding = ONE_CHIP,
    precision: Precision = BF16,
    logits: Logits = "last",
    fusion: str = "fused",
    quantise: bool = True,
    cached: bool = True,
    latent: Latent = "auto",
    embed: bool = True,
    part: Part = "all",
) -> tuple[Operator, ...]:
    """The operators of `batch` sequences of `query` new tokens after `past` cached ones, on one chip.

    Prefill is query = prompt, past = 0; decode is query = 1, past = context; a chunk of a prompt lies
    between.  Numbers may be NumPy columns.  `logits`: the head runs on each sequence's last token, on all
    (training, scoring) or not at all (a pipeline stage before the last; `embed` likewise for the first).
    `fusion` is the style of the element-wise kernels, `quantise` makes casts to a narrow format kernels of
    their own, `cached` writes keys and values to a cache, `latent` says how latent attention runs ("auto":
    absorbed when every query is a single token).  `part`: all of it, attention and what else mixes tokens, or the
    head with its norm; a part is far less work to describe.

    >>> from datahall.catalog.entries.model import Layer
    >>> from datahall.workload.operator import total_flop
    >>> llama = Model(name="llama-3.1-8b", title="", family="", year=2024, num_layers=32, hidden=4096,
    ...     num_heads=32, num_kv_heads=8, head_dim=128, ffn=14336, vocab=128256, max_context=131072,
    ...     layers=(Layer(mixer="full", mlp="dense"),) * 32)
    >>> decode = forward_pass(llama, batch=1, query=1, past=1023)
    >>> [one.name for one in decode if one.count == 32]  # doctest: +NORMALIZE_WHITESPACE
    ['mixer_norm', 'qkv', 'rope', 'kv_write', 'attention', 'attention_output', 'mlp_norm', 'gate_up',
     'activation', 'down']
    >>> float(total_flop(decode)) / 1e9
    15.546187776
    """
    chunk = Chunk(batch, query, past)
    return mixed_pass(
        model,
        (chunk,),
        sharding=sharding,
        precision=precision,
        logits=logits,
        fusion=fusion,
        quantise=quantise,
        cached=cached,
        latent=latent,
        embed=embed,
        part=part,
    )


def mixed_pass(
    model: Model,
    chunks: Sequence[Chunk],
    *,
    sharding: Sharding = ONE_CHIP,
    precision: Precision = BF16,
    logits: Logits = "last",
    fusion: str = "fused",
    quantise: bool = True,
    cached: bool = True,
    latent: Latent = "auto",
    embed: bool = True,
    part: Part = "all",
) -> tuple[Operator, ...]:
    """The operators of one step that serves several kinds of chunk at once: decodes beside a prefill.

    GEMMs and norms see all tokens together; each chunk has an attention operator of its own.
    """
    step = Step(
        model=model,
        chunks=tuple(chunks),
        sharding=sharding,
        precision=precision,
        fusion=Fusion.named(fusion),
        tokens=sum((chunk.batch * chunk.query for chunk in chunks), 0.0) / sharding.cp,
        quantise=quantise,
        cached=cached,
        absorbed=_absorbs(latent, chunks),
    )
    if part == "head":
        return _head(step, logits)
    described = mixer_operators if part == "mixers" else layer_operators
    layers = [
        operator for layer, count in model.layer_groups() for operator in described(step, layer, float(count))
    ]
    if part == "mixers":
        return tuple(layers)
    return (*(_embedding(step) if embed else ()), *layers, *_head(step, logits))


def layer_operators(step: Step, layer: Layer, count: float = 1.0) -> tuple[Operator, ...]:
    """The operators of one kind of layer, each standing for `count` layers.

    Each block (mixer, MLP) brings one residual addition, done in one go with a norm while there are norms;
    further norms (Gemma's after each block) and additions (parallel blocks) stand alone.
    """
    hidden, num_norms = step.stream_tokens * step.model.hidden, step.model.norms_per_layer
    named = (("mixer", mixer_operators(step, layer, count)), ("mlp", mlp_operators(step, layer, count)))
    blocks = [(name, operators) for name, operators in named if operators]
    result: list[Operator] = []
    for index, (name, operators) in enumerate(blocks):
        if index < num_norms:
            result.append(stream(step, f"{name}_norm", hidden, step.fusion.add_norm, count))
        result += operators
    spare_norms, spare_adds = num_norms - len(blocks), len(blocks) - num_norms
    if spare_norms > 0:
        result.append(stream(step, "post_norm", hidden, step.fusion.norm, count * spare_norms))
    if spare_adds > 0:
        result.append(stream(step, "residual_add", hidden, step.fusion.add, count * spare_adds))
    return tuple(result)


def _embedding(step: Step) -> tuple[Operator, ...]:
    """Rows of the token table; each of the tp chips holds a share of the vocabulary."""
    row_bytes = step.model.hidden * step.wide_bytes
    looked_up = step.tokens * row_bytes / step.sharding.tp
    lookup = moved(step, "embedding", looked_up, step.tokens * row_bytes, 1.0, weight_bytes=looked_up)
    if not step.model.embedding_norm:
        return (lookup,)
    hidden = step.stream_tokens * step.model.hidden
    return lookup, stream(step, "embedding_norm", hidden, step.fusion.norm, 1.0)


def _head(step: Step, logits: Logits) -> tuple[Operator, ...]:
    """The final norm over all tokens, and the head over those whose logits are wanted."""
    if logits == "none":
        return ()
    model = step.model
    rows = step.tokens if logits == "all" else sum((chunk.batch for chunk in step.chunks), 0.0)
    return (
        stream(step, "final_norm", step.stream_tokens * model.hidden, step.fusion.norm, 1.0),
        wide_linear(step, "head", rows, model.vocab / step.sharding.tp, model.hidden, 1.0),
    )


def _absorbs(latent: Latent, chunks: Sequence[Chunk]) -> bool:
    if latent != "auto":
        return latent == "absorbed"
    return all(bool(np.all(np.asarray(chunk.query) == 1)) for chunk in chunks)
