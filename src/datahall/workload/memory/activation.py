"""What forward keeps for backward: every saved tensor of a layer by name, and what recomputation drops.

The constants of the literature (34·s·b·h and its kin) are sums over such a list for one architecture and one
framework; here is the list.  Statistics of a norm (one or two numbers per token) are left out.
Reference: Korthikanti et al. (2022), Reducing Activation Recomputation in Large Transformer Models, § 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, get_args

import msgspec
import numpy as np

from datahall.catalog.entries.model import Layer, Mla, Model, Moe, Recurrent
from datahall.errors import UnknownNameError
from datahall.workload.memory.recompute import RECOMPUTES
from datahall.workload.memory.recompute import Recompute as Recompute
from datahall.workload.mixer import recurrent_widths
from datahall.workload.operator import Number
from datahall.workload.sharding import ONE_CHIP, Sharding

Modules = Literal["megatron", "huggingface-eager"]
Split = Literal["sequence", "tensor", "expert"]

MODULES_OF: tuple[str, ...] = get_args(Modules)


class SavedTensor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor kept from forward to backward.

    `width` is its values per token, or per token and key for attention scores.  It is divided over tp chips
    ("tensor", at most `most_chips`), only under sequence parallelism ("sequence"), or like the token copies
    of experts ("expert").  `core` tensors are those that selective recomputation drops; `transient` ones
    live only while the loss is differentiated.
    """

    name: str
    width: float
    value_bytes: float
    split: Split
    per_key: bool = False
    core: bool = False
    transient: bool = False
    most_chips: float = math.inf

    def bytes_on_chip(self, batch: Number, seq: Number, sharding: Sharding) -> Number:
        """Memory of this tensor for `batch` sequences of `seq` tokens on one chip [B]."""
        values = self.width * batch * seq * (seq if self.per_key else 1.0) / sharding.cp
        return values * self.value_bytes / self._chips(sharding)

    def _chips(self, sharding: Sharding) -> Number:
        chips: Number = 1.0
        match self.split:
            case "sequence":
                chips = sharding.stream_split
            case "tensor":
                chips = np.minimum(sharding.tp, self.most_chips)
            case "expert":
                chips = np.minimum(sharding.ep, sharding.tp)
        return chips


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """How a framework runs a layer, which decides what must be kept."""

    modules: Modules = "megatron"  # whose run a layer
    flash: bool = True  # attention keeps no scores
    dropout: bool = False
    wide_softmax: bool = False  # unfused, probabilities are kept in the 32 bits that they were formed in
    repeats_heads: bool = False  # flash attention is given each KV head once for every query head
    value_bytes: float = 2.0  # of an ordinary activation

    def __post_init__(self) -> None:
        if self.modules not in MODULES_OF:
            raise UnknownNameError(
                "modules", self.modules, MODULES_OF, hint=f"modules: {', '.join(MODULES_OF)}"
            )

    @property
    def eager(self) -> bool:
        return self.modules == "huggingface-eager"

    @property
    def upcasts(self) -> bool:
        """Whether what is computed in fp32 is a tensor of its own beside the ordinary one."""
        return self.eager and self.value_bytes < 4.0

    def tensor(
        self,
        name: str,
        width: float,
        split: Split,
        *,
        value_bytes: float | None = None,
        per_key: bool = False,
        core: bool = False,
        transient: bool = False,
        most_chips: float = math.inf,
    ) -> SavedTensor:
        """A tensor in the ordinary format unless `value_bytes` says otherwise."""
        return SavedTensor(
            name=name,
            width=width,
            value_bytes=self.value_bytes if value_bytes is None else value_bytes,
            split=split,
            per_key=per_key,
            core=core,
            transient=transient,
            most_chips=most_chips,
        )


MEGATRON = Saving()


def sum_bytes(
    tensors: Iterable[SavedTensor],
    batch: Number,
    seq: Number,
    sharding: Sharding = ONE_CHIP,
) -> Number:
    """Memory of some tensors together on one chip [B]."""
    return sum((one.bytes_on_chip(batch, seq, sharding) for one in tensors), 0.0)


def layer_tensors(
    model: Model,
    layer: Layer,
    saving: Saving = MEGATRON,
    recompute: Recompute = "none",
) -> tuple[SavedTensor, ...]:
    """Every tensor that one layer keeps.

    Full recomputation keeps the layer's input alone, selective drops the attention scores.

    >>> from datahall.catalog.entries.model import Layer
    >>> gpt = Model(name="gpt", title="", family="", year=2020, num_layers=1, hidden=1024, num_heads=16,
    ...     num_kv_heads=16, head_dim=64, ffn=4096, vocab=50257, max_context=2048, gated_mlp=False,
    ...     norm="layernorm", position="learned", layers=(Layer(mixer="full", mlp="dense"),))
    >>> old = layer_tensors(gpt, gpt.layers[0], Saving(flash=False, dropout=True), "selective")
    >>> float(sum_bytes(old, batch=1, seq=2048)) / (2048 * 1024)  # the 34 of Korthikanti et al.
    34.0
    """
    if recompute not in RECOMPUTES:
        raise UnknownNameError("recompute", recompute, RECOMPUTES, hint=f"one of {', '.join(RECOMPUTES)}")
    if recompute == "full":
        return (saving.tensor("layer_input", model.hidden, "sequence"),)
    blocks = [block for block in (_mixer(model, layer, saving), _mlp_block(model, layer, saving)) if block]
    tensors: list[SavedTensor] = []
    for index, block in enumerate(blocks):
        if index < model.norms_per_layer:
            tensors += _norm(model, f"norm_{index + 1}", model.hidden, saving)
        tensors += block
        if saving.dropout:
            tensors.append(
                saving.tensor(f"dropout_mask_{index + 1}", model.hidden, "sequence", value_bytes=1.0)
            )
    for index in range(len(blocks), model.norms_per_layer):
        tensors += _norm(model, f"norm_{index + 1}", model.hidden, saving)[:-1]  # its output is only added
    return tuple(one for one in tensors if recompute == "none" or not one.core)


def outside_tensors(
    model: Model,
    saving: Saving,
    loss_bytes: float,
    *,
    wide_logits: bool = False,
) -> tuple[SavedTensor, ...]:
    """What the final norm, the head and the loss keep; `loss_bytes` is the format of the cross-entropy, and with
    `wide_logits` of the logits that the caller keeps.

    Megatron's vocabulary-parallel loss overwrites one upcast copy of the logits.  Hugging Face keeps the
    logits for the caller, the log-softmax for backward, and for a moment the gradients of both.
    """
    vocab = float(model.vocab)
    tensors = [*_norm(model, "final_norm", model.hidden, saving)]
    if saving.dropout:
        tensors.append(saving.tensor("embedding_dropout_mask", model.hidden, "sequence", value_bytes=1.0))
    if not saving.eager:
        return (
            *tensors,
            saving.tensor("softmax", vocab, "tensor", value_bytes=loss_bytes),
            saving.tensor("logits", vocab, "tensor", transient=True),
        )
    return (
        *tensors,
        saving.tensor("logits", vocab, "tensor", value_bytes=loss_bytes if wide_logits else None),
        saving.tensor("log_softmax", vocab, "tensor", value_bytes=loss_bytes, transient=True),
        saving.tensor("log_softmax_gradient", vocab, "tensor", value_bytes=loss_bytes, transient=True),
        saving.tensor("logits_gradient", vocab, "tensor", value_bytes=loss_bytes, transient=True),
    )


def activation_bytes(
    model: Model,
    *,
    batch: Number,
    seq: Number,
    sharding: Sharding = ONE_CHIP,
    recompute: Recompute = "none",
    saving: Saving = MEGATRON,
) -> Number:
    """What all layers keep of one micro-batch on one chip [B]; the head and the loss are apart."""
    kept: Number = 0.0
    for layer, count in model.layer_groups():
        kept = kept + count * sum_bytes(layer_tensors(model, layer, saving, recompute), batch, seq, sharding)
    return kept


def _norm(model: Model, name: str, width: float, saving: Saving) -> list[SavedTensor]:
    """A norm's input, and its output, which the next linear layer keeps.

    The eager RMSNorm keeps its input in fp32, and what it multiplies by the weight.
    """
    output = saving.tensor(f"{name}_output", width, "sequence")
    if saving.eager and model.norm == "rmsnorm":
        return [
            saving.tensor(f"{name}_input_fp32", width, "sequence", value_bytes=4.0),
            saving.tensor(f"{name}_normalised", width, "sequence"),
            output,
        ]
    return [saving.tensor(f"{name}_input", width, "sequence"), output]


def _mixer(model: Model, layer: Layer, saving: Saving) -> list[SavedTensor]:
    match layer.mixer:
        case "full" | "window":
            return _self_attention(model, saving)
        case "mla":
            assert model.mla is not None
            return _latent_attention(model, model.mla, saving)
        case "linear" | "mamba":
            assert model.recurrent is not None
            return _recurrence(model.recurrent, saving)
        case "none":
            return []


def _self_attention(model: Model, saving: Saving) -> list[SavedTensor]:
    queries, keys = float(model.num_heads * model.head_dim), float(model.num_kv_heads * model.head_dim)
    # eager attention copies each KV head to its query heads
    repeated = saving.repeats_heads or (saving.eager and not saving.flash)
    kv_width, kv_chips = (queries, math.inf) if repeated else (keys, float(model.num_kv_heads))
    tensors = [
        saving.tensor("query", queries, "tensor"),
        saving.tensor("key", kv_width, "tensor", most_chips=kv_chips),
        saving.tensor("value", kv_width, "tensor", most_chips=kv_chips),
        *_core(model.num_heads, saving),
        saving.tensor("attention_output", queries, "tensor"),
    ]
    if model.qk_norm != "none":
        tensors.append(saving.tensor("query_before_norm", queries, "tensor"))
        tensors.append(saving.tensor("key_before_norm", keys, "tensor", most_chips=float(model.num_kv_heads)))
        if saving.upcasts:
            tensors.append(saving.tensor("query_key_fp32", queries + keys, "tensor", value_bytes=4.0))
    if model.attention_gate:
        tensors += [saving.tensor(name, queries, "tensor") for name in ("attention_gate", "gated_output")]
    return tensors


def _core(num_heads: float, saving: Saving) -> list[SavedTensor]:
    """The scores of attention, or with flash attention one log-sum-exp per token and head."""
    if saving.flash:
        return [saving.tensor("log_sum_exp", num_heads, "tensor", value_bytes=4.0)]

    def scores(name: str, value_bytes: float | None = None) -> SavedTensor:
        return saving.tensor(name, num_heads, "tensor", value_bytes=value_bytes, per_key=True, core=True)

    tensors = [scores("softmax", 4.0 if saving.wide_softmax else None)]
    if saving.upcasts:
        tensors.append(scores("softmax_fp32", 4.0))
    if saving.dropout:
        tensors += [scores("score_dropout_mask", 1.0), scores("score_dropout_output")]
    return tensors


def _latent_attention(model: Model, mla: Mla, saving: Saving) -> list[SavedTensor]:
    head_dim, heads = mla.nope_head_dim + mla.rope_head_dim, model.num_heads
    latents = float(mla.q_rank + mla.kv_rank)
    return [
        *_norm(model, "latent_norm", latents, saving),
        saving.tensor("query", heads * head_dim, "tensor"),
        saving.tensor("key", heads * head_dim, "tensor"),
        saving.tensor("value", heads * mla.value_head_dim, "tensor"),
        *_core(heads, saving),
        saving.tensor("attention_output", heads * mla.value_head_dim, "tensor"),
    ]


def _recurrence(recurrent: Recurrent, saving: Saving) -> list[SavedTensor]:
    """The scan keeps its inputs and output; backward forms states and scores again, as `workload.scan` counts."""
    heads, values, convolved, _ = (float(width) for width in recurrent_widths(recurrent, 1.0))
    return [
        saving.tensor("projected", values + convolved + heads, "tensor"),
        saving.tensor("convolved", convolved, "tensor"),
        saving.tensor("scanned", values, "tensor"),
        saving.tensor("gated_output", values, "tensor"),
    ]


def _mlp_block(model: Model, layer: Layer, saving: Saving) -> list[SavedTensor]:
    match layer.mlp:
        case "dense":
            return _mlp(model, "", float(model.ffn), saving)
        case "moe":
            assert model.moe is not None
            return _experts(model, model.moe, saving)
        case "none":
            return []


def _mlp(model: Model, prefix: str, width: float, saving: Saving) -> list[SavedTensor]:
    """Inputs of the activation, of the product with the gate and of the down projection.

    A fused gated activation keeps gate and up only; the eager one also its own output.
    """
    names = ["gate", "up", "product"] if model.gated_mlp else ["up", "activated"]
    if model.gated_mlp and saving.eager:
        names.append("activated_gate")
    return [saving.tensor(prefix + name, width, "tensor") for name in names]


def _experts(model: Model, moe: Moe, saving: Saving) -> list[SavedTensor]:
    """Scores, the gathered copies, the experts' own tensors and their outputs, which the weights multiply."""
    copies = float(moe.top_k * model.hidden)
    shared = _mlp(model, "shared_", float(moe.shared_ffn), saving) if moe.shared_ffn else []
    return [
        saving.tensor("router_scores", 2.0 * moe.num_experts, "sequence", value_bytes=4.0),
        saving.tensor("expert_input", copies, "expert"),
        *_mlp(model, "expert_", float(moe.top_k * moe.expert_ffn), saving),
        saving.tensor("expert_output", copies, "expert"),
        *shared,
    ]
