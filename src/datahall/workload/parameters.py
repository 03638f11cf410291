"""How many parameters a model has: in all, per token, by part, and how tensor parallelism spreads each part.

Symbols: h hidden width, n query heads, k key-value heads, d head width, f MLP width, V vocabulary.

    attention   h·(n + 2k)·d in,  n·d·h out
    MLP         2·h·f plain,  3·h·f gated
    experts     E times an MLP of width f_e, of which a token passes top_k;  router h·E
    table       V·h, once when the head is tied to it, else twice

Reference: the weights as the makers publish them, and for tensor parallelism Shoeybi et al., Megatron-LM
(2019) and Korthikanti et al., Reducing Activation Recomputation (2022).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from datahall.catalog.entries.model import Layer, Mla, Model, Moe, PublishedBasis, Recurrent

# "sharded" weights are cut over the tensor-parallel group, "replicated" ones are whole on each chip of it,
# "expert" ones are spread over the expert-parallel group.  The token table and the head stand apart because
# only the first and the last pipeline stage hold them; both are cut over the vocabulary.
Sharding = Literal["sharded", "replicated", "expert", "embedding", "head"]


ATTENTION, LATENT = "attention", "latent projections"  # the weights of attention by name


class Part(msgspec.Struct, frozen=True):
    """Some weights of one name: how many, how many of them a token passes, how they are spread."""

    name: str
    count: int
    sharding: Sharding
    active: int


class ParameterCount(msgspec.Struct, frozen=True):
    """The parameters of a model or of one layer.

    `active` is what one token passes: of the routed experts only top_k, of everything else all.  It
    includes the token table and the head, as most makers count; `as_published` leaves out what others do.
    """

    parts: tuple[Part, ...]

    @property
    def total(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def active(self) -> int:
        return sum(part.active for part in self.parts)

    def of(self, sharding: Sharding) -> int:
        """The parameters that are spread in this way."""
        return sum(part.count for part in self.parts if part.sharding == sharding)

    def share(self, part: Part) -> float:
        """A part over all parameters."""
        return part.count / self.total

    def as_published(self, basis: PublishedBasis, *, active: bool = False) -> int:
        """`total` or `active` as a maker counts it."""
        left_out = {
            "all": 0,
            "without embedding": self.embedding,
            "without tables": self.embedding + self.head,
        }
        return (self.active if active else self.total) - left_out[basis]

    @property
    def sharded(self) -> int:
        return self.of("sharded")

    @property
    def replicated(self) -> int:
        return self.of("replicated")

    @property
    def expert(self) -> int:
        return self.of("expert")

    @property
    def embedding(self) -> int:
        return self.of("embedding")

    @property
    def head(self) -> int:
        """The head's own parameters: none when it shares the token table."""
        return self.of("head")


def count_parameters(model: Model) -> ParameterCount:
    """Count the parameters of a whole model, by part.

    >>> from datahall.catalog.entries.model import Layer
    >>> llama = Model(name="llama-3.1-8b", title="", family="", year=2024, num_layers=32, hidden=4096,
    ...     num_heads=32, num_kv_heads=8, head_dim=128, ffn=14336, vocab=128256, max_context=131072,
    ...     layers=(Layer(mixer="full", mlp="dense"),) * 32)
    >>> count_parameters(llama).total
    8030261248
    """
    known = _COUNTED.get(id(model))
    if known is None or known[0] is not model:
        if len(_COUNTED) >= MOST_COUNTED:
            _COUNTED.clear()
        known = _COUNTED[id(model)] = model, _counted(model)
    return known[1]


MOST_COUNTED = 64
_COUNTED: dict[
    int, tuple[Model, ParameterCount]
] = {}  # models seen last, which are kept so that no other has their id


def _counted(model: Model) -> ParameterCount:
    layers = [
        Part(part.name, part.count * times, part.sharding, part.active * times)
        for layer, times in model.layer_groups()
        for part in layer_parameters(model, layer).parts
    ]
    return _merged([*_before(model), *layers, *_after(model)])


def layer_parameters(model: Model, layer: Layer) -> ParameterCount:
    """Count the parameters of one layer of a model."""
    parts = [_part("norms", model.norms_per_layer * _norm(model, model.hidden), "replicated")]
    match layer.mixer:
        case "full" | "window":
            parts += _attention(model)
        case "mla":
            assert model.mla is not None
            parts += _latent_attention(model, model.mla)
        case "linear":
            assert model.recurrent is not None
            parts += _delta_net(model.hidden, model.recurrent)
        case "mamba":
            assert model.recurrent is not None
            parts += _mamba(model.hidden, model.recurrent)
        case "none":
            pass
    match layer.mlp:
        case "dense":
            parts += _mlp(model, model.ffn, bias=model.mlp_bias)
        case "moe":
            assert model.moe is not None
            parts += _experts(model, model.moe)
        case "none":
            pass
    return _merged(parts)


def _before(model: Model) -> list[Part]:
    rows = (model.num_positions or model.max_context) if model.position == "learned" else 0
    return [
        _part("token table", model.vocab * model.hidden, "embedding"),
        _part("position table", rows * model.hidden, "replicated"),
        _part("embedding norm", _norm(model, model.hidden) * model.embedding_norm, "replicated"),
    ]


def _after(model: Model) -> list[Part]:
    own_matrix = 0 if model.tied_embeddings else model.vocab * model.hidden
    return [
        _part("final norm", _norm(model, model.hidden), "replicated"),
        _part("head", own_matrix + model.vocab * model.head_bias, "head"),
    ]


def _norm(model: Model, width: int) -> int:
    """Weights of one norm: a scale, and in LayerNorm an offset."""
    match model.norm:
        case "layernorm":
            return 2 * width
        case "none":
            return 0
        case _:
            return width


def _attention(model: Model) -> list[Part]:
    hidden, head_dim = model.hidden, model.head_dim
    queries, keys = model.num_heads * head_dim, model.num_kv_heads * head_dim
    columns = queries * (2 if model.attention_gate else 1) + 2 * keys
    sinks = model.num_heads * model.attention_sinks
    normed = {"none": 0, "head": 2 * head_dim, "width": queries + keys}[model.qk_norm]
    return [
        _part(ATTENTION, columns * (hidden + model.qkv_bias) + queries * hidden + sinks, "sharded"),
        _part("query and key norms", normed, "replicated"),
        _part("row biases", hidden * model.output_bias, "replicated"),
    ]


def _latent_attention(model: Model, mla: Mla) -> list[Part]:
    """Keys and values come from one vector of kv_rank, queries from one of q_rank (DeepSeek-V2, 2024).

    The matrices down to the ranks are whole on each chip, those back up to the heads are cut by head.
    """
    hidden, num_heads = model.hidden, model.num_heads
    query = num_heads * (mla.nope_head_dim + mla.rope_head_dim)
    down = hidden * (mla.q_rank + mla.kv_rank + mla.rope_head_dim)
    up = (mla.q_rank or hidden) * query + mla.kv_rank * num_heads * (mla.nope_head_dim + mla.value_head_dim)
    return [
        _part(LATENT, down, "replicated"),
        _part("query and key norms", mla.q_rank + mla.kv_rank, "replicated"),
        _part(ATTENTION, up + num_heads * mla.value_head_dim * hidden, "sharded"),
    ]


def _delta_net(hidden: int, recurrent: Recurrent) -> list[Part]:
    """Gated delta net (Yang et al., 2024): q, k, v, output gate, two gates per head, a short convolution."""
    keys = recurrent.num_key_heads * recurrent.key_dim
    values = recurrent.num_heads * recurrent.head_dim
    columns = 2 * keys + 2 * values + 2 * recurrent.num_heads
    taps = (2 * keys + values) * recurrent.conv_width
    decays = 2 * recurrent.num_heads
    return [
        _part("recurrent", hidden * columns + values * hidden + taps + decays, "sharded"),
        _part("recurrent norm", recurrent.head_dim, "replicated"),
    ]


def _mamba(hidden: int, recurrent: Recurrent) -> list[Part]:
    """Mamba-2 (Dao and Gu, 2024): gate, x, B, C, step; a convolution with bias; A, D, step bias; a norm."""
    inner = recurrent.num_heads * recurrent.head_dim
    convolved = inner + 2 * recurrent.num_key_heads * recurrent.key_dim
    columns = inner + convolved + recurrent.num_heads
    taps = convolved * (recurrent.conv_width + 1)
    return [
        _part(
            "recurrent", hidden * columns + inner * hidden + taps + 3 * recurrent.num_heads + inner, "sharded"
        )
    ]


def _mlp(model: Model, width: int, *, bias: bool) -> list[Part]:
    columns = width * (2 if model.gated_mlp else 1)
    return [
        _part("mlp", columns * (model.hidden + bias) + width * model.hidden, "sharded"),
        _part("row biases", model.hidden * bias, "replicated"),
    ]


def _experts(model: Model, moe: Moe) -> list[Part]:
    columns = moe.expert_ffn * (2 if model.gated_mlp else 1)
    one = columns * (model.hidden + moe.expert_bias) + (moe.expert_ffn + moe.expert_bias) * model.hidden
    router = moe.num_experts * (model.hidden + moe.router_bias) + model.hidden * moe.shared_gate
    shared = _mlp(model, moe.shared_ffn, bias=False)[0].count
    return [
        Part("experts", moe.num_experts * one, "expert", moe.top_k * one),
        _part("shared experts", shared, "sharded"),
        _part("router", router, "replicated"),
    ]


def _part(name: str, count: int, sharding: Sharding) -> Part:
    return Part(name, count, sharding, count)


def _merged(parts: Iterable[Part]) -> ParameterCount:
    """Add up parts of one name and drop the empty ones."""
    merged: dict[str, Part] = {}
    for part in parts:
        if part.count:
            seen = merged.get(part.name, Part(part.name, 0, part.sharding, 0))
            merged[part.name] = Part(
                part.name, seen.count + part.count, part.sharding, seen.active + part.active
            )
    return ParameterCount(tuple(merged.values()))


def published_difference(model: Model, counts: ParameterCount) -> float:
    """How far our count is from what the maker says, as a share of that."""
    return counts.as_published(model.published_basis) / model.published_parameters - 1.0
