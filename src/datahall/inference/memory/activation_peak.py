"""The most that a step's temporary tensors take on one chip: what an engine measures before it sizes its cache."""

from __future__ import annotations

from datahall.catalog.entries.model import Layer, Model
from datahall.inference.engine.replica import Replica

# Bytes per logit while a token is drawn: the head's output, a copy in fp32, probabilities and scratch.  From start-up
# logs of vLLM 0.19 on A100 (256 sequences): 1.24 and 1.3 GiB besides weights and cache for gpt-oss-20b and Gemma-4-26B.
SAMPLER_BYTES_PER_LOGIT = 18.0


def activation_peak_bytes(replica: Replica) -> float:
    """Temporary tensors of a step of the engine's full token budget, on one chip [B].

    stream = 2·T·h·b            hidden state and residual
    mixer  = T·(q + 2·kv + q)·b/t          MLP = T·(2·f + f)·b/t          experts = T·k·(max(2·f, h) + f)·b
    head   = 18 B · sequences · V
    peak   = max(stream + widest layer, head)
    """
    engine, model = replica.engine, replica.model
    width = replica.precision.wide_bytes_per_value
    tokens = float(engine.token_budget)
    widest = max(_layer_width(model, layer, replica) for layer, _ in model.layer_groups())
    layers = tokens * width * (2 * model.hidden + widest)
    head = SAMPLER_BYTES_PER_LOGIT * engine.max_sequences * model.vocab
    return max(layers, head)


def _layer_width(model: Model, layer: Layer, replica: Replica) -> float:
    """Values per token of the widest moment of a layer on one chip."""
    tp = replica.tp
    mixer = 0.0
    if layer.mixer in ("full", "window"):
        heads, kv_heads = model.num_heads / tp, max(model.num_kv_heads / tp, 1.0)
        mixer = (2 * heads + 2 * kv_heads) * model.head_dim
    elif layer.mixer == "mla" and model.mla is not None:
        mla = model.mla
        heads = model.num_heads / tp
        mixer = (
            heads * (2 * (mla.nope_head_dim + mla.rope_head_dim) + 2 * mla.value_head_dim)
            + mla.q_rank
            + mla.kv_rank
        )
    elif model.recurrent is not None and layer.mixer != "none":
        part = model.recurrent
        mixer = (4 * part.num_heads * part.head_dim + 2 * part.num_key_heads * part.key_dim) / tp
    gates = 2 if model.gated_mlp else 1
    mlp = 0.0
    if layer.mlp == "dense":
        mlp = (gates + 1) * model.ffn / tp
    elif layer.mlp == "moe" and model.moe is not None:
        moe = model.moe
        split = max(1.0, replica.tp * replica.dp / replica.ep)
        copies = moe.top_k * replica.dp / (replica.ep if replica.dp > 1 else 1)
        expert = moe.expert_ffn / split
        mlp = copies * (max(gates * expert, model.hidden) + expert) + (gates + 1) * moe.shared_ffn / tp
    return max(mixer, mlp)
