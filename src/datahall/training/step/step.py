"""One training step: what a micro-batch takes on the slowest stage, how the pipeline fills, and what is left over.

    step   = slot · (m + (pp − 1)/vpp) + fixed
    slot   = layers per stage · (kernels + exposed tensor exchange) + exposed pipeline exchange
             at least all its tensor exchange, and all that goes one way between two stages
    fixed  = exposed gradient exchange + optimizer + what the framework does once a step
             of the gradient exchange at least all that is longer than the slots

m micro-batches per data-parallel rank.  The slot is the slowest stage: the last one also has the head and the loss.
Reference: Narayanan et al. (2021), Efficient large-scale language model training; Korthikanti et al. (2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.entries.model import Model
from datahall.cluster.cluster import Cluster
from datahall.cluster.groups import group_times
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.scenario.words import CONTEXT_EXCHANGES, RECOMPUTES
from datahall.silicon.attention import smooth_max
from datahall.silicon.calibration import calibrate
from datahall.silicon.kernel import time_operators
from datahall.training.layout.codes import module_names
from datahall.training.layout.columns import Column, Space, unique_rows
from datahall.training.memory.bookkeeping import bookkeeping_of
from datahall.training.memory.offload import exposed_times, traffic_of
from datahall.training.step.attention import attention_time, score_traffic
from datahall.training.step.compression import kernel_column, wire_column
from datahall.training.step.experts import (
    apart_by_expert,
    bias_traffic,
    busiest_load,
    expert_exchange,
    is_routed,
    moe_share,
    permuted_time,
)
from datahall.training.step.framework import Framework, band_of
from datahall.training.step.launch import OUTSIDE, launch_times, sync_time
from datahall.training.step.micro_batch import ExpertSharding, micro_batch_operators
from datahall.training.step.stage import stage_depths
from datahall.workload.operator import Operator
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision

HIDING_SHARPNESS = 4.0  # how sharply exchange that runs beside kernels shows once it is the longer
# Share of the parameters that low-rank adapters add: rank 16 beside attention's products of a 70B model is 45 million,
# 0.06 % (MLPerf Training, llama2_70b_lora reference); only they have gradients to exchange and states to update.
ADAPTER_SHARE = 0.001


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is trained: a model on sequences of a length, in global batches, in a precision."""

    model: Model
    seq: int
    global_batch: int
    precision: Precision = Precision()
    adapters_only: bool = False  # low-rank adapters: weights are frozen and have no gradients
    imbalance: float | None = (
        None  # copies on the busiest of an expert group's ranks over the mean; None: chance alone
    )
    narrow_head: bool = False  # logits are multiplied in the format of the other products
    num_ahead: int = (
        0  # layers of the model that predict tokens further ahead, each with the head and the loss again
    )


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
    offload_s: Column  # what kernels do not hide of the traffic to host or NVMe
    fixed_s: Column
    launch_s: Column  # host time to launch one micro-batch, which shows where it is the longer
    num_micro: Column


def step_times(job: Job, cluster: Cluster, space: Space, framework: Framework) -> StepTimes:
    """Times of one step for every layout of a space."""
    model = job.model
    num_micro = np.maximum(1.0, job.global_batch / (space.dp * space.micro_batch))
    layer_s, outside_s = kernel_times(job, cluster, space, framework)
    per_stage, on_last, mean_layers = stage_depths(model, space)
    reduced_s, passed_s = reduction_alone(job, cluster, space), context_exchange(job, cluster, space)
    tensor_layer_s = framework.tensor_exposed * reduced_s + passed_s
    expert_layer_s = expert_exchange(job, cluster, space, framework, layer_s + tensor_layer_s)
    whole_layer_s = layer_s + tensor_layer_s + expert_layer_s
    deep_s = per_stage * whole_layer_s
    last_s = on_last * whole_layer_s + outside_s
    stage_s = np.where(space.pp > 1, np.maximum(deep_s, last_s), deep_s + outside_s)
    tensor_s, expert_s = per_stage * tensor_layer_s, per_stage * expert_layer_s
    sent_s = messages_alone(job, cluster, space)
    pipeline_s = 2.0 * framework.pipeline_exposed * sent_s  # there and back
    gathered_s = parameter_exchange(job, cluster, space, framework)
    launch_s = launch_times(job, space, framework, per_stage)
    busy_s = smooth_max(smooth_max(stage_s, gathered_s, HIDING_SHARPNESS), launch_s, HIDING_SHARPNESS)
    # kernels hide no more exchange than lasts as long as they do
    alone_s = reduced_s + passed_s / _context_exposed(space)
    slot_s = np.maximum(np.maximum(busy_s, per_stage * alone_s) + pipeline_s, sent_s)
    mean_stage_s = np.where(space.pp > 1, mean_layers * whole_layer_s + outside_s / space.pp, stage_s)
    mean_stage_s = smooth_max(mean_stage_s, launch_s, HIDING_SHARPNESS)
    bubble_s = (mean_stage_s + pipeline_s) * (space.pp - 1.0) / space.vpp
    data_s = data_exchange(job, cluster, space, framework, slot_s * num_micro + bubble_s)
    optimizer_s = optimizer_time(job, cluster, space, framework)
    offload_s = offload_time(job, cluster, space, framework, slot_s)
    slowest = 1.0 + framework.jitter * np.log(np.maximum(1.0, cluster.num_chips))
    fixed_s = np.full(len(space), framework.fixed_s)
    step_s = (slot_s * num_micro + bubble_s + data_s + optimizer_s + offload_s + fixed_s) * slowest
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
        offload_s=offload_s,
        fixed_s=fixed_s,
        launch_s=launch_s,
        num_micro=num_micro,
    )


def step_band(job: Job, cluster: Cluster, framework: Framework) -> tuple[float, float]:
    """Between which shares of the predicted step eight of ten measured ones are expected."""
    measured = calibrate(cluster.chip).level == "measured"
    return band_of(framework, moe=job.model.moe is not None, adapters=job.adapters_only, measured=measured)


def kernel_times(job: Job, cluster: Cluster, space: Space, framework: Framework) -> tuple[Column, Column]:
    """Forward and backward kernels of one micro-batch: one layer, and what lies outside the layers [s].

    Layouts that shard a micro-batch alike share their kernels, so a space costs what its distinct shards cost.
    """
    shards = (
        space.tp, space.cp, space.ep, space.micro_batch, space.recompute, space.sequence_parallel, space.etp,
        space.modules,
    )  # fmt: skip
    distinct, index = unique_rows(shards)
    layer_s, outside_s = np.zeros(len(distinct)), np.zeros(len(distinct))
    for level, parallel, bits in {(row[4], row[5], row[7]) for row in distinct}:
        here = (distinct[:, 4] == level) & (distinct[:, 5] == parallel) & (distinct[:, 7] == bits)
        tp, cp, ep, batch, etp = (distinct[here, column] for column in (0, 1, 2, 3, 6))
        recompute, modules = RECOMPUTES[int(level)], module_names(int(bits))
        sharding = ExpertSharding(tp=tp, cp=cp, ep=ep, etp=etp, sequence_parallel=bool(parallel))
        operators = micro_batch_operators(job, framework, sharding, batch, recompute, modules, cluster.chip)
        load = busiest_load(job, sharding, batch)
        for one, total in operator_times(job, cluster, operators, framework):
            if one.name.startswith(OUTSIDE):
                outside_s[here] += total * (1.0 if one.name.startswith("embedding") else 1.0 + job.num_ahead)
            else:
                layer_s[here] += total * (load if is_routed(one) else 1.0) / job.model.num_layers
        if not framework.flash_attention:
            again = "none" if modules and "core_attn" not in modules else recompute
            scores_s = score_traffic(job, cluster, tp, cp, batch, again)
            layer_s[here] += scores_s * framework.compute_factor
        if not framework.fused_experts:
            layer_s[here] += load * bias_traffic(job, cluster, tp, cp, batch) * framework.compute_factor
    once_s = accumulation_time(job, cluster, space, framework) + sync_time(job, framework)
    return layer_s[index] + once_s, outside_s[index]


def operator_times(
    job: Job, cluster: Cluster, operators: Sequence[Operator], framework: Framework
) -> Iterator[tuple[Operator, Column]]:
    """Each operator that is run, with the time that all its executions take in the framework [s]."""
    if job.adapters_only:
        operators = tuple(one for one in operators if not one.name.endswith("_wgrad"))
    apart, num_products = apart_by_expert(operators)
    for kernel, num in zip(time_operators(cluster.chip, apart).kernels, num_products, strict=True):
        one = kernel.operator
        if kernel.kind == "attention":
            once_s = np.asarray(attention_time(kernel, cluster.chip, framework))
        else:
            once_s = np.asarray(permuted_time(kernel, cluster.chip.memory_bytes_per_s))
        yield one, one.count * num * once_s * framework.compute_factor


def accumulation_time(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Column:
    """Weight gradients of one layer added to what earlier micro-batches left: read and written once [s].

    It comes on top of the product, not beside it: on a B200 the weight gradients of 32 experts of 1,024 rows take 57 %
    longer into fp32 sums than the arithmetic alone would, those of dense layers 6 % longer than into bf16 sums
    (SimuMax v1.2, configs/system/b200_bf16_ceperm.json).  Fully sharded gradients are reduced instead.
    """
    counts = count_parameters(job.model)
    dense = (counts.total - counts.expert - counts.embedding - counts.head) / space.tp
    held = (dense + counts.expert / space.expert_ways) / job.model.num_layers
    moved = 2.0 * framework.gradient_bytes * held
    apart = (space.zero >= 3) | job.adapters_only
    return np.where(apart, 0.0, moved / (0.9 * cluster.chip.memory_bytes_per_s))


# Share of the keys and values passed round a context-parallel ring that attention on the blocks at hand does not
# hide; an estimate, no public run isolates it.
CONTEXT_EXPOSED = 0.3


def tensor_exchange(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Column:
    """Exposed tensor- and context-parallel exchange of one layer and micro-batch [s]."""
    exposed_s = framework.tensor_exposed * reduction_alone(job, cluster, space)
    return exposed_s + context_exchange(job, cluster, space)


def reduction_alone(job: Job, cluster: Cluster, space: Space) -> Column:
    """Tensor-parallel exchange of one layer and micro-batch, hidden or not [s]: an all-reduce after each of the two
    blocks, forward and backward, and again forward where that is recomputed."""
    moved = 2.0 * job.seq * space.micro_batch * job.model.hidden / space.cp
    reduced_s = group_times(cluster.system, "all-reduce", moved, space.tp, np.ones(len(space)))
    times = np.where(space.recompute == RECOMPUTES.index("full"), 6.0, 4.0)
    return _with_expert_groups(job, cluster, space, times * reduced_s)


def context_exchange(job: Job, cluster: Cluster, space: Space) -> Column:
    """Exposed context-parallel exchange of one layer and micro-batch [s]: every key and value is passed by once forward
    and twice backward, or heads are exchanged for tokens."""
    full = space.recompute == RECOMPUTES.index("full")
    kept = 4.0 * job.seq * space.micro_batch * job.model.num_kv_heads * job.model.head_dim
    passed_s = group_times(cluster.system, "all-gather", kept / space.tp, space.cp, space.tp)
    ring_s = np.where(full, 4.0, 3.0) * passed_s * CONTEXT_EXPOSED
    return np.where(_is_ring(space), ring_s, head_exchange(job, cluster, space))


def _is_ring(space: Space) -> NDArray[np.bool_]:
    return np.asarray(space.context == CONTEXT_EXCHANGES.index("ring"))


def _context_exposed(space: Space) -> Column:
    """Share of the context-parallel exchange that nothing hides."""
    return np.where(_is_ring(space), CONTEXT_EXPOSED, 1.0)


def _with_expert_groups(job: Job, cluster: Cluster, space: Space, tensor_s: Column) -> Column:
    """Tensor exchange of a layer where experts have a tensor parallelism of their own [s]: routed tokens are gathered
    and their results reduced over etp chips, and the group of tp has no MLP to exchange for unless experts are shared.
    """
    moe = job.model.moe
    if moe is None or not space.etp.any():
        return tensor_s
    tokens = job.seq * space.micro_batch / space.cp / np.where(space.sequence_parallel, space.tp, 1.0)
    moved = 2.0 * tokens * moe.top_k * job.model.hidden * np.maximum(space.etp, 1.0)
    pairs = np.where(space.recompute == RECOMPUTES.index("full"), 3.0, 2.0)
    own_s = pairs * group_times(cluster.system, "all-reduce", moved, space.etp, np.ones(len(space)))
    left = 1.0 if moe.shared_ffn else 1.0 - moe_share(job) / 2.0
    apart_s = left * tensor_s + moe_share(job) * own_s
    # the share that tp and ep imply is what the constants of frameworks were fitted with
    named = (space.etp > 0) & (space.etp != np.maximum(space.tp / space.ep, 1.0))
    return np.where(named, apart_s, tensor_s)


def head_exchange(job: Job, cluster: Cluster, space: Space) -> Column:
    """All-to-all context parallelism (Ulysses) of one layer and micro-batch [s]: each chip sends its tokens of all
    heads and gets all tokens of its heads, for queries, keys and values and back for the output; backward does the
    same, and full recomputation forward again.  Attention waits for it, so nothing hides it.  Key and value heads
    fewer than chips are sent to several.

    Reference: Jacobs et al. (2023), DeepSpeed Ulysses.
    """
    if not space.context.any():
        return np.zeros(len(space))
    each = 2.0 * job.seq * space.micro_batch * job.model.head_dim / (space.cp * space.tp)
    kv_heads = np.maximum(float(job.model.num_kv_heads), space.tp * space.cp)
    into_s = group_times(
        cluster.system, "all-to-all", each * (job.model.num_heads + 2.0 * kv_heads), space.cp, space.tp
    )
    back_s = group_times(cluster.system, "all-to-all", each * job.model.num_heads, space.cp, space.tp)
    return np.where(space.recompute == RECOMPUTES.index("full"), 3.0, 2.0) * (into_s + back_s)


def messages_alone(job: Job, cluster: Cluster, space: Space) -> Column:
    """Messages of one micro-batch between neighbouring stages one way, hidden or not, once per virtual stage [s]."""
    # each chip of a tensor-parallel group sends its slice, and the group gathers them again inside the domain
    moved = 2.0 * job.seq * space.micro_batch * job.model.hidden / (space.cp * space.tp)
    stride = space.tp * space.cp * space.dp
    once = group_times(cluster.system, "send-recv", moved, np.where(space.pp > 1, 2.0, 1.0), stride)
    return np.asarray(space.vpp * once)


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
    return Share(np.asarray(dense), np.asarray(counts.expert / (space.expert_ways * space.pp)))


def _over_sharers(
    cluster: Cluster, space: Space, collective: Collective, share: Share, value_bytes: Column | float
) -> Column:
    """A collective over all who share a state: data-parallel ranks, and fewer of them for experts [s]."""
    dense_s = group_times(cluster.system, collective, value_bytes * share.dense, space.sharers, space.tp)
    if not share.expert.any():
        return dense_s
    ways = space.expert_ways
    expert_s = group_times(cluster.system, collective, value_bytes * share.expert, space.expert_sharers, ways)
    return dense_s + expert_s


def _between_copies(cluster: Cluster, space: Space, share: Share, value_bytes: Column | float) -> Column:
    """Gradients of a sharer's part all-reduced over the groups that hold the same (HSDP) [s]."""
    if not space.shard.any():
        return np.zeros(len(space))
    apart = space.tp * space.sharers
    dense_s = group_times(
        cluster.system, "all-reduce", value_bytes * share.dense / space.sharers, space.num_copies, apart
    )
    part = value_bytes * share.expert / space.expert_sharers
    copies = np.minimum(space.num_copies, space.expert_copies)
    return dense_s + group_times(cluster.system, "all-reduce", part, copies, apart)


def parameter_exchange(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Column:
    """What fully sharded parameters (ZeRO-3, FSDP) move for one micro-batch [s]: gathered forward and again backward,
    gradients reduced; it runs beside the kernels, so it shows only where it is longer."""
    share = chip_share(job, space)
    wire = wire_column(space.compression, job.model, framework.gradient_bytes)
    gather_s = _over_sharers(cluster, space, "all-gather", share, 2.0)
    reduce_s = _over_sharers(cluster, space, "reduce-scatter", share, wire)
    return np.where(space.zero >= 3, 2.0 * gather_s + reduce_s, 0.0)


def data_exchange(
    job: Job, cluster: Cluster, space: Space, framework: Framework, beside_s: Column | None = None
) -> Column:
    """Gradients reduced and parameters gathered over the data-parallel group, less what backward hides [s].

    Groups that each hold a whole state (HSDP) reduce between them once a step; compressed gradients cost kernels.
    All that is longer than what a step has to run beside it (`beside_s`) shows.
    """
    share = chip_share(job, space)
    wire = wire_column(space.compression, job.model, framework.gradient_bytes)
    reduce_s = _over_sharers(cluster, space, "reduce-scatter", share, wire)
    gather_s = _over_sharers(cluster, space, "all-gather", share, 2.0)
    inside_s = np.where(space.zero >= 3, 0.0, reduce_s + gather_s)
    trained = ADAPTER_SHARE if job.adapters_only else 1.0
    between_s = _between_copies(cluster, space, share, wire)
    packing_s = compression_time(job, cluster, space, framework, share)
    whole_s = trained * (inside_s + between_s)
    exposed_s = framework.data_exposed * whole_s
    shown_s = exposed_s if beside_s is None else np.maximum(exposed_s, whole_s - beside_s)
    return shown_s + trained * packing_s


def compression_time(job: Job, cluster: Cluster, space: Space, framework: Framework, share: Share) -> Column:
    """Kernels that make gradients small and whole again [s]; each micro-batch where they are reduced in each."""
    num_micro = np.maximum(1.0, job.global_batch / (space.dp * space.micro_batch))
    times = np.where(space.zero >= 3, num_micro, 1.0)
    moved = kernel_column(space.compression, job.model, framework.gradient_bytes) * share.total
    return times * moved / (0.8 * cluster.chip.memory_bytes_per_s)


def offload_time(job: Job, cluster: Cluster, space: Space, framework: Framework, slot_s: Column) -> Column:
    """What offloading adds to a step [s]."""
    if not space.offload.any():
        return np.zeros(len(space))
    num_micro = np.maximum(1.0, job.global_batch / (space.dp * space.micro_batch))
    traffic = traffic_of(job, space, chip_share(job, space), bookkeeping_of(framework), num_micro)
    return exposed_times(cluster.host, framework, space, traffic, slot_s, num_micro).total_s


def optimizer_time(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Column:
    """The update of the chip's own share of the parameters [s]."""
    trained = ADAPTER_SHARE if job.adapters_only else 1.0
    owned = trained * chip_share(job, space).total / np.where(space.zero >= 1, space.sharers, 1.0)
    here = np.where(space.offloaded("optimizer") > 0, 0.0, owned)  # else the host does it
    return here * framework.optimizer_bytes / (0.8 * cluster.chip.memory_bytes_per_s)
