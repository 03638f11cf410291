"""The state of a stage whose weights are frozen: they in their own format, and adapters with gradients and optimizer.

weights    frozen, and adapters;  under ZeRO-3 a share of both, and what is gathered: two of the largest units
gradients  of the adapters alone
optimizer  of the adapters alone
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datahall.training.adapters.adapters import FrozenBytes, frozen_bytes, frozen_layer
from datahall.training.layout.columns import Column, Space
from datahall.training.pipeline.table import order_of
from datahall.training.step.compression import kept_column
from datahall.training.step.stage import Run, num_tables
from datahall.workload.adapters.count import adapter_widths
from datahall.workload.memory.state import ChipParameters, state_bytes
from datahall.workload.sharding import Sharding

if TYPE_CHECKING:
    from datahall.training.memory.bookkeeping import Bookkeeping
    from datahall.training.step.step import Job


class Held(NamedTuple):
    """Values on one chip of a stage, before ZeRO."""

    linear: Column  # frozen, and quantised where weights are
    wide: Column  # frozen, never quantised
    expert: Column
    adapters: Column

    def bytes_of(self, each: FrozenBytes) -> tuple[Column, Column]:
        """What is frozen of all besides experts, and of experts [B]."""
        return each.linear_bytes * self.linear + each.wide_bytes * self.wide, each.linear_bytes * self.expert


def held(job: Job, rows: Space, run: Run, head_values: Column, schedule: str) -> Held:
    """What the stage is made of."""
    assert job.adapters is not None
    copies, none = float(order_of(schedule).num_copies), np.zeros(len(rows))
    linear, wide, expert, adapters = none, none, none, none
    for kind, count in run.layers:
        frozen = frozen_layer(job.model, kind)
        widths = adapter_widths(job.model, kind, job.adapters.targets, Sharding(tp=rows.tp))
        linear = linear + count * (frozen.num_sharded / rows.tp + frozen.num_latent)
        wide = wide + count * frozen.num_whole
        expert = expert + count * frozen.num_expert / rows.expert_ways
        adapters = adapters + count * job.adapters.rank * widths
    wide = wide + num_tables(job.model, rows, run) * head_values
    return Held(copies * linear, copies * wide, copies * expert, copies * adapters)


def largest_unit(job: Job, rows: Space, run: Run, head_values: Column, each: FrozenBytes) -> Column:
    """The layer of a stage, or its tables, that take the most where they are whole [B]: what is gathered at once."""
    sizes = [num_tables(job.model, rows, run) * head_values * each.wide_bytes]
    for kind, _ in run.layers:
        frozen = frozen_layer(job.model, kind)
        linear = frozen.num_sharded / rows.tp + frozen.num_latent + frozen.num_expert / rows.expert_ways
        sizes.append(each.linear_bytes * linear + each.wide_bytes * frozen.num_whole)
    return np.asarray(np.max(np.broadcast_arrays(*sizes), axis=0))


def tuned_state(
    job: Job, rows: Space, run: Run, books: Bookkeeping, head_values: Column, schedule: str
) -> dict[str, Column]:
    """Weights, gradients and optimizer of one chip."""
    here, each = held(job, rows, run, head_values, schedule), frozen_bytes(job, books)
    dense, expert = here.bytes_of(each)
    shared = rows.zero >= 3
    frozen = dense / np.where(shared, rows.sharers, 1.0) + expert / np.where(shared, rows.expert_sharers, 1.0)
    trained = state_bytes(ChipParameters(here.adapters, 0.0), books.recipe, zero=rows.zero, dp=rows.sharers)
    gathered = np.minimum(dense + expert, 2.0 * largest_unit(job, rows, run, head_values, each))
    spread = np.where(shared, gathered, 0.0)  # of one sharer the next line takes none
    weights = np.minimum(frozen + spread, dense + expert)
    weights = np.where(rows.offloaded("parameters") > 0, np.minimum(weights, gathered), weights)
    return {
        "weight_bytes": weights + trained.weight_bytes,
        "gradient_bytes": trained.gradient_bytes + kept_column(rows.compression) * here.adapters,
        "optimizer_bytes": np.where(rows.offloaded("optimizer") > 0, 0.0, trained.optimizer_bytes),
    }
