"""A transformer as its makers describe it: widths, heads, layers, experts."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec

from datahall.catalog.fact import Fact

MixerKind = Literal["full", "window", "mla", "linear", "mamba", "none"]
MlpKind = Literal["dense", "moe", "none"]
Norm = Literal["rmsnorm", "layernorm", "layernorm-nobias", "none"]
QkNorm = Literal["none", "head", "width"]
Position = Literal["rope", "learned", "alibi", "none"]
PublishedBasis = Literal["all", "without embedding", "without tables"]  # tables: embedding and head


class Moe(msgspec.Struct, frozen=True, kw_only=True):
    """Routed experts, and the shared ones every token passes."""

    num_experts: int
    top_k: int
    expert_ffn: int
    num_shared_experts: int = 0
    shared_ffn: int = 0  # width of all shared experts together
    shared_gate: bool = False  # a learned scalar gate on the shared expert (Qwen2-MoE)
    expert_bias: bool = False
    router_bias: bool = False  # also the learned load-balancing offset of DeepSeek-V3
    num_groups: int = 1  # that lie together, where a token may use few of them (node-limited routing)
    num_groups_per_token: int = 1


class Mla(msgspec.Struct, frozen=True, kw_only=True):
    """Multi-head latent attention: keys and values are kept as one low-rank vector per token."""

    q_rank: int  # 0: queries are projected directly
    kv_rank: int
    nope_head_dim: int
    rope_head_dim: int
    value_head_dim: int


class Recurrent(msgspec.Struct, frozen=True, kw_only=True):
    """A layer whose memory of the past has a fixed size (gated linear attention, Mamba-2)."""

    num_heads: int  # value heads
    head_dim: int  # of a value head
    num_key_heads: int  # groups in Mamba-2
    key_dim: int  # state size in Mamba-2
    conv_width: int = 4


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of layer: what mixes tokens and what follows it."""

    mixer: MixerKind
    mlp: MlpKind
    window: int = 0  # tokens a window layer can see


class Quantisation(msgspec.Struct, frozen=True, kw_only=True):
    """How a published checkpoint packs its linear layers: the number format, and how many weights share a scale."""

    format: str  # one that packs weights, see `PACKED`
    block: tuple[int, int] = (
        0,
        0,
    )  # rows × columns under one scale; (0, 0): those of a tensor or of a channel

    @property
    def block_scaled(self) -> bool:
        """Whether a scale covers a block, and not a row, a channel or the whole tensor."""
        return min(self.block) > 1


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """The architecture of a language model.

    `layers` names the kind of each layer from first to last, so hybrids need no special case.
    With `mla`, `head_dim` is that of a query (its part without position and its part with).
    """

    name: str
    title: str
    family: str
    year: int
    num_layers: int
    hidden: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    ffn: int  # width of the dense MLP; 0 where there is none
    vocab: int
    max_context: int
    layers: tuple[Layer, ...]
    gated_mlp: bool = True
    norm: Norm = "rmsnorm"
    norms_per_layer: int = 2
    qk_norm: QkNorm = "none"  # one weight per head dimension, or per width of all heads
    position: Position = "rope"
    num_positions: int = 0  # rows of a learned position table; 0: max_context of them
    tied_embeddings: bool = False
    embedding_norm: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    parallel_block: bool = False  # attention and MLP read the same input (GPT-J, PaLM, Falcon)
    attention_sinks: bool = False  # one learned logit per head (GPT-OSS)
    attention_gate: bool = False  # queries carry a gate as wide as themselves (Qwen3-Next)
    moe: Moe | None = None
    mla: Mla | None = None
    recurrent: Recurrent | None = None
    num_mtp_layers: int = (
        0  # published beside the others, each drafts one token further (multi-token prediction)
    )
    quantisation: Quantisation | None = None  # of the weights as they are published; None: 16 bits or wider
    fp8_checkpoint: Quantisation | None = None  # FP8 weights that are published beside those
    published_parameters: float = 0.0
    published_active_parameters: float = 0.0
    published_basis: PublishedBasis = "all"  # what the maker's figure leaves out
    published_active_basis: PublishedBasis = "all"
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    def layer_groups(self) -> tuple[tuple[Layer, int], ...]:
        """Each kind of layer once, with how many there are, in order of first appearance."""
        return tuple(Counter(self.layers).items())
