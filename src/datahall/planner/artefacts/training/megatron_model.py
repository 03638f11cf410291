"""A model of the catalogue in Megatron-LM's arguments; what they have no word for is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from datahall.catalog.entries.model import Mla, Model, Moe
from datahall.catalog.entries.tool import Tool
from datahall.planner.artefacts.options import Value
from datahall.planner.artefacts.refused import refuse

NORMS = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}
POSITIONS = {"rope": "rope", "learned": "learned_absolute", "none": "none"}
MIXERS = {"full", "mla"}


def model_options(model: Model, known: Tool) -> dict[str, Value | None]:
    """Widths, heads and layers; rotary base and epsilons are not in the catalogue, and stay Megatron's own."""
    refuse(known, _unlike(model))
    return {
        "--num-layers": model.num_layers,
        "--hidden-size": model.hidden,
        "--ffn-hidden-size": model.ffn or None,
        "--num-attention-heads": model.num_heads,
        "--group-query-attention": True if _grouped(model) else None,
        "--num-query-groups": model.num_kv_heads if _grouped(model) else None,
        "--kv-channels": model.head_dim if model.mla is None else None,
        "--normalization": NORMS[model.norm],
        "--position-embedding-type": POSITIONS[model.position],
        "--swiglu": True if model.gated_mlp else None,
        "--disable-bias-linear": None if model.output_bias else True,
        "--add-qkv-bias": True if model.qkv_bias and not model.output_bias else None,
        "--qk-layernorm": True if model.qk_norm == "head" or model.mla is not None else None,
        "--untie-embeddings-and-output-weights": None if model.tied_embeddings else True,
        **(_latent(model.mla) if model.mla is not None else {}),
        **(_experts(model, model.moe) if model.moe is not None else {}),
    }


def _grouped(model: Model) -> bool:
    return model.mla is None and model.num_kv_heads != model.num_heads


def _latent(mla: Mla) -> dict[str, Value | None]:
    return {
        "--multi-latent-attention": True,
        "--q-lora-rank": mla.q_rank or None,
        "--kv-lora-rank": mla.kv_rank,
        "--qk-head-dim": mla.nope_head_dim,
        "--qk-pos-emb-head-dim": mla.rope_head_dim,
        "--v-head-dim": mla.value_head_dim,
    }


def _experts(model: Model, moe: Moe) -> dict[str, Value | None]:
    return {
        "--num-experts": moe.num_experts,
        "--moe-router-topk": moe.top_k,
        "--moe-ffn-hidden-size": moe.expert_ffn,
        "--moe-layer-freq": _frequency(model),
        "--moe-shared-expert-intermediate-size": moe.shared_ffn or None,
        "--moe-shared-expert-gate": True if moe.shared_gate else None,
        "--moe-router-enable-expert-bias": True if moe.router_bias else None,
        "--moe-router-score-function": "sigmoid" if moe.router_bias else None,  # which that offset goes with
        "--moe-router-num-groups": moe.num_groups if moe.num_groups > 1 else None,
        "--moe-router-group-topk": moe.num_groups_per_token if moe.num_groups > 1 else None,
    }


def _frequency(model: Model) -> str | None:
    """Which layers have experts, where not all do: runs of 0 and 1 as Python writes them.

    >>> from datahall.catalog import load
    >>> _frequency(load().model("deepseek-v3"))
    '([0]*3+[1]*58)'
    """
    kinds = [int(layer.mlp == "moe") for layer in model.layers]
    if all(kinds):
        return None
    return "(" + "+".join(f"[{kind}]*{len(list(run))}" for kind, run in groupby(kinds)) + ")"


def _unlike(model: Model) -> Iterator[str]:
    """What of the model its arguments do not describe."""
    yield from (f"{kind} layers" for kind in sorted({layer.mixer for layer in model.layers} - MIXERS))
    if any(layer.mlp == "none" for layer in model.layers):
        yield "layers without an MLP"
    if model.norm not in NORMS:
        yield f"{model.norm} norms"
    if model.position not in POSITIONS:
        yield f"{model.position} positions"
    said = {
        "a norm over the width of all heads": model.qk_norm == "width",
        "a norm of the embedding": model.embedding_norm,
        "attention and MLP side by side": model.parallel_block,
        "attention sinks": model.attention_sinks,
        "a gate on attention": model.attention_gate,
        f"{model.norms_per_layer} norms a layer": model.norms_per_layer != 2,
        "biases of the head": model.head_bias,
        "biases of attention or of the MLP alone": model.output_bias != model.mlp_bias,
        "biases of experts": model.moe is not None and model.moe.expert_bias,
    }
    yield from (what for what, is_so in said.items() if is_so)
