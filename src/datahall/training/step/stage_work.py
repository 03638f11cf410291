"""What each pipeline stage does for one micro-batch, from the kernels and exchange of a job.

The closed form of `step.py` knows one slot, the slowest stage's; here layers are cut over the stages, kernels into
forward, backward for the input and backward for the weights, and exchange over both.  Nothing of it is the closed
form's: both are made of the same operators and collectives, and each puts them together itself, so that one can be
checked by the other.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.cluster.cluster import Cluster
from datahall.cluster.groups import stage_times
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.schedule import Schedule
from datahall.training.pipeline.simulate import Work
from datahall.training.step.exchange import (
    data_exchange,
    exchange_alone,
    halves_between_sharers,
    messages_alone,
    parameter_exchange,
    tensor_exchange,
)
from datahall.training.step.experts import expert_exchange
from datahall.training.step.framework import Framework
from datahall.training.step.launch import OUTSIDE, launch_times, sync_time
from datahall.training.step.micro_batch import layout_operators, sharding_of
from datahall.training.step.passes import BLOCKS, WAYS
from datahall.training.step.stage import busy_time, head_layers, part_layers
from datahall.training.step.step import (
    Job,
    accumulation_time,
    kernel_times,
    memory_time,
    offload_time,
    optimizer_time,
    waited_times,
)
from datahall.workload.parameters import count_parameters

Floats = NDArray[np.float64]
NIC_TAX = 0.02  # share of a chip's arithmetic that a collective over the network takes; Calculon, Isaev et al. (2023)


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """One micro-batch on one layer, or on what lies outside them: forward, backward for input and for weights [s]."""

    kernels_s: tuple[float, float, float]
    exchange_s: tuple[float, float, float] = (0.0, 0.0, 0.0)
    redone_s: float = 0.0  # forward kernels run again, inside the backward for input
    uneven_s: float = 0.0  # of kernels and exchange: waiting for the rank with the most routed tokens

    @property
    def total_s(self) -> Floats:
        return np.add(self.kernels_s, self.exchange_s, dtype=np.float64)


class StageWork(msgspec.Struct, frozen=True, kw_only=True):
    """The work of every place, what it was made of, and the exchange that stays hidden."""

    work: Work
    layers: NDArray[np.int64]  # by part of the model
    layer: Layer
    first: Layer  # embedding
    last: Layer  # final norm, head and loss
    beside_ratio: (
        float  # the heaviest stage with what runs beside its kernels over its kernels and exchange alone
    )
    slot_s: float  # one micro-batch on the heaviest stage, with the messages that hold it up
    gathered_s: float  # fully sharded parameters moved beside the kernels of one micro-batch
    data_s: float  # gradients and parameters that the framework never hides, of all parts that a stage holds
    optimizer_s: float
    offload_s: float  # what kernels do not hide of the traffic to host or NVMe
    tensor_whole_s: float  # tensor and expert exchange of one layer and micro-batch, hidden or not
    message_s: float  # one message between stages


def stage_work(job: Job, cluster: Cluster, layout: Layout, framework: Framework, plan: Schedule) -> StageWork:
    """Durations for every place of a schedule."""
    space = Space.of(layout)
    whole = msgspec.structs.replace(
        framework, tensor_exposed=1.0, expert_exposed=1.0, pipeline_exposed=1.0, data_exposed=1.0
    )
    layer, first, last = _layers(job, cluster, layout, framework, space)
    layers = part_layers(job.model.num_layers, plan.num_parts, layout.split, head_layers(job.model))
    ends = np.arange(plan.num_parts)
    parts_s = (
        layers[:, None] * layer.total_s
        + (ends == 0)[:, None] * first.total_s
        + (ends == plan.num_parts - 1)[:, None] * last.total_s
    )
    halves = halves_between_sharers(job, cluster, space, whole)
    gathered_s = parameter_exchange(space, halves)
    stage_s = _of_heaviest(plan, parts_s.sum(axis=1))
    sent_s = messages_alone(job, cluster, space)
    blocked_s = framework.pipeline_exposed * float(sent_s[0])  # one way
    busy_s = _busy(job, cluster, framework, space, _of_heaviest(plan, layers), stage_s, gathered_s)
    busy_s = max(busy_s, float(sent_s[0]) - WAYS * blocked_s)
    slot_s, beside_ratio = busy_s + WAYS * blocked_s, busy_s / stage_s
    places_s = beside_ratio * parts_s[plan.position]
    data_whole_s, data_s = (
        float(data_exchange(job, cluster, space, one, halves)[0]) for one in (whole, framework)
    )
    gather_s, reduce_s = _hidden_exchange(job, layout, framework, plan, layers, data_whole_s - data_s)
    message_s, latency_s = _message(job, cluster, space)
    return StageWork(
        work=Work(
            forward_s=np.ascontiguousarray(places_s[:, 0]),
            input_s=np.ascontiguousarray(places_s[:, 1]),
            weight_s=np.ascontiguousarray(places_s[:, 2]),
            gather_s=gather_s,
            reduce_s=reduce_s,
            num_buckets=np.maximum(1, layers[plan.position]),  # one for each layer
            latency_s=latency_s,
            transfer_s=message_s - latency_s,
            blocked_s=blocked_s / layout.vpp,
            beside_ratio=1.0 / (1.0 - NIC_TAX),
        ),
        layers=layers,
        layer=layer,
        first=first,
        last=last,
        beside_ratio=beside_ratio,
        slot_s=slot_s,
        gathered_s=float(gathered_s[0]),
        data_s=plan.num_copies * data_s,
        optimizer_s=plan.num_copies * float(optimizer_time(job, cluster, space, framework)[0]),
        offload_s=float(offload_time(job, cluster, space, framework, np.array([slot_s]))[0]),
        tensor_whole_s=float(
            exchange_alone(job, cluster, space)[0] + expert_exchange(job, cluster, space, whole)[0]
        ),
        message_s=message_s,
    )


def _of_heaviest(plan: Schedule, parts: NDArray[np.float64] | NDArray[np.int64]) -> float:
    """What a micro-batch finds on the stage where that is the most, of something that parts of the model have."""
    passed = (plan.num_visits * parts[plan.position]).reshape(plan.num_stages, plan.num_chunks).sum(axis=1)
    return float(passed.max()) / plan.num_micro


def _busy(
    job: Job,
    cluster: Cluster,
    framework: Framework,
    space: Space,
    deepest: float,
    stage_s: float,
    gathered_s: Floats,
) -> float:
    """The heaviest stage with what runs beside its kernels [s]."""
    alone_s = exchange_alone(job, cluster, space)
    launch_s = launch_times(job, space, framework, np.array([deepest]))
    waited = framework.parameters_exposed
    return float(busy_time(np.array([stage_s]), gathered_s, launch_s, deepest * alone_s, waited)[0])


def _layers(
    job: Job, cluster: Cluster, layout: Layout, framework: Framework, space: Space
) -> tuple[Layer, Layer, Layer]:
    """A layer, the embedding, and what follows the last layer, cut as their kernels are."""
    operators = layout_operators(job, framework, layout, cluster.chip)
    sharding, batch = sharding_of(layout), float(layout.micro_batch)
    found = np.zeros((3, 3))  # layers, embedding, head × forward, input, weights
    redone_s = 0.0
    for one, total in waited_times(job, cluster, operators, framework, sharding, batch):
        name, total_s = one.name, float(np.ravel(total)[0])
        where = 0 if not name.startswith(OUTSIDE) else 1 if name.startswith("embedding") else 2
        weights = name.endswith("_wgrad") or (where == 1 and one.backward)
        found[where, 2 if weights else int(one.backward)] += total_s
        redone_s += total_s if name.endswith("_recompute") else 0.0
    found[0] /= job.model.num_layers
    redone_s /= job.model.num_layers
    found[0, 2] += float(accumulation_time(job, cluster, space, framework)[0])
    moved_s = memory_time(job, cluster, framework, sharding, batch, layout.recompute, layout.modules)
    spread = 1.0 + (float(moved_s) + sync_time(job, framework)) / float(found[0].sum())
    found[0], redone_s = spread * found[0], spread * redone_s
    layer_s = float(found[0].sum())
    forwards = BLOCKS.forward / BLOCKS.times(full=layout.recompute == "full")
    tensor_s = float(tensor_exchange(job, cluster, space, framework)[0])
    beside_s = np.array([layer_s + tensor_s])  # kernels hide no more than lasts as long as they do
    expert_s = float(expert_exchange(job, cluster, space, framework, beside_s)[0])
    forward_s = forwards * tensor_s + 0.5 * expert_s
    exchange_s = (forward_s, tensor_s + expert_s - forward_s, 0.0)
    rows = [(float(row[0]), float(row[1]), float(row[2])) for row in found]
    return (
        Layer(
            kernels_s=rows[0],
            exchange_s=exchange_s,
            redone_s=redone_s,
            uneven_s=_uneven(job, cluster, framework, space, tensor_s, layer_s + expert_s),
        ),
        Layer(kernels_s=rows[1]),
        Layer(kernels_s=rows[2]),
    )


def _uneven(
    job: Job, cluster: Cluster, framework: Framework, space: Space, tensor_s: float, layer_s: float
) -> float:
    """What a layer and its exchange of tokens would be faster by with as many tokens on every rank [s]."""
    if job.model.moe is None or space.ep[0] == 1:
        return 0.0
    even = msgspec.structs.replace(job, imbalance=1.0)
    kernels_s = kernel_times(even, cluster, space, framework)[0]
    exchange_s = expert_exchange(even, cluster, space, framework, kernels_s + tensor_s)
    longer_s = layer_s - float(kernels_s[0] + exchange_s[0])
    return longer_s if longer_s > 1e-12 * layer_s else 0.0


def _hidden_exchange(
    job: Job, layout: Layout, framework: Framework, plan: Schedule, layers: NDArray[np.int64], hidden_s: float
) -> tuple[Floats, Floats]:
    """Parameters gathered and gradients reduced beside the kernels, by place, in proportion to what it holds [s]."""
    counts = count_parameters(job.model)
    each = (counts.total - counts.embedding - counts.head) / job.model.num_layers
    held = layers * float(each)
    held[0] += counts.embedding
    held[-1] += counts.head
    by_place = held[plan.position]
    fullest = by_place.reshape(plan.num_stages, plan.num_chunks).sum(axis=1).max()
    share_s = plan.num_copies * hidden_s * by_place / fullest
    back, sent = job.value_bytes, framework.sent_bytes(job.value_bytes)
    gathered = back / (back + sent) if layout.zero >= 1 else 0.0
    return gathered * share_s, (1.0 - gathered) * share_s


def _message(job: Job, cluster: Cluster, space: Space) -> tuple[float, float]:
    """One message between stages: its time, and how much of it is latency [s]."""
    if space.pp[0] == 1:
        return 0.0, 0.0
    message_s = float(messages_alone(job, cluster, space)[0] / space.vpp[0])
    empty_s = stage_times(cluster.system, np.ones(1), space.pp, space.tp * space.cp * space.dp)
    return message_s, min(message_s, float(empty_s[0]))
