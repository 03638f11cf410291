"""What chips of a layout exchange in a step: within a layer, between stages, and of gradients and parameters.

References: Korthikanti et al. (2022); Rajbhandari et al. (2020), ZeRO; Liu et al. (2023), Ring Attention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.cluster.groups import group_times, stage_times
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.choice import Choice, choose_collective
from datahall.scenario.words import CONTEXT_EXCHANGES
from datahall.training.adapters.adapters import mean_frozen_bytes, trained_share
from datahall.training.layout.columns import Column, Space
from datahall.training.step.compression import kernel_column, summed_column, wire_column
from datahall.training.step.experts import blocks_left, moe_share
from datahall.training.step.passes import (
    BLOCKS,
    EXPERT_GROUPS,
    HEADS,
    RING,
    STREAM_SHARE,
    Passes,
)
from datahall.workload.memory.recompute import RECOMPUTES
from datahall.workload.parameters import count_parameters

if TYPE_CHECKING:
    from datahall.cluster.cluster import Cluster
    from datahall.training.memory.bookkeeping import Bookkeeping
    from datahall.training.step.framework import Framework
    from datahall.training.step.step import Job

# Share of the keys and values passed round a context-parallel ring that attention on the blocks at hand does not
# hide; an estimate, no public run isolates it.
CONTEXT_EXPOSED = 0.3


def tensor_exchange(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Column:
    """Exposed tensor- and context-parallel exchange of one layer and micro-batch [s]."""
    exposed_s = framework.tensor_exposed * reduction_alone(job, cluster, space)
    return exposed_s + context_exchange(job, cluster, space)


def exchange_alone(job: Job, cluster: Cluster, space: Space) -> Column:
    """Tensor- and context-parallel exchange of one layer and micro-batch, hidden or not [s]."""
    passed_s = context_exchange(job, cluster, space) / context_exposed(space)
    return reduction_alone(job, cluster, space) + passed_s


def reduction_alone(job: Job, cluster: Cluster, space: Space) -> Column:
    """Tensor-parallel exchange of one layer and micro-batch, hidden or not [s]: an all-reduce after each of the two
    blocks, forward and backward, and again forward where that is recomputed."""
    moved = job.value_bytes * job.seq * space.micro_batch * job.model.hidden / space.cp
    reduced_s = group_times(cluster.system, "all-reduce", moved, space.tp, np.ones(len(space)))
    return _with_expert_groups(job, cluster, space, _times(BLOCKS, space) * reduced_s)


def _times(passes: Passes, space: Space) -> Column:
    """How often a layer of each layout exchanges something."""
    full = space.recompute == RECOMPUTES.index("full")
    return np.where(full, passes.times(full=True), passes.times(full=False))


def context_exchange(job: Job, cluster: Cluster, space: Space) -> Column:
    """Exposed context-parallel exchange of one layer and micro-batch [s]: every key and value is passed by once forward
    and twice backward, or heads are exchanged for tokens."""
    kept = 2.0 * job.value_bytes * job.seq * space.micro_batch * job.model.num_kv_heads * job.model.head_dim
    passed_s = group_times(cluster.system, "all-gather", kept / space.tp, space.cp, space.tp)
    ring_s = _times(RING, space) * passed_s * CONTEXT_EXPOSED
    return np.where(_is_ring(space), ring_s, head_exchange(job, cluster, space))


def _is_ring(space: Space) -> NDArray[np.bool_]:
    return np.asarray(space.context_exchange == CONTEXT_EXCHANGES.index("ring"))


def context_exposed(space: Space) -> Column:
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
    moved = job.value_bytes * tokens * moe.top_k * job.model.hidden * np.maximum(space.etp, 1.0)
    once_s = group_times(cluster.system, "all-reduce", moved, space.etp, np.ones(len(space)))
    own_s = _times(EXPERT_GROUPS, space) * once_s
    apart_s = blocks_left(job) * tensor_s + moe_share(job) * own_s
    return np.where(space.has_expert_groups, apart_s, tensor_s)


def head_exchange(job: Job, cluster: Cluster, space: Space) -> Column:
    """All-to-all context parallelism (Ulysses) of one layer and micro-batch [s]: each chip sends its tokens of all
    heads and gets all tokens of its heads, for queries, keys and values and back for the output; backward does the
    same, and full recomputation forward again.  Attention waits for it, so nothing hides it.  Key and value heads
    fewer than chips are sent to several.

    Reference: Jacobs et al. (2023), DeepSpeed Ulysses.
    """
    if not space.context_exchange.any():
        return np.zeros(len(space))
    each = job.value_bytes * job.seq * space.micro_batch * job.model.head_dim / (space.cp * space.tp)
    kv_heads = np.maximum(float(job.model.num_kv_heads), space.tp * space.cp)
    into_s = group_times(
        cluster.system, "all-to-all", each * (job.model.num_heads + 2.0 * kv_heads), space.cp, space.tp
    )
    back_s = group_times(cluster.system, "all-to-all", each * job.model.num_heads, space.cp, space.tp)
    return _times(HEADS, space) * (into_s + back_s)


def messages_alone(job: Job, cluster: Cluster, space: Space) -> Column:
    """Messages of one micro-batch between neighbouring stages one way, hidden or not, once per virtual stage [s]."""
    # each chip of a tensor-parallel group sends its slice, and the group gathers them again inside the domain
    moved = job.value_bytes * job.seq * space.micro_batch * job.model.hidden / (space.cp * space.tp)
    once = stage_times(cluster.system, moved, space.pp, space.tp * space.cp * space.dp)
    return np.asarray(space.vpp * once)


class Share(msgspec.Struct, frozen=True):
    """Parameters of one chip of the fullest stage before ZeRO: what all data-parallel ranks hold, and experts."""

    dense: Column
    expert: Column

    @property
    def total(self) -> Column:
        return self.dense + self.expert

    def owned(self, space: Space) -> Column:
        """Those whose state the chip keeps: from ZeRO-1 on a share, of experts with fewer ranks."""
        spread = space.zero >= 1
        dense = self.dense / np.where(spread, space.sharers, 1.0)
        return np.asarray(dense + self.expert / np.where(spread, space.expert_sharers, 1.0))


def chip_share(job: Job, space: Space) -> Share:
    """Split the parameters as the layout does; experts over their own group."""
    counts = count_parameters(job.model)
    outside = counts.embedding + counts.head
    dense = (counts.total - counts.expert - outside) / (space.tp * space.pp)
    dense = dense + outside / (space.tp * np.minimum(space.pp, 2.0))
    return Share(np.asarray(dense), np.asarray(counts.expert / (space.expert_ways * space.pp)))


def trained_on_chip(job: Job, space: Space) -> Share:
    """Those of them that have gradients: all, or the adapters beside what is no routed expert."""
    share = chip_share(job, space)
    if job.adapters is None:
        return share
    return Share(trained_share(job) * share.dense, np.zeros(len(space)))


def gathered_bytes(job: Job, books: Bookkeeping) -> tuple[float, float]:
    """Of a weight as fully sharded ones are gathered [B]: in the mean of all besides routed experts, and of these."""
    if job.adapters is None:
        return job.value_bytes, job.value_bytes
    dense, expert = mean_frozen_bytes(job, books)
    return dense + trained_share(job) * job.value_bytes, expert


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


class Halves(NamedTuple):
    """The two halves of what sharers of a state exchange once [s]."""

    reduce_s: Column  # gradients, reduced and scattered
    gather_s: Column  # parameters; in plain data parallelism the reduced gradients


def halves_between_sharers(job: Job, cluster: Cluster, space: Space, framework: Framework) -> Halves:
    """Both halves for every layout, whether it exchanges them once a step or with each micro-batch."""
    trained = trained_on_chip(job, space)
    wire = wire_column(space.compression, job.model, framework.sent_bytes(job.value_bytes))
    back = np.where(space.zero == 0, _summed(job, space, framework), job.value_bytes)
    sent = trained
    if job.adapters is not None:  # fully sharded, the frozen weights are gathered too, in their own format
        whole, (dense, expert) = chip_share(job, space), gathered_bytes(job, job.books(framework))
        full = space.zero >= 3
        sent = Share(
            np.where(full, dense / job.value_bytes * whole.dense, trained.dense),
            np.where(full, expert / job.value_bytes * whole.expert, 0.0),
        )
    return Halves(
        _over_sharers(cluster, space, "reduce-scatter", trained, wire),
        _over_sharers(cluster, space, "all-gather", sent, back),
    )


def _summed(job: Job, space: Space, framework: Framework) -> Column:
    """Bytes of one value of a gradient that ranks have reduced, on the wire."""
    return summed_column(space.compression, job.model, framework.sent_bytes(job.value_bytes), space.sharers)


def parameter_exchange(space: Space, halves: Halves) -> Column:
    """What fully sharded parameters (ZeRO-3, FSDP) move for one micro-batch [s]: gathered forward and again backward,
    gradients reduced; it runs beside the kernels, so it shows only where it is longer."""
    return np.where(space.zero >= 3, 2.0 * halves.gather_s + halves.reduce_s, 0.0)


def data_exchange(
    job: Job,
    cluster: Cluster,
    space: Space,
    framework: Framework,
    halves: Halves,
    slot_s: Column | None = None,
) -> Column:
    """Gradients reduced and parameters gathered over the data-parallel group, less what backward hides [s].

    Plain data parallelism (ZeRO 0) all-reduces gradients, which is timed as the two halves of a ring: reduced and
    scattered, then gathered in the same format; the one collective that NCCL would choose for the whole brings public
    runs no nearer.
    Groups that each hold a whole state (HSDP) reduce between them once a step; compressed gradients cost kernels.
    Beside the last micro-batch gradients are reduced while it goes backward, beside the first parameters are gathered
    while it goes forward: what is longer than its part of `slot_s` shows on the first stage, which has no other time.
    """
    share = trained_on_chip(job, space)
    inside_s = np.where(space.zero >= 3, 0.0, halves.reduce_s + halves.gather_s)
    between_s = _between_copies(cluster, space, share, _summed(job, space, framework))
    packing_s = compression_time(job, cluster, space, framework, share)
    whole_s = inside_s + between_s
    exposed_s = framework.data_exposed * whole_s
    shown_s = exposed_s
    if slot_s is not None:
        forward_s = slot_s / np.where(space.recompute == RECOMPUTES.index("full"), 4.0, 3.0)
        gathered_s = np.where((space.zero >= 3) | (space.zero == 0), 0.0, halves.gather_s)
        reduced_s = whole_s - gathered_s
        shown_s = np.maximum(
            exposed_s, _longer(space, reduced_s, slot_s - forward_s) + _longer(space, gathered_s, forward_s)
        )
    return shown_s + packing_s


def _longer(space: Space, moved_s: Column, beside_s: Column) -> Column:
    """What is moved for a stage in v equal chunks, one after the other, beyond what runs beside it [s].

    Chunks follow each other a round of p stages apart; either the last of them is longer than its own work, or all are
    longer than the time since the first.
    """
    own_s = (moved_s - beside_s) / space.vpp
    all_s = moved_s - beside_s / space.vpp * (1.0 + (space.vpp - 1.0) * space.pp)
    return np.maximum(0.0, np.maximum(own_s, all_s))


def data_choices(job: Job, cluster: Cluster, space: Space, framework: Framework) -> tuple[Choice, ...]:
    """What NCCL runs for the dense gradients and parameters of one layout: reduced and scattered, then gathered.

    None on a torus, where it does not run, nor for one rank.
    """
    ranks, stride, dense = (
        int(space.sharers[0]),
        int(space.tp[0]),
        float(trained_on_chip(job, space).dense[0]),
    )
    if cluster.system.torus or ranks == 1:
        return ()
    wire = float(wire_column(space.compression, job.model, framework.sent_bytes(job.value_bytes))[0])
    back = float(_summed(job, space, framework)[0]) if space.zero[0] == 0 else job.value_bytes
    near = cluster.system.apart(stride)
    return (
        choose_collective(near, "reduce-scatter", wire * dense, ranks),
        choose_collective(near, "all-gather", back * dense, ranks),
    )


def compression_time(job: Job, cluster: Cluster, space: Space, framework: Framework, share: Share) -> Column:
    """Kernels that make gradients small and whole again [s]; each micro-batch where they are reduced in each."""
    num_micro = space.num_micro(job.global_batch)
    times = np.where(space.zero >= 3, num_micro, 1.0)
    moved = kernel_column(space.compression, job.model, framework.sent_bytes(job.value_bytes)) * share.total
    return times * moved / (STREAM_SHARE * cluster.chip.memory_bytes_per_s)
