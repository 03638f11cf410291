"""Experts of a mixture spread over chips: tokens sent to them and back, and how their products run.

A token goes to the chips of its top_k experts and its results come back, in forward and again in backward: four
exchanges per layer.  Expert by expert that is one copy per expert; libraries that know the topology send a token once
to each chip that holds any of its experts, and over the network once to each scale-up domain, whose chips pass it on:

    domains reached = N·(1 − (1 − 1/N)^top_k)      chips reached = n·(1 − (1 − 1/n)^top_k)

and fewer where the router may choose from a few groups of experts only.  The rank with the most copies holds up the
others, in its products and in the exchange.

Reference: DeepSeek-AI (2024), DeepSeek-V3 technical report, section 3.2.2; DeepEP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from datahall.cluster.groups import group_times
from datahall.silicon.kernel import KernelTime
from datahall.training.step.micro_batch import ExpertSharding, sharding_of
from datahall.training.step.passes import STREAM_SHARE
from datahall.workload.expert_load import evenly_routed
from datahall.workload.operator import Gemm, GroupedGemm, Number, Operator

if TYPE_CHECKING:
    from datahall.catalog.entries.model import Moe
    from datahall.cluster.cluster import Cluster
    from datahall.training.layout.columns import Column, Space
    from datahall.training.layout.layout import Layout
    from datahall.training.step.framework import Framework
    from datahall.training.step.step import Job

EXCHANGES = 4.0  # dispatch and combine, forward and backward


def apart_by_expert(operators: Sequence[Operator]) -> tuple[tuple[Operator, ...], tuple[Number, ...]]:
    """Products of routed experts as one product each, and how many of each operator there are.

    Training libraries multiply expert by expert with the kernels of dense products (Transformer Engine: cuBLAS on
    several streams), each with thousands of rows; the grouped kernels of serving engines are made for few rows.
    """
    apart: list[Operator] = []
    counts: list[Number] = []
    for one in operators:
        shape = one.shape
        if isinstance(shape, GroupedGemm) and not shape.batched:
            each = Gemm(shape.rows / shape.num_experts, shape.n, shape.k)
            apart.append(msgspec.structs.replace(one, shape=each))
            counts.append(shape.num_experts)
        else:
            apart.append(one)
            counts.append(1.0)
    return tuple(apart), tuple(counts)


# Gathering token copies by expert and summing them back moves rows out of order: 0.50 and 0.51 of a B200's bandwidth
# forward and backward (SimuMax v1.2, configs/system/b200_bf16_ceperm.json, permute).
PERMUTED = ("dispatch", "combine")
PERMUTE_EFFICIENCY = 0.5


def permuted_time(kernel: KernelTime, memory_bytes_per_s: float) -> Number:
    """The time of a kernel, which is longer where it puts rows into another order [s]."""
    if not kernel.operator.name.startswith(PERMUTED):
        return kernel.time_s
    moved = kernel.operator.read_bytes + kernel.operator.write_bytes
    return np.maximum(kernel.time_s, moved / (PERMUTE_EFFICIENCY * memory_bytes_per_s))


def moe_share(job: Job) -> float:
    """Share of the layers that have routed experts."""
    routed = sum(count for layer, count in job.model.layer_groups() if layer.mlp == "moe")
    return routed / job.model.num_layers


def blocks_left(job: Job) -> float:
    """Of a layer's all-reduces over tp those that are left where experts have a tensor parallelism of their own."""
    moe = job.model.moe
    return 1.0 if moe is None or moe.shared_ffn else 1.0 - moe_share(job) / 2.0


ROUTED = ("dispatch", "combine", "expert_")  # operators whose rows are as many as copies reach a rank


def is_routed(operator: Operator) -> bool:
    """Whether an operator has as many rows as its rank was sent."""
    return operator.name.startswith(ROUTED)


def busiest_load(job: Job, sharding: ExpertSharding, batch: Number) -> Column:
    """Copies on the busiest rank of an expert group over the mean: what the job says, else chance alone.

    Routers that nothing holds even are worse: without forced balance Qwen3-235B lost 20 % of its rate at 16 k tokens
    and 8 % at 128 k (NVIDIA Megatron-LM model zoo, 2026: 295 to 237 and 389 to 357 TFLOP/s per H100).
    """
    ranks = np.asarray(sharding.ep, dtype=np.float64)
    if job.model.moe is None:
        return np.ones(np.shape(ranks))
    if job.imbalance is not None:
        return np.where(ranks > 1, np.minimum(job.imbalance, ranks), 1.0)
    tokens = job.seq * batch / sharding.cp * np.maximum(1.0, sharding.expert_groups)
    return evenly_routed(tokens, job.model.moe.num_experts, job.model.moe.top_k, ranks)


def layout_load(job: Job, layout: Layout) -> float:
    """The busiest load of one layout."""
    return float(np.ravel(busiest_load(job, sharding_of(layout), float(layout.micro_batch)))[0])


def places_reached(num_places: Column, top_k: float, num_groups: int, num_groups_per_token: int) -> Column:
    """Expected number of distinct places that a token's experts lie at, under uniform routing.

    Experts in `num_groups` groups, of which a token may use a few, lie together (node-limited routing): g of G groups
    over N places reach N·(1 − Π (G − G/N − i)/(G − i)) of them, i below g, and within groups wider than a place
    g times what top_k/g experts reach of a group's N/G places.

    >>> [float(places_reached(np.array(num), 8, 1, 1).round(2)) for num in (8.0, 1.0)]
    [5.25, 1.0]
    >>> float(places_reached(np.array(8.0), 8, 8, 4).round(2)), float(places_reached(np.array(64.0), 8, 8, 4).round(2))
    (4.0, 7.5)
    """
    places = np.asarray(num_places, dtype=np.float64)
    free = places * (1.0 - (1.0 - 1.0 / places) ** top_k)
    if num_groups_per_token >= num_groups:
        return np.asarray(free)
    chosen, missed = float(num_groups_per_token), np.ones(places.shape)
    for i in range(num_groups_per_token):
        missed = missed * np.maximum(0.0, num_groups - num_groups / places - i) / (num_groups - i)
    apart = np.maximum(places / num_groups, 1.0)
    within = chosen * apart * (1.0 - (1.0 - 1.0 / apart) ** (top_k / chosen))
    return np.minimum(free, np.where(places <= num_groups, places * (1.0 - missed), within))


def reached(moe: Moe, num_places: Column) -> Column:
    """Distinct places that a token of a mixture reaches."""
    return places_reached(num_places, float(moe.top_k), moe.num_groups, moe.num_groups_per_token)


def expert_exchange(
    job: Job, cluster: Cluster, space: Space, framework: Framework, beside_s: Column | None = None
) -> Column:
    """Exposed dispatch and combine of routed tokens, forward and backward, as a mean over all layers [s].

    Where it runs beside the kernels of another micro-batch, a share of it still shows, the multiprocessors it takes
    from them, and all that is longer than those kernels (`beside_s`).
    """
    moe = job.model.moe
    if moe is None:
        return np.zeros(len(space))
    tokens = job.seq * space.micro_batch / space.cp / np.where(space.sequence_parallel, space.tp, 1.0)
    token_bytes = job.value_bytes * job.model.hidden
    if framework.deduplicated:
        once = _deduplicated(cluster, space, tokens * token_bytes, moe)
    else:
        moved = tokens * token_bytes * moe.top_k
        once = group_times(cluster.system, "all-to-all", moved, space.ep, np.ones(len(space)))
    sharding = ExpertSharding(tp=space.tp, cp=space.cp, ep=space.ep, etp=space.etp)
    whole_s = EXCHANGES * moe_share(job) * once * busiest_load(job, sharding, space.micro_batch)
    exposed_s = framework.expert_exposed * whole_s
    return exposed_s if beside_s is None else np.maximum(exposed_s, whole_s - beside_s)


def _deduplicated(cluster: Cluster, space: Space, tokens_bytes: Column, moe: Moe) -> Column:
    """One exchange that sends a token once per domain and once per chip; both legs run at the same time [s]."""
    near = np.minimum(space.ep, float(cluster.system.num_domain))
    domains = np.ceil(space.ep / near)
    near_bytes = tokens_bytes * reached(moe, space.ep)
    far_bytes = tokens_bytes * reached(moe, domains)
    near_s = group_times(cluster.system, "all-to-all", near_bytes, near, np.ones(len(space)))
    far_s = group_times(cluster.system, "all-to-all", far_bytes, domains, near)
    return np.maximum(near_s, far_s)


# Passes over the activations of experts with biases where each operation is a kernel of its own: bias, join, two
# clamps, scale, sigmoid, products, offset and router weight of a clamped SwiGLU, and what backward does to each, less
# the two fused kernels that the pass already has; over their outputs, bias and join.
WIDTH_PASSES, OUTPUT_PASSES = 55.0, 7.0


def bias_traffic(job: Job, cluster: Cluster, tp: Column, cp: Column, batch: Column) -> Column:
    """Memory traffic of unfused biases and activations of experts, as a mean over all layers [s].

    Fused kernels for them came in 2026 and sped GPT-OSS up by 93 %: NVIDIA, Boosting MoE training throughput with
    advanced fusion kernels (2026-06).
    """
    moe = job.model.moe
    if moe is None or not moe.expert_bias:
        return np.zeros(np.shape(batch))
    copies = batch * job.seq / cp * moe.top_k / tp
    moved = job.value_bytes * copies * (WIDTH_PASSES * moe.expert_ffn + OUTPUT_PASSES * job.model.hidden)
    return np.asarray(moe_share(job) * moved / (STREAM_SHARE * cluster.chip.memory_bytes_per_s))
