"""What the chips of a replica send each other in one pass.

Tensor parallelism reduces the output of every block over the tp chips.  Attention ranks (dp) meet at the experts:
either all tokens are gathered on every chip and the outputs reduced and scattered back, or each token travels to the
chips of its experts and returns (all-to-all).  Pipeline stages pass the hidden state on.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.basis import Basis
from datahall.catalog.entries.model import Model
from datahall.cluster.groups import group_times, stage_times
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.constants import library
from datahall.fabric.collectives.crossing import leaving_bytes_per_s
from datahall.fabric.collectives.engine_all_reduce import (
    AllReduceTimes,
    CustomConstants,
    constants_of,
    serving_all_reduce_times,
)
from datahall.fabric.collectives.experts import Tokens, low_latency_time, normal_time
from datahall.fabric.collectives.host_staged import staged_link, staged_times
from datahall.fabric.collectives.system import System
from datahall.inference.engine.replica import Replica, replica_system
from datahall.inference.step.column import distinct
from datahall.inference.step.expert_load import imbalance
from datahall.silicon.calibration import weakest

Column = NDArray[np.float64]
ExpertKernels = Literal["low-deepep", "normal-deepep"]

MESSAGES_PER_DOUBLING, COUNTS_PER_DOUBLING = 16, 4  # sizes at which exchange is timed
LOW_LATENCY_TOKENS = 256  # of a rank: DeepEP's low-latency buffers are made for no more


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """Times of one pass by what is exchanged, as columns over the new tokens of a rank [s]."""

    tensor_s: Column
    expert_s: Column
    stage_s: Column  # from one pipeline stage to the next
    level: Basis

    @property
    def total_s(self) -> Column:
        """Of a pass through all layers, without the hops between stages."""
        return self.tensor_s + self.expert_s


def exchange(replica: Replica, num_tokens: Column) -> Exchange:
    """What one pass of so many new tokens per attention rank spends on sending [s]."""
    none = np.zeros_like(num_tokens)
    if replica.num_chips == 1:
        return Exchange(tensor_s=none, expert_s=none, stage_s=none, level="measured")
    model, system = replica.model, replica_system(replica)
    group = replica.tp * replica.dp
    row_bytes = model.hidden * replica.precision.wide_bytes_per_value
    meets = replica.dp > 1 and model.moe is not None
    num_reduced, num_expert = reduced_blocks(model, at_experts=not meets)
    levels: list[Basis] = ["measured"]
    tensor_s = none
    if replica.tp > 1:
        reduced = _reduced(replica, system, num_tokens * row_bytes)
        tensor_s = (num_reduced + 1) * reduced.time_s  # + 1: the embedding, cut by vocabulary
        levels.append(reduced.level)
    expert_s = num_expert * _experts(replica, system, num_tokens) if meets else none
    stage_s = none
    if replica.pp > 1:
        system.shape(replica.num_chips)  # stages that leave the domain need a network
        stage_s = _to_the_next(system, num_tokens * row_bytes / replica.tp, replica.pp, group)
    if meets or replica.pp > 1:
        levels.append(system.level(max(2, group)))
    level = weakest(levels)
    return Exchange(tensor_s=tensor_s, expert_s=expert_s, stage_s=stage_s, level=level)


def gather_logits(replica: Replica, num_rows: Column) -> Column:
    """The shares of the vocabulary brought together on each of the tp chips [s]."""
    if replica.tp == 1:
        return np.zeros_like(num_rows)
    size = num_rows * replica.model.vocab * replica.precision.wide_bytes_per_value
    system = replica_system(replica)
    return _group(system, "all-gather", size, replica.tp, link=_staged_link(replica, system))


def _staged_link(replica: Replica, system: System) -> float:
    """What a card reaches through host memory; 0 where cards need not [B/s]."""
    return 0.0 if replica.peer_to_peer else staged_link(system, replica.engine.stack).bytes_per_s


def _reduced(replica: Replica, system: System, size_bytes: Column) -> AllReduceTimes:
    if not replica.peer_to_peer:
        link = staged_link(system, replica.engine.stack)
        return AllReduceTimes(
            staged_times("all-reduce", size_bytes, replica.tp, link.bytes_per_s), link.level
        )
    return all_reduce(system, size_bytes, replica.tp, replica.engine.stack)


def all_reduce(system: System, size_bytes: Column, num_ranks: int, stack: str) -> AllReduceTimes:
    """A reduction as an engine of that stack does it; the one place that knows which kernels run [s]."""
    return serving_all_reduce_times(system, size_bytes, num_ranks, stack)


def reduced_blocks(model: Model, *, at_experts: bool) -> tuple[int, int]:
    """Blocks whose output is reduced over tp, and layers whose tokens meet at the experts instead."""
    num_mixers = sum(layer.mixer != "none" for layer in model.layers)
    num_dense = sum(layer.mlp == "dense" for layer in model.layers)
    num_moe = sum(layer.mlp == "moe" for layer in model.layers)
    if model.parallel_block:  # attention and MLP are added before one reduction
        num_mixers = 0
    return num_mixers + num_dense + (num_moe if at_experts else 0), 0 if at_experts else num_moe


def own_all_reduce(replica: Replica) -> CustomConstants | None:
    """The constants of an engine's own all-reduce over the tp chips; None where the library or the host does it."""
    system = replica_system(replica)
    if not replica.peer_to_peer or replica.tp > system.num_domain:
        return None
    found = constants_of(system, replica.engine.stack)
    return found[0] if found is not None and replica.tp <= found[0].most_ranks else None


def by_all_to_all(replica: Replica) -> bool:
    """Whether each token travels to the chips of its experts, instead of to all."""
    how, across = replica.engine.expert_exchange, replica.tp * replica.dp > replica_system(replica).num_domain
    return how == "all-to-all" or (how == "auto" and across and replica.ep > 1)


def _experts(replica: Replica, system: System, num_tokens: Column) -> Column:
    """One layer whose tokens meet at the experts, there and back [s]."""
    if by_all_to_all(replica):
        return _all_to_all(replica, system, num_tokens)
    size = num_tokens * replica.dp * replica.model.hidden * replica.precision.wide_bytes_per_value
    ranks = replica.dp * replica.tp
    link = _staged_link(replica, system)
    return _group(system, "all-gather", size, ranks, link=link) + _group(
        system, "reduce-scatter", size, ranks, link=link
    )


def _all_to_all(replica: Replica, system: System, num_tokens: Column) -> Column:
    """Dispatch, narrow where activations are, and combine; the busiest rank is last [s]."""
    assert replica.model.moe is not None
    wide = replica.precision.wide_bytes_per_value
    narrow = 1.0 if replica.precision.quantises_activations else wide
    counts = num_tokens / replica.tp * imbalance(replica, num_tokens)
    sizes = distinct(np.append(grid(counts, COUNTS_PER_DOUBLING), LOW_LATENCY_TOKENS))
    times = [_phase(replica, system, one, narrow) + _phase(replica, system, one, wide) for one in sizes]
    return np.interp(counts, sizes, times)


def _phase(replica: Replica, system: System, num_tokens: float, value_bytes: float) -> float:
    """One way: the low-latency kernels while their buffers hold the tokens, the normal ones for more.

    Normal kernels send a token once to a node and so fewer bytes, but begin by exchanging counts, for which the host
    waits.  Their public rows leave that out: with it they are taken to be no faster than what the buffers hold.
    """
    held = _kernels("low-deepep", replica, system, min(num_tokens, LOW_LATENCY_TOKENS), value_bytes)
    if num_tokens <= LOW_LATENCY_TOKENS:
        return held
    return max(held, _kernels("normal-deepep", replica, system, num_tokens, value_bytes))


def _kernels(
    name: ExpertKernels, replica: Replica, system: System, num_tokens: float, value_bytes: float
) -> float:
    model, moe = replica.model, replica.model.moe
    assert moe is not None
    num_ranks = replica.tp * replica.dp
    run = low_latency_time if name == "low-deepep" else normal_time
    return run(
        library().experts[name],
        Tokens(
            num_tokens=num_tokens,
            hidden=float(model.hidden),
            top_k=float(moe.top_k),
            bytes_per_value=value_bytes,
        ),
        num_ranks=num_ranks,
        num_inside=min(num_ranks, system.num_domain),
        scale_up_bytes_per_s=system.scale_up_bytes_per_s,
        nic_bytes_per_s=leaving_bytes_per_s(system, num_ranks),
    ).time_s


def _group(
    system: System,
    collective: Collective,
    size_bytes: Column,
    num_ranks: int,
    link: float,
) -> Column:
    """Times of a collective of the library, found at a few sizes and read between them [s].

    With a `link`, cards send through host memory at that rate [B/s].
    """
    if link:
        return staged_times(collective, size_bytes, num_ranks, link)
    sizes = grid(size_bytes, MESSAGES_PER_DOUBLING)
    times = group_times(system, collective, sizes, _full(sizes, num_ranks), _full(sizes, 1))
    return np.interp(size_bytes, sizes, times)


def _to_the_next(system: System, size_bytes: Column, num_stages: int, chips: int) -> Column:
    """Times of a message from a stage of so many chips to the next, likewise [s]."""
    sizes = grid(size_bytes, MESSAGES_PER_DOUBLING)
    times = stage_times(system, sizes, _full(sizes, num_stages), _full(sizes, chips))
    return np.interp(size_bytes, sizes, times)


def grid(values: Column, per_doubling: int) -> Column:
    """Points around some values, the same whatever other values are asked about.

    >>> grid(np.array([3.0, 5.0]), 1), grid(np.array([4.0]), 1)
    (array([2., 4., 8.]), array([4.]))
    """
    place = per_doubling * np.log2(values)
    return np.asarray(2.0 ** (np.arange(np.floor(place.min()), np.ceil(place.max()) + 1) / per_doubling))


def _full(like: Column, value: float) -> Column:
    return np.full(like.shape, float(value))
