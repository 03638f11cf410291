"""One training step: what a micro-batch takes on the slowest stage, how the pipeline fills, and what is left over.

    step   = slot · (m + (pp − 1)/vpp) + fixed
    slot   = layers per stage · (kernels + exposed tensor exchange) + exposed pipeline exchange
    fixed  = exposed gradient exchange + optimizer + what the framework does once a step

m micro-batches per data-parallel rank.  The slot is the slowest stage: the last one also has the head and the loss.
Reference: Narayanan et al. (2021), Efficient large-scale language model training; Korthikanti et al. (2022).
"""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.catalog.model import Model
from datahall.fabric.collectives.bus import Collective
from datahall.silicon.attention import smooth_max
from datahall.silicon.kernel import time_operators
from datahall.training.cluster import Cluster
from datahall.training.communication import group_times
from datahall.training.framework import Framework, attention_factor
from datahall.training.layout import RECOMPUTES, Column, Space, unique_rows
from datahall.workload.backward import Gradients, training_pass
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding

HIDING_SHARPNESS = 4.0  # how sharply exchange that runs beside kernels shows once it is the longer
OUTSIDE = ("embedding", "final_norm", "head", "loss")


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is trained: a model on sequences of a length, in global batches, in a precision."""

    model: Model
    seq: int
    global_batch: int
    precision: Precision = Precision()
    adapters_only: bool = False  # low-rank adapters: weights are frozen and have no gradients


class StepTimes(msgspec.Struct, frozen=True, kw_only=True):
    """One step of many layouts as columns, and what it is made of [s]."""

    step_s: Column
    slot_s: Column  # one micro-batch on the slowest stage
    compute_s: Column  # kernels of one micro-batch on that stage
    tensor_s: Column  # exposed tensor-parallel exchange of one micro-batch
    expert_s: Column  # exposed exchange of routed tokens of one micro-batch
    gathered_s: Column  # fully sharded parameters moved beside the kernels of one micro-batch
    pipeline_s: Column  # exposed exchange between stages of one micro-batch
    bubble_s: Column
    data_s: Column  # exposed gradient and parameter exchange
    optimizer_s: Column
    fixed_s: Column
    num_micro: Column


def step_times(job: Job, cluster: Cluster, space: Space, framework: Framework) -> StepTimes:
    """Times of one step for every layout of a space."""
    model = job.model
    num_micro = np.maximum(1.0, job.global_batch / (space.dp * space.micro_batch))
    layer_s, outside_s = kernel_times(job, cluster, space, framework)
    per_stage = np.ceil(model.num_layers / space.pp)
    on_last = np.maximum(0.0, model.num_layers - per_stage * (space.pp - 1.0))
    tensor_layer_s = tensor_exchange(job, cluster, space, framework)
    expert_layer_s = expert_exchange(job, cluster, space, framework)
    whole_layer_s = layer_s + tensor_layer_s + expert_layer_s
    deep_s = per_stage * whole_layer_s
    last_s = on_last * whole_layer_s + outside_s
    stage_s = np.where(space.pp > 1, np.maximum(deep_s, last_s), deep_s + outside_s)
    tensor_s, expert_s = per_stage * tensor_layer_s, per_stage * expert_layer_s
    pipeline_s = pipeline_exchange(job, cluster, space, framework)
    gathered_s = parameter_exchange(job, cluster, space, framework)
    slot_s = smooth_max(stage_s, gathered_s, HIDING_SHARPNESS) + pipeline_s
    mean_stage_s = np.where(space.pp > 1, (deep_s * (space.pp - 1.0) + last_s) / space.pp, stage_s)
    bubble_s = (mean_stage_s + pipeline_s) * (space.pp - 1.0) / space.vpp
    data_s = data_exchange(job, cluster, space, framework)
    optimizer_s = optimizer_time(job, cluster, space, framework)
    slowest = 1.0 + framework.jitter * np.log(np.maximum(1.0, cluster.num_chips))
    fixed_s = np.full(len(space), framework.fixed_s)
    step_s = (slot_s * num_micro + bubble_s + data_s + optimizer_s + fixed_s) * slowest
    return StepTimes(
        step_s=step_s,
        slot_s=slot_s,
        compute_s=stage_s - tensor_s - expert_s,
        tensor_s=tensor_s,
        expert_s=expert_s,
        gathered_s=gathered_s,
        pipeline_s=pipeline_s,
        bubble_s=bubble_s,
        data_s=data_s,
        optimizer_s=optimizer_s,
        fixed_s=fixed_s,
        num_micro=num_micro,
    )


def kernel_times(job: Job, cluster: Cluster, space: Space, framework: Framework) -> tuple[Column, Column]:
    """Forward and backward kernels of one micro-batch: one layer, and what lies outside the layers [s].

    Layouts that shard a micro-batch alike share their kernels, so a space costs what its distinct shards cost.
    """
    shards = (space.tp, space.cp, space.ep, space.micro_batch, space.recompute, space.sequence_parallel)
    distinct, index = unique_rows(shards)
    layer_s, outside_s = np.zeros(len(distinct)), np.zeros(len(distinct))
    for recompute, parallel in {(row[4], row[5]) for row in distinct}:
        here = (distinct[:, 4] == recompute) & (distinct[:, 5] == parallel)
        tp, cp, ep, batch = (distinct[here, column] for column in range(4))
        operators = training_pass(
            job.model,
            batch=batch,
            seq=float(job.seq),
            sharding=Sharding(tp=tp, cp=cp, ep=ep, sequence_parallel=bool(parallel)),
            precision=job.precision,
            recompute=RECOMPUTES[int(recompute)],
            gradients=Gradients(
                value_bytes=4.0, accumulate=True, flash=framework.flash_attention, quantise=True
            ),
            fusion=framework.fusion,
        )
        if job.adapters_only:
            operators = tuple(one for one in operators if not one.name.endswith("_wgrad"))
        for kernel in time_operators(cluster.chip, operators).kernels:
            total = kernel.operator.count * np.asarray(kernel.time_s) * framework.compute_factor
            if kernel.kind == "attention":
                total = total * attention_factor(framework, cluster.chip.family)
            if kernel.operator.name.startswith(OUTSIDE):
                outside_s[here] += total
            else:
                layer_s[here] += total / job.model.num_layers
        if not framework.flash_attention:
            scores_s = score_traffic(job, cluster, tp, cp, batch, RECOMPUTES[int(recompute)])
            layer_s[here] += scores_s * framework.compute_factor
    return layer_s[index], outside_s[index]


# times each score is moved where attention is not fused: written, softmax, dropout with its mask, read again
SCORE_PASSES = {"forward": 6.5, "backward": 10.0}


def score_traffic(
    job: Job, cluster: Cluster, tp: Column, cp: Column, batch: Column, recompute: str
) -> Column:
    """Scores that unfused attention writes to memory and reads back, per layer and micro-batch [s].

    Reference: Korthikanti et al. (2022), section 4.1, for the tensors; Dao et al. (2022) for why it is slow.
    """
    moved = 2.0 * batch * job.model.num_heads / tp * job.seq**2 / cp
    forwards = 1.0 if recompute == "none" else 2.0
    passes = forwards * SCORE_PASSES["forward"] + SCORE_PASSES["backward"]
    return passes * moved / (0.8 * cluster.chip.memory_bytes_per_s)


# Share of the keys and values passed round a context-parallel ring that attention on the blocks at hand does not
# hide; an estimate, no public run isolates it.
CONTEXT_EXPOSED = 0.3


def tensor_exchange(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Column:
    """Exposed tensor- and context-parallel exchange of one layer and micro-batch [s].

    Tensor parallelism all-reduces after each of the two blocks, forward and backward, and again forward where that is
    recomputed; context parallelism passes every key and value by once forward and twice backward.
    """
    moved = 2.0 * job.seq * space.micro_batch * job.model.hidden / space.cp
    full = space.recompute == RECOMPUTES.index("full")
    reduced_s = group_times(cluster.system, "all-reduce", moved, space.tp, np.ones(len(space)))
    kept = 4.0 * job.seq * space.micro_batch * job.model.num_kv_heads * job.model.head_dim
    passed_s = group_times(cluster.system, "all-gather", kept / space.tp, space.cp, space.tp)
    tensor_s = np.where(full, 6.0, 4.0) * reduced_s * framework.tensor_exposed
    return tensor_s + np.where(full, 4.0, 3.0) * passed_s * CONTEXT_EXPOSED


def expert_exchange(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Column:
    """Exposed dispatch and combine of routed tokens, forward and backward, as a mean over all layers [s]."""
    moe = job.model.moe
    if moe is None:
        return np.zeros(len(space))
    share = (
        sum(count for layer, count in job.model.layer_groups() if layer.mlp == "moe") / job.model.num_layers
    )
    tokens = job.seq * space.micro_batch / space.cp / np.where(space.sequence_parallel, space.tp, 1.0)
    moved = 2.0 * tokens * moe.top_k * job.model.hidden
    once = group_times(cluster.system, "all-to-all", moved, space.ep, np.ones(len(space)))
    return 4.0 * share * once * framework.expert_exposed


def pipeline_exchange(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Column:
    """Exposed exchange between neighbouring stages, forward and backward, once per virtual stage [s]."""
    # each chip of a tensor-parallel group sends its slice, and the group gathers them again inside the domain
    moved = 2.0 * job.seq * space.micro_batch * job.model.hidden / (space.cp * space.tp)
    stride = space.tp * space.cp * space.dp
    once = group_times(cluster.system, "send-recv", moved, np.where(space.pp > 1, 2.0, 1.0), stride)
    return 2.0 * space.vpp * once * framework.pipeline_exposed


class Share(msgspec.Struct, frozen=True):
    """Parameters of one chip of the fullest stage before ZeRO: what all data-parallel ranks hold, and experts."""

    dense: Column
    expert: Column

    @property
    def total(self) -> Column:
        return self.dense + self.expert


def chip_share(job: Job, space: Space) -> Share:
    """Split the parameters as the layout does; experts over their own group."""
    counts = count_parameters(job.model)
    outside = counts.embedding + counts.head
    dense = (counts.total - counts.expert - outside) / (space.tp * space.pp)
    dense = dense + outside / (space.tp * np.minimum(space.pp, 2.0))
    return Share(np.asarray(dense), np.asarray(counts.expert / (np.maximum(space.ep, space.tp) * space.pp)))


def _over_replicas(
    cluster: Cluster, space: Space, collective: Collective, share: Share, value_bytes: float
) -> Column:
    """A collective over all who hold the same parameters: data-parallel ranks, and fewer of them for experts [s]."""
    ranks = space.dp * space.cp
    dense_s = group_times(cluster.system, collective, value_bytes * share.dense, ranks, space.tp)
    experts_apart = np.maximum(space.ep, space.tp)
    copies = np.maximum(1.0, ranks * space.tp / experts_apart)
    expert_s = group_times(cluster.system, collective, value_bytes * share.expert, copies, experts_apart)
    return dense_s + expert_s


def parameter_exchange(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Column:
    """What fully sharded parameters (ZeRO-3, FSDP) move for one micro-batch [s]: gathered forward and again backward,
    gradients reduced; it runs beside the kernels, so it shows only where it is longer."""
    share = chip_share(job, space)
    gather_s = _over_replicas(cluster, space, "all-gather", share, 2.0)
    reduce_s = _over_replicas(cluster, space, "reduce-scatter", share, framework.gradient_bytes)
    return np.where(space.zero >= 3, 2.0 * gather_s + reduce_s, 0.0)


def data_exchange(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Column:
    """Gradients reduced and parameters gathered over the data-parallel group, less what backward hides [s]."""
    share = chip_share(job, space)
    reduce_s = _over_replicas(cluster, space, "reduce-scatter", share, framework.gradient_bytes)
    gather_s = _over_replicas(cluster, space, "all-gather", share, 2.0)
    return np.where(space.zero >= 3, 0.0, framework.data_exposed * (reduce_s + gather_s))


def optimizer_time(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Column:
    """The update of the chip's own share of the parameters [s]."""
    owned = chip_share(job, space).total / np.where(space.zero >= 1, space.dp * space.cp, 1.0)
    return owned * framework.optimizer_bytes / (0.8 * cluster.chip.memory_bytes_per_s)
