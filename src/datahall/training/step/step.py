"""One training step: what a micro-batch takes on the slowest stage, how the pipeline fills, and what is left over.

    step   = (slot · m + bubble + fixed) · (1 + jitter · ln chips)
    slot   = layers per stage · (kernels + exposed tensor and expert exchange) + exposed pipeline exchange
             at least all its tensor exchange, and all that goes one way between two stages
    bubble = (pp − 1)/vpp · (the mean stage + exposed pipeline exchange)
    fixed  = exposed gradient exchange + optimizer + offload + what the framework does once a step
             of the gradient exchange at least all that is longer than the slots

m micro-batches per data-parallel rank.  The slot is the slowest stage: the last one also has the head and the loss.
Reference: Narayanan et al. (2021), Efficient large-scale language model training; Korthikanti et al. (2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

import msgspec
import numpy as np

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.cluster.cluster import Cluster
from datahall.scenario.sections.training import USUAL_SCHEDULE
from datahall.silicon.calibration import calibrate
from datahall.silicon.kernel import time_operators
from datahall.training.adapters.adapters import Adapters
from datahall.training.adapters.products import is_frozen_gradient
from datahall.training.layout.codes import module_names
from datahall.training.layout.columns import Column, Space, unique_rows
from datahall.training.memory.bookkeeping import Bookkeeping, bookkeeping_of
from datahall.training.memory.offload import exposed_times, traffic_of
from datahall.training.pipeline.table import order_of
from datahall.training.step.attention import attention_time, score_passes, score_traffic
from datahall.training.step.exchange import (
    data_exchange,
    exchange_alone,
    halves_between_sharers,
    messages_alone,
    parameter_exchange,
    tensor_exchange,
    trained_on_chip,
)
from datahall.training.step.experts import (
    apart_by_expert,
    bias_traffic,
    busiest_load,
    expert_exchange,
    is_routed,
    permuted_time,
)
from datahall.training.step.framework import Framework, band_of
from datahall.training.step.launch import OUTSIDE, launch_times, sync_time
from datahall.training.step.micro_batch import ExpertSharding, micro_batch_operators
from datahall.training.step.passes import ACCUMULATION_SHARE, STREAM_SHARE, WAYS
from datahall.training.step.stage import busy_time, held_by, stage_depths
from datahall.workload.adapters.count import tuning_flop_per_token
from datahall.workload.flops import mfu_fraction, training_flop_per_token
from datahall.workload.memory.recompute import RECOMPUTES
from datahall.workload.operator import Number, Operator
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is trained: a model on sequences of a length, in global batches, in a precision."""

    model: Model
    seq: int
    global_batch: int
    precision: Precision = Precision()
    state: str = ""  # recipe of its state; empty: as the precision and the framework have it
    adapters: Adapters | None = None  # which alone are trained: the weights are frozen and have no gradients
    imbalance: float | None = (
        None  # copies on the busiest of an expert group's ranks over the mean; None: chance alone
    )
    narrow_head: bool = False  # logits are multiplied in the format of the other products
    num_ahead: int = (
        0  # layers of the model that predict tokens further ahead, each with the head and the loss again
    )

    @property
    def value_bytes(self) -> float:
        """Of what is not quantised: an activation, a weight as it is gathered, a gradient as it leaves a kernel."""
        return self.precision.wide_bytes_per_value

    @property
    def value_width(self) -> str:
        """The same in words."""
        return f"{8 * self.value_bytes:g} bits"

    @property
    def batch_tokens(self) -> int:
        """Of a step."""
        return self.global_batch * self.seq

    def num_steps(self, num_tokens: float) -> int:
        """Steps of a run: whole global batches until the tokens are used up."""
        return max(1, ceil(num_tokens / self.batch_tokens - 1e-9))

    @property
    def flop_per_token(self) -> float:
        """Model FLOPs of a token forward and backward, attention causal and nothing recomputed."""
        if self.adapters is None:
            return float(training_flop_per_token(self.model, float(self.seq)))
        return float(
            tuning_flop_per_token(self.model, float(self.seq), self.adapters.targets, self.adapters.rank)
        )

    def mfu_fraction(self, cluster: Cluster, step_s: float) -> float:
        """Model FLOPs, attention causal, over the dense peak of the chips at the precision of the products."""
        per_token = self.flop_per_token
        peak_flop_per_s = cluster.chip.peak(self.precision.compute)
        return float(mfu_fraction(self.batch_tokens / step_s, per_token, cluster.num_chips, peak_flop_per_s))

    def books(self, framework: Framework) -> Bookkeeping:
        """How a framework keeps this job in memory."""
        return bookkeeping_of(framework, self.state, self.precision)


class StepTimes(msgspec.Struct, frozen=True, kw_only=True):
    """One step of many layouts as columns, and what it is made of [s]."""

    step_s: Column
    slot_s: Column  # one micro-batch on the slowest stage
    compute_s: Column  # kernels of one micro-batch on that stage
    tensor_s: Column  # exposed tensor-parallel exchange of one micro-batch
    expert_s: Column  # exposed exchange of routed tokens of one micro-batch
    gathered_s: Column  # fully sharded parameters moved beside the kernels of one micro-batch
    pipeline_s: Column  # exposed exchange between stages of one micro-batch
    sent_s: Column  # that exchange one way, exposed or not
    mean_stage_s: Column  # one micro-batch on the mean stage
    bubble_s: Column
    round_trip_s: Column  # of that: stages wait for what is on its way to the last one and back
    data_s: Column  # exposed gradient and parameter exchange
    optimizer_s: Column
    offload_s: Column  # what kernels do not hide of the traffic to host or NVMe
    fixed_s: Column
    launch_s: Column  # host time to launch one micro-batch, which shows where it is the longer
    num_micro: Column


def step_times(job: Job, cluster: Cluster, space: Space, framework: Framework) -> StepTimes:
    """Times of one step for every layout of a space."""
    model = job.model
    num_micro = space.num_micro(job.global_batch)
    layer_s, outside_s = kernel_times(job, cluster, space, framework)
    per_stage, on_last, mean_layers = stage_depths(model, space)
    tensor_layer_s = tensor_exchange(job, cluster, space, framework)
    expert_layer_s = expert_exchange(job, cluster, space, framework, layer_s + tensor_layer_s)
    whole_layer_s = layer_s + tensor_layer_s + expert_layer_s
    deep_s = per_stage * whole_layer_s
    last_s = on_last * whole_layer_s + outside_s
    stage_s = np.where(space.pp > 1, np.maximum(deep_s, last_s), deep_s + outside_s)
    tensor_s, expert_s = per_stage * tensor_layer_s, per_stage * expert_layer_s
    sent_s = messages_alone(job, cluster, space)
    pipeline_s = WAYS * framework.pipeline_exposed * sent_s
    halves = halves_between_sharers(job, cluster, space, framework)
    gathered_s = parameter_exchange(space, halves)
    launch_s = launch_times(job, space, framework, per_stage)
    alone_s = per_stage * exchange_alone(job, cluster, space)
    waited = framework.parameters_exposed
    slot_s = np.maximum(busy_time(stage_s, gathered_s, launch_s, alone_s, waited) + pipeline_s, sent_s)
    mean_stage_s = np.where(space.pp > 1, mean_layers * whole_layer_s + outside_s / space.pp, stage_s)
    mean_gathered_s = gathered_s * _mean_over_fullest(model, space, per_stage)
    mean_stage_s = busy_time(mean_stage_s, mean_gathered_s, launch_s, np.zeros(len(space)), waited)
    bubble_s = (mean_stage_s + pipeline_s) * (space.pp - 1.0) / space.vpp
    data_s = data_exchange(job, cluster, space, framework, halves, slot_s)
    optimizer_s = optimizer_time(job, cluster, space, framework)
    offload_s = offload_time(job, cluster, space, framework, slot_s)
    slowest = 1.0 + framework.jitter * np.log(np.maximum(1.0, cluster.num_chips))
    fixed_s = np.full(len(space), framework.fixed_s)
    step_s = (slot_s * num_micro + bubble_s + data_s + optimizer_s + offload_s + fixed_s) * slowest
    found = StepTimes(
        step_s=step_s,
        slot_s=slot_s,
        compute_s=stage_s - tensor_s - expert_s,
        tensor_s=tensor_s,
        expert_s=expert_s,
        gathered_s=gathered_s,
        pipeline_s=pipeline_s,
        sent_s=sent_s,
        mean_stage_s=mean_stage_s,
        bubble_s=bubble_s,
        round_trip_s=np.zeros(len(space)),
        data_s=data_s,
        optimizer_s=optimizer_s,
        offload_s=offload_s,
        fixed_s=fixed_s,
        launch_s=launch_s,
        num_micro=num_micro,
    )
    round_trip_s = round_trip_time(found, space, USUAL_SCHEDULE)
    return msgspec.structs.replace(
        found,
        step_s=step_s + round_trip_s * slowest,
        bubble_s=bubble_s + round_trip_s,
        round_trip_s=round_trip_s,
    )


def _mean_over_fullest(model: Model, space: Space, per_stage: Column) -> Column:
    """Parameters of the mean stage over those of the fullest, which has a table besides."""
    counts = count_parameters(model)
    body = counts.total - counts.embedding - counts.head
    fullest = body * per_stage / model.num_layers + max(counts.embedding, counts.head)
    return np.where(space.pp > 1, np.minimum(1.0, counts.total / space.pp / fullest), 1.0)


def round_trip_time(times: StepTimes, space: Space, schedule: str) -> Column:
    """What a step takes longer because a stage holds few micro-batches while each goes to the last one and back [s].

    A stage that holds h of them goes on when the first is back, so h micro-batches take no less than that takes; and
    the first and the last one meet a message at every stage:

        m/h · (p c + 2 (p v − 1) s) − m slots + 2 (p − 1) s

    for m micro-batches on p stages of v chunks; c one of them on a stage, s a message.  A schedule that runs all
    forwards first waits for none.  Reference: Little's law.
    """
    message_s = times.sent_s / space.vpp
    ends_s = (space.pp - 1.0) * (WAYS * message_s - times.pipeline_s / space.vpp)
    there_and_back_s = space.pp * times.mean_stage_s + WAYS * (space.pp * space.vpp - 1.0) * message_s
    held = held_by(schedule, times.num_micro, space.pp, space.vpp, 0)
    rounds_s = times.num_micro * (there_and_back_s / held - times.slot_s) if order_of(schedule).waits else 0.0
    return np.where(space.pp > 1, np.maximum(0.0, ends_s + rounds_s), 0.0)


def step_band(job: Job, cluster: Cluster, framework: Framework) -> tuple[float, float]:
    """Between which shares of the predicted step eight of ten measured ones are expected."""
    measured = calibrate(cluster.chip).level == "measured"
    return band_of(
        framework, moe=job.model.moe is not None, adapters=job.adapters is not None, measured=measured
    )


def kernel_times(job: Job, cluster: Cluster, space: Space, framework: Framework) -> tuple[Column, Column]:
    """Forward and backward kernels of one micro-batch: one layer, and what lies outside the layers [s].

    Layouts that shard a micro-batch alike share their kernels, so a space costs what its distinct shards cost.
    """
    shards = (
        space.tp, space.cp, space.ep, space.micro_batch, space.recompute, space.sequence_parallel, space.etp,
        space.modules,
    )  # fmt: skip
    distinct, index = unique_rows(shards)
    known = _known_shards(msgspec.structs.replace(job, global_batch=1), cluster.chip, framework)
    rows = [tuple(row) for row in distinct.tolist()]
    missing = [place for place, row in enumerate(rows) if row not in known.times_s]
    if missing:
        each = shard_times(known.job, cluster, distinct[missing], framework)
        known.times_s.update(zip((rows[place] for place in missing), zip(*each, strict=True), strict=True))
    layer_s, outside_s = np.array([known.times_s[row] for row in rows]).reshape(-1, 2).T
    once_s = accumulation_time(job, cluster, space, framework) + sync_time(job, framework)
    return layer_s[index] + once_s, outside_s[index]


class _Shards(NamedTuple):
    """Shards of one job on one chip in one framework whose kernels have been timed: a layer, and what lies outside."""

    job: Job
    chip: Chip
    framework: Framework
    times_s: dict[tuple[float, ...], tuple[float, float]]


MOST_JOBS = 256  # whose shards are remembered
_REMEMBERED: list[_Shards] = []


def _known_shards(job: Job, chip: Chip, framework: Framework) -> _Shards:
    """What is remembered of a job, whatever its batch: on other numbers of chips it is cut into the same shards."""
    for place, one in enumerate(_REMEMBERED):
        if one.chip == chip and one.framework == framework and one.job == job:
            _REMEMBERED.insert(0, _REMEMBERED.pop(place))
            return one
    _REMEMBERED.insert(0, _Shards(job, chip, framework, {}))
    del _REMEMBERED[MOST_JOBS:]
    return _REMEMBERED[0]


def shard_times(job: Job, cluster: Cluster, distinct: Column, framework: Framework) -> tuple[Column, Column]:
    """Kernels of one micro-batch for each row of `kernel_times`: one layer, and what lies outside the layers [s]."""
    layer_s, outside_s = np.zeros(len(distinct)), np.zeros(len(distinct))
    for level, parallel, bits in {(row[4], row[5], row[7]) for row in distinct}:
        here = (distinct[:, 4] == level) & (distinct[:, 5] == parallel) & (distinct[:, 7] == bits)
        tp, cp, ep, batch, etp = (distinct[here, column] for column in (0, 1, 2, 3, 6))
        recompute, modules = RECOMPUTES[int(level)], module_names(int(bits))
        sharding = ExpertSharding(tp=tp, cp=cp, ep=ep, etp=etp, sequence_parallel=bool(parallel))
        operators = micro_batch_operators(job, framework, sharding, batch, recompute, modules, cluster.chip)
        for one, total in waited_times(job, cluster, operators, framework, sharding, batch):
            if one.name.startswith(OUTSIDE):
                outside_s[here] += total
            else:
                layer_s[here] += total / job.model.num_layers
        layer_s[here] += memory_time(job, cluster, framework, sharding, batch, recompute, modules)
    return layer_s, outside_s


def memory_time(
    job: Job,
    cluster: Cluster,
    framework: Framework,
    sharding: ExpertSharding,
    batch: Number,
    recompute: str,
    modules: tuple[str, ...],
) -> Column:
    """What kernels of a layer move that its operators do not count: unfused attention and experts [s]."""
    moved_s = np.zeros(np.shape(batch))
    tp, cp = np.asarray(sharding.tp), np.asarray(sharding.cp)
    if not framework.flash_attention:
        again = "none" if modules and "core_attn" not in modules else recompute
        passes = score_passes(framework, job.value_bytes)
        moved_s = moved_s + score_traffic(job, cluster, tp, cp, np.asarray(batch), again, passes)
    if not framework.fused_experts:
        load = busiest_load(job, sharding, batch)
        moved_s = moved_s + load * bias_traffic(job, cluster, tp, cp, np.asarray(batch))
    return np.asarray(moved_s * framework.compute_factor)


def waited_times(
    job: Job,
    cluster: Cluster,
    operators: Sequence[Operator],
    framework: Framework,
    sharding: ExpertSharding,
    batch: Number,
) -> Iterator[tuple[Operator, Column]]:
    """Each operator with the time until the busiest rank has run it, the head for tokens further ahead too [s]."""
    load = busiest_load(job, sharding, batch)
    for one, total in operator_times(job, cluster, operators, framework):
        times = load if is_routed(one) else 1.0
        if one.name.startswith(OUTSIDE):
            times = 1.0 if one.name.startswith("embedding") else 1.0 + job.num_ahead
        yield one, total * times


def operators_run(job: Job, operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """Those that are run: beside adapters no gradients of the weights."""
    return tuple(one for one in operators if not is_frozen_gradient(job, one))


def operator_times(
    job: Job, cluster: Cluster, operators: Sequence[Operator], framework: Framework
) -> Iterator[tuple[Operator, Column]]:
    """Each operator that is run, with the time that all its executions take in the framework [s]."""
    apart, num_products = apart_by_expert(operators_run(job, operators))
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
    moved = 2.0 * framework.sent_bytes(job.value_bytes) * held
    apart = (space.zero >= 3) | (job.adapters is not None)
    return np.where(apart, 0.0, moved / (ACCUMULATION_SHARE * cluster.chip.memory_bytes_per_s))


def offload_time(job: Job, cluster: Cluster, space: Space, framework: Framework, slot_s: Column) -> Column:
    """What offloading adds to a step [s]."""
    if not space.offload.any():
        return np.zeros(len(space))
    num_micro = space.num_micro(job.global_batch)
    traffic = traffic_of(job, space, job.books(framework), num_micro)
    return exposed_times(cluster.host, framework, space, traffic, slot_s, num_micro).total_s


def optimizer_time(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Column:
    """The update of the chip's own share of the parameters, which moves their gradients and states [s]."""
    owned = trained_on_chip(job, space).owned(space)
    here = np.where(space.offloaded("optimizer") > 0, 0.0, owned)  # else the host does it
    moved = here * job.books(framework).recipe.updated
    return moved / (STREAM_SHARE * cluster.chip.memory_bytes_per_s)
