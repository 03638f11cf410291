"""What one layer and the head take on one chip, for every distinct way that a space of layouts shards them.

A space of a hundred thousand layouts has a few hundred distinct shards; tensors are summed once for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from datahall.catalog.entries.model import Layer, Model
from datahall.training.adapters.kept import adapted_tensors, widened_bytes
from datahall.training.layout.codes import module_names
from datahall.training.layout.columns import Column, Space, unique_rows
from datahall.training.layout.modules import dropped_tensors
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.step.micro_batch import ExpertSharding
from datahall.workload.memory.activation import (
    Recompute,
    SavedTensor,
    Saving,
    layer_tensors,
    outside_tensors,
    sum_bytes,
)
from datahall.workload.memory.recompute import RECOMPUTES
from datahall.workload.parameters import ParameterCount, layer_parameters
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding

if TYPE_CHECKING:
    from datahall.training.step.step import Job

# inputs of linear layers, which a narrow format keeps narrow
LINEAR_INPUTS = ("norm_1_output", "norm_2_output", "attention_output", "product", "activated", "expert_input")
ACTIVATION_INPUTS = ("gate", "up")


class ShardBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of one micro-batch by kind of layer, and at the loss, as columns over a space [B]."""

    kept: dict[Layer, Column]  # from forward to backward
    redone: dict[Layer, Column]  # brought back by recomputation when its backward comes
    in_hand: dict[Layer, Column]  # gradients and gathered inputs of the layer at work
    widened: dict[Layer, Column]  # the copy of a quantised weight that is multiplied
    at_loss: Column  # head and loss, forward
    at_head: Column  # head, backward, without its weights


def shard_bytes(job: Job, space: Space, books: Bookkeeping) -> ShardBytes:
    """Sum the tensors of every kind of layer once per distinct shard of the space."""
    keys = (
        space.tp, space.cp, space.ep, space.micro_batch, space.recompute, space.sequence_parallel, space.etp,
        space.modules,
    )  # fmt: skip
    distinct, index = unique_rows(keys)
    kinds = [layer for layer, _ in job.model.layer_groups()]
    kept, redone, in_hand, widened = ({kind: np.zeros(len(distinct)) for kind in kinds} for _ in range(4))
    at_loss, at_head = np.zeros(len(distinct)), np.zeros(len(distinct))
    for level, parallel, bits in {(row[4], row[5], row[7]) for row in distinct}:
        here = (distinct[:, 4] == level) & (distinct[:, 5] == parallel) & (distinct[:, 7] == bits)
        tp, cp, ep, batch, etp = (distinct[here, column] for column in (0, 1, 2, 3, 6))
        shard = ExpertSharding(tp=tp, cp=cp, ep=ep, etp=etp, sequence_parallel=bool(parallel))
        for kind in kinds:
            tensors = saved_tensors(job, kind, books, RECOMPUTES[int(level)], module_names(int(bits)))
            whole = saved_tensors(job, kind, books, "none")
            kept[kind][here] = _sum(tensors, batch, job.seq, shard)
            redone[kind][here] = _redone(tensors, whole, batch, job.seq, shard)
            in_hand[kind][here] = _in_hand(job, kind, batch, shard, eager=books.saving.eager)
            widened[kind][here] = widened_bytes(job, kind, shard)
        at_loss[here], at_head[here] = _head(job, batch, shard, books)
    return ShardBytes(
        kept={kind: column[index] for kind, column in kept.items()},
        redone={kind: column[index] for kind, column in redone.items()},
        in_hand={kind: column[index] for kind, column in in_hand.items()},
        widened={kind: column[index] for kind, column in widened.items()},
        at_loss=at_loss[index],
        at_head=at_head[index],
    )


def saved_tensors(
    job: Job, kind: Layer, books: Bookkeeping, recompute: Recompute, modules: tuple[str, ...] = ()
) -> tuple[SavedTensor, ...]:
    """What one layer keeps, in the formats of the job; modules that are recomputed drop what only they produce."""
    scores_stay = bool(modules) and "core_attn" not in modules
    tensors = layer_tensors(job.model, kind, _saving(job, books.saving), "none" if scores_stay else recompute)
    if recompute != "full":
        tensors = adapted_tensors(tensors, job, kind, books, modules)
    dropped = dropped_tensors(modules)
    narrow = LINEAR_INPUTS + (ACTIVATION_INPUTS if books.narrow_activations else ())
    return tuple(_formatted(one, job.precision, narrow) for one in tensors if one.name not in dropped)


def _saving(job: Job, saving: Saving) -> Saving:
    """The same in the format of the job."""
    return msgspec.structs.replace(saving, value_bytes=job.value_bytes)


def _formatted(tensor: SavedTensor, precision: Precision, narrow: tuple[str, ...]) -> SavedTensor:
    if precision.quantises_activations and tensor.name.endswith(narrow):
        return msgspec.structs.replace(tensor, value_bytes=precision.activation_bytes_per_value)
    return tensor


def _sum(tensors: tuple[SavedTensor, ...], batch: Column, seq: int, shard: Sharding) -> Column:
    """Saved tensors; attention over a split context keeps its output twice, before and after the exchange."""
    total = sum((tensor_bytes(one, batch, seq, shard) for one in tensors), np.zeros(np.shape(batch)))
    attended = tuple(one for one in tensors if one.name == "attention_output")
    twice = np.asarray(sum_bytes(attended, batch, float(seq), shard), dtype=np.float64)
    return total + np.where(np.asarray(shard.cp) > 1, twice, 0.0)


def tensor_bytes(tensor: SavedTensor, batch: Column | float, seq: int, shard: Sharding) -> Column:
    """One saved tensor on one chip [B]; copies of tokens lie where their experts do, on tp/etp parts of a group."""
    here = np.asarray(tensor.bytes_on_chip(batch, float(seq), shard), dtype=np.float64)
    if tensor.split != "expert":
        return here
    return here * np.minimum(shard.ep, shard.tp) * shard.expert_tp / shard.tp


def _redone(
    kept: tuple[SavedTensor, ...], whole: tuple[SavedTensor, ...], batch: Column, seq: int, shard: Sharding
) -> Column:
    names = {one.name for one in kept}
    return _sum(tuple(one for one in whole if one.name not in names), batch, seq, shard)


def _in_hand(job: Job, kind: Layer, batch: Column, shard: Sharding, *, eager: bool = False) -> Column:
    """The widest moment of a layer's backward: gradients of both factors of the MLP's product and of its output;
    under sequence parallelism also the input gathered for the weight gradient, and the gradient before it is spread."""
    model = job.model
    width = float(model.ffn) if kind.mlp == "dense" else 0.0
    if kind.mlp == "moe" and model.moe is not None:
        width = float(model.moe.top_k * model.moe.expert_ffn + model.moe.shared_ffn)
    factors = 2.0 if model.gated_mlp else 1.0
    factors *= 2.0 if eager else 1.0  # unfused, the activation and the product have gradients of their own
    gathered = np.where((np.asarray(shard.tp) > 1) & shard.sequence_parallel, 2.0 * model.hidden, 0.0)
    values = factors * width / shard.tp + model.hidden / shard.stream_split + gathered
    return np.asarray(job.value_bytes * batch * job.seq / shard.cp * values)


def _head(job: Job, batch: Column, shard: Sharding, books: Bookkeeping) -> tuple[Column, Column]:
    """Final norm, logits and loss: at the end of forward, and as the head's backward begins."""
    saving = books.saving if books.loss != "eager" else Saving(modules="huggingface-eager")
    wide = max(books.loss_bytes, job.value_bytes)
    outside = outside_tensors(job.model, _saving(job, saving), wide, wide_logits=books.wide_logits)
    logits = tuple(one for one in outside if "norm" in one.name or one.name == "logits")
    loss = np.asarray(sum_bytes(logits if books.loss == "fused" else outside, batch, float(job.seq), shard))
    stream = np.asarray(sum_bytes(logits, batch, float(job.seq), shard))
    spread = (np.asarray(shard.tp) > 1) & shard.sequence_parallel
    values = job.model.hidden / shard.stream_split + np.where(spread, 2.0 * job.model.hidden, 0.0)
    return loss, stream + job.value_bytes * batch * job.seq / shard.cp * values


def placeholder_values(model: Model, kinds: tuple[Layer, ...]) -> float:
    """Values of one gradient per shape of weight in some kinds of layers, before tensor parallelism."""
    shapes: dict[str, float] = {}
    for kind in kinds:
        for part in layer_parameters(model, kind).parts:
            if part.sharding == "sharded" or part.name == "latent projections":
                shapes[part.name] = float(part.count)
            elif part.sharding == "expert" and model.moe is not None:
                shapes[part.name] = part.count / model.moe.num_experts
    return sum(shapes.values())


def stage_parameters(model: Model, layers: tuple[tuple[Layer, int], ...]) -> tuple[float, float, float]:
    """Parameters of some layers that are split, whole on every chip, and of routed experts."""
    found = np.zeros(3)
    for kind, count in layers:
        each: ParameterCount = layer_parameters(model, kind)
        found += count * np.array([each.sharded, each.replicated, each.expert], dtype=np.float64)
    return float(found[0]), float(found[1]), float(found[2])
