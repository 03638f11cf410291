"""The most memory that a training step needs on one chip: state, saved tensors and the work in hand."""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.catalog.entries.model import Model
from datahall.workload.memory.activation import (
    MEGATRON,
    Recompute,
    Saving,
    activation_bytes,
    layer_tensors,
    outside_tensors,
    sum_bytes,
)
from datahall.workload.memory.state import StateBytes
from datahall.workload.operator import Number
from datahall.workload.sharding import ONE_CHIP, Sharding


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of one training step without a pipeline, at the moments that can be its peak [B].

    As backward walks from the last layer to the first, saved tensors go and gradients come, each at a
    steady rate; so the peak is at one of the ends, or at the loss.
    """

    at_loss_bytes: Number
    at_last_layer_bytes: Number
    at_first_layer_bytes: Number

    @property
    def peak_bytes(self) -> Number:
        highest: Number = np.maximum(
            np.maximum(self.at_loss_bytes, self.at_last_layer_bytes), self.at_first_layer_bytes
        )
        return highest


def training_footprint(
    model: Model,
    state: StateBytes,
    *,
    batch: Number,
    seq: Number,
    sharding: Sharding = ONE_CHIP,
    recompute: Recompute = "none",
    saving: Saving = MEGATRON,
    loss_bytes: float = 4.0,
    gradients_kept: bool = True,
) -> Footprint:
    """Memory of one forward and backward over `batch` sequences of `seq` tokens on one chip [B].

    Parameters: the state of the chip; micro-batch [sequences]; sequence length [tokens]; bytes of a value
    in the cross-entropy; whether gradients outlive the step (buffers, accumulation) or are freed before
    the next forward, so that they grow during backward while saved tensors shrink.

        at loss         weights + optimizer (+ gradients) + Σ layers + head + loss
        at last layer   the same without the loss, + one layer recomputed and its gradients in hand
        at first layer  all state + one layer, recomputed or still kept, + gradients in hand

    The allocator's slack, the library workspaces and the driver's context are not in it.
    """
    layers = activation_bytes(
        model, batch=batch, seq=seq, sharding=sharding, recompute=recompute, saving=saving
    )
    outside = outside_tensors(model, saving, loss_bytes)
    kept = [one for one in outside if not one.transient]
    at_loss = sum_bytes(outside, batch, seq, sharding)
    logits = sum_bytes((one for one in kept if one.name == "logits"), batch, seq, sharding)
    one_layer = _largest_layer_bytes(model, batch, seq, sharding, saving, "none")
    kept_layer = _largest_layer_bytes(model, batch, seq, sharding, saving, recompute)
    in_hand = _gradients_in_hand_bytes(model, batch, seq, sharding, saving)
    recomputed = one_layer if recompute == "full" else one_layer - kept_layer
    steady = state.weight_bytes + state.optimizer_bytes
    early = steady + (state.gradient_bytes if gradients_kept else 0.0)
    return Footprint(
        at_loss_bytes=early + layers + at_loss,
        at_last_layer_bytes=early + layers + logits + recomputed + in_hand,
        at_first_layer_bytes=steady + state.gradient_bytes + logits + kept_layer + recomputed + in_hand,
    )


def _largest_layer_bytes(
    model: Model, batch: Number, seq: Number, sharding: Sharding, saving: Saving, recompute: Recompute
) -> Number:
    sizes = [
        sum_bytes(layer_tensors(model, layer, saving, recompute), batch, seq, sharding)
        for layer, _ in model.layer_groups()
    ]
    largest: Number = np.max(np.broadcast_arrays(*sizes), axis=0)
    return largest


def _gradients_in_hand_bytes(
    model: Model, batch: Number, seq: Number, sharding: Sharding, saving: Saving
) -> Number:
    """Gradients of a layer's output and of the two factors of its MLP's product, the widest moment."""
    moe = model.moe
    widths = [model.ffn / sharding.tp]
    if moe is not None and any(layer.mlp == "moe" for layer in model.layers):
        widths.append((moe.top_k * moe.expert_ffn + moe.shared_ffn) / sharding.tp)
    factors = 2 if model.gated_mlp else 1
    width = factors * np.max(np.broadcast_arrays(*widths), axis=0) + model.hidden / sharding.stream_split
    in_hand: Number = batch * seq / sharding.cp * width * saving.value_bytes
    return in_hand
