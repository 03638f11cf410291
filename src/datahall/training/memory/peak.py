"""Peak memory of a training step per chip, for every layout of a space and for every stage of one layout.

    peak = state + in flight · Σ layers kept + the widest moment at work + buffers
    state    weights, gradients and optimizer under ZeRO; experts have their own number of replicas
    moment   backward of a layer (recomputed tensors and gradients in hand), or on the last stage loss and head
    total    = peak · (1 + slack of the allocator) + communicators + context

References: Rajbhandari et al. (2020), ZeRO; Korthikanti et al. (2022), Reducing Activation Recomputation.
"""

from __future__ import annotations

from math import isfinite

import msgspec
import numpy as np

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Layer, Model
from datahall.scenario.sections.training import USUAL_SCHEDULE
from datahall.training.adapters.adapters import mean_frozen_bytes, trained_parameters
from datahall.training.adapters.state import tuned_state
from datahall.training.layout.columns import Column, Space, unique_rows
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.pipeline.table import order_of
from datahall.training.step.compression import kept_column
from datahall.training.step.shard import (
    ShardBytes,
    placeholder_values,
    shard_bytes,
    stage_parameters,
)
from datahall.training.step.stage import Run, in_flight, num_tables, stage_runs
from datahall.training.step.step import Job
from datahall.workload.memory.state import ChipParameters, state_bytes
from datahall.workload.parameters import count_parameters, layer_parameters

PARTS = (
    "weight_bytes",
    "gradient_bytes",
    "optimizer_bytes",
    "activation_bytes",
    "working_bytes",
    "buffer_bytes",
)
VOCAB_ROWS = 128.0  # Megatron pads its tables to this many rows per tensor-parallel chip


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What the fullest stage of each layout takes on one chip, as columns [B]."""

    stage: Column  # the stage that peaks
    weight_bytes: Column
    gradient_bytes: Column
    optimizer_bytes: Column
    activation_bytes: Column  # saved tensors of all micro-batches in flight
    working_bytes: Column  # loss and head, or the layer whose backward runs
    buffer_bytes: Column  # gradient placeholders and library workspaces
    slack_bytes: Column
    outside_bytes: Column  # communicators and context, which the allocator does not see
    limit_bytes: float

    @property
    def allocated_bytes(self) -> Column:
        """What `torch.cuda.max_memory_allocated` would say."""
        return np.asarray(sum(getattr(self, name) for name in PARTS))

    @property
    def reserved_bytes(self) -> Column:
        """What `torch.cuda.max_memory_reserved` would say."""
        return self.allocated_bytes + self.slack_bytes

    @property
    def total_bytes(self) -> Column:
        """What `nvidia-smi` would say."""
        return self.reserved_bytes + self.outside_bytes

    @property
    def headroom_bytes(self) -> Column:
        """What is left of the chip; below zero it does not fit."""
        return self.limit_bytes - self.total_bytes


class StageMemory(msgspec.Struct, frozen=True, kw_only=True):
    """One run of alike stages of one layout."""

    run: Run
    memory: Memory
    num_in_flight: float
    holds_head: bool

    def taken(self, *names: str) -> float:
        """What some parts, slack or what is outside take together on a chip [B]."""
        return sum(float(getattr(self.memory, name)[0]) for name in names)

    def share(self, *names: str) -> float:
        """The same over the memory of the chip."""
        return self.taken(*names) / self.memory.limit_bytes

    @property
    def total_bytes(self) -> float:
        return self.taken("total_bytes")

    @property
    def headroom_bytes(self) -> float:
        """What is left of the chip; below zero it is lacking."""
        return self.taken("headroom_bytes")

    @property
    def free_bytes(self) -> float:
        return max(0.0, self.headroom_bytes)

    @property
    def used_ratio(self) -> float:
        """What is taken over what the chip has."""
        return self.share("total_bytes")

    @property
    def state_bytes(self) -> float:
        """Weights, gradients and optimizer."""
        return self.taken("weight_bytes", "gradient_bytes", "optimizer_bytes")

    @property
    def largest(self) -> str:
        """The part that takes the most."""
        return max(PARTS, key=self.taken)

    def share_of_used(self, name: str) -> float:
        """A part over all that is taken."""
        return self.taken(name) / self.total_bytes


def chip_memory_bytes(chip: Chip) -> float:
    """Memory that a process can have [B]: as the driver reports it, else as sold."""
    return chip.visible_memory_bytes if isfinite(chip.visible_memory_bytes) else chip.memory_bytes


def peak_memory(
    job: Job, chip: Chip, space: Space, books: Bookkeeping, *, schedule: str = USUAL_SCHEDULE
) -> Memory:
    """The fullest stage of every layout of a space."""
    shards = shard_bytes(job, space, books)
    num_micro = space.num_micro(job.global_batch)
    best = {name: np.zeros(len(space)) for name in ("stage", *PARTS)}
    highest = np.full(len(space), -1.0)
    cuts, index = unique_rows((space.pp, space.vpp, space.split))
    order = np.argsort(index, kind="stable")
    bounds = np.searchsorted(index[order], np.arange(len(cuts) + 1))
    for place, (pp, vpp, split) in enumerate(cuts):
        here = order[bounds[place] : bounds[place + 1]]
        rows, sums = space.keep(here), _taken(shards, here)
        for run in stage_runs(job.model, int(pp), int(vpp), space.splits[int(split)]):
            parts = _stage(job, rows, sums, num_micro[here], run, books, schedule)
            total = np.asarray(sum(parts.values()))
            fuller = total > highest[here]
            at = here[fuller]
            highest[at] = total[fuller]
            best["stage"][at] = run.first
            for name in PARTS:
                best[name][at] = parts[name][fuller]
    return _memory(best, space, chip, books)


def stage_memories(
    job: Job, chip: Chip, layout: Layout, books: Bookkeeping, *, schedule: str = USUAL_SCHEDULE
) -> tuple[StageMemory, ...]:
    """Every run of alike stages of one layout, first to last."""
    space = Space.of(layout)
    shards, num_micro = shard_bytes(job, space, books), space.num_micro(job.global_batch)
    found = []
    for run in stage_runs(job.model, layout.pp, layout.vpp, layout.split):
        parts = _stage(job, space, shards, num_micro, run, books, schedule)
        held = in_flight(schedule, num_micro, space.pp, space.vpp, run.first)
        found.append(
            StageMemory(
                run=run,
                memory=_memory(parts | {"stage": np.array([float(run.first)])}, space, chip, books),
                num_in_flight=float(held[0]),
                holds_head=run.last == layout.pp - 1,
            )
        )
    return tuple(found)


def fullest(stages: tuple[StageMemory, ...]) -> int:
    """The place of the run of stages whose chips take the most."""
    return max(range(len(stages)), key=lambda place: float(stages[place].memory.total_bytes[0]))


def _memory(parts: dict[str, Column], space: Space, chip: Chip, books: Bookkeeping) -> Memory:
    allocated = np.asarray(sum(parts[name] for name in PARTS))
    return Memory(
        **parts,
        slack_bytes=allocated * books.slack_fraction,
        outside_bytes=books.context_bytes + books.group_bytes * num_groups(space),
        limit_bytes=chip_memory_bytes(chip),
    )


def num_groups(space: Space) -> Column:
    """Communicators of a chip: one for each degree above 1."""
    degrees = ("tp", "cp", "dp", "pp", "ep")
    return np.asarray(sum(np.asarray(getattr(space, name) > 1, dtype=np.float64) for name in degrees))


def _taken(shards: ShardBytes, here: np.ndarray[tuple[int], np.dtype[np.intp]]) -> ShardBytes:
    def take(columns: dict[Layer, Column]) -> dict[Layer, Column]:
        return {kind: column[here] for kind, column in columns.items()}

    return ShardBytes(
        kept=take(shards.kept),
        redone=take(shards.redone),
        in_hand=take(shards.in_hand),
        widened=take(shards.widened),
        at_loss=shards.at_loss[here],
        at_head=shards.at_head[here],
    )


def _stage(
    job: Job, rows: Space, shards: ShardBytes, num_micro: Column, run: Run, books: Bookkeeping, schedule: str
) -> dict[str, Column]:
    """The parts of one stage; the first of a run, which holds the most."""
    last = np.asarray(rows.pp - 1 == run.last)
    head_values = table_values(job.model, rows, books)
    kept = np.asarray(sum(count * shards.kept[kind] for kind, count in run.layers))
    held = in_flight(schedule, num_micro, rows.pp, rows.vpp, run.first)
    # offloaded, two layers stay: one on its way and the one at work
    near = 2.0 * _highest([shards.kept[kind] for kind, _ in run.layers], len(rows))
    stays = np.where(rows.offloaded("activations") > 0, np.minimum(held * kept, near), held * kept)
    layer = _highest(
        [shards.redone[kind] + shards.in_hand[kind] + shards.widened[kind] for kind, _ in run.layers],
        len(rows),
    )
    trained = job.adapters is None
    head_copy = job.value_bytes * head_values if books.placeholders and trained else 0.0
    working = np.where(last, np.maximum(np.maximum(shards.at_loss, shards.at_head + head_copy), layer), layer)
    kinds = tuple(kind for kind, _ in run.layers)
    copies = (
        job.value_bytes * placeholder_values(job.model, kinds) / rows.tp
        if books.placeholders and trained
        else 0.0
    )
    parts = {
        **(_state if trained else tuned_state)(job, rows, run, books, head_values, schedule),
        "activation_bytes": stays,
        "working_bytes": working,
        "buffer_bytes": np.zeros(len(rows)) + copies + books.buffers(job.value_bytes),
    }
    if not books.frees_gradients:
        return parts
    one = _highest([shards.kept[kind] for kind, _ in run.layers], len(rows))
    return _freed(parts, alone=last & (rows.pp == 1) & (num_micro == 1), one_layer=one, backward=layer)


def _freed(
    parts: dict[str, Column],
    *,
    alone: np.ndarray[tuple[int], np.dtype[np.bool_]],
    one_layer: Column,
    backward: Column,
) -> dict[str, Column]:
    """The higher of two moments where a step has one micro-batch: its loss, when no gradient exists yet, and the end of
    its backward, when all do and one layer's tensors are left."""
    early = parts["activation_bytes"] + parts["working_bytes"]
    late = parts["gradient_bytes"] + one_layer + backward
    at_end = alone & (late > early)
    return parts | {
        "gradient_bytes": np.where(alone & ~at_end, 0.0, parts["gradient_bytes"]),
        "activation_bytes": np.where(at_end, one_layer, parts["activation_bytes"]),
        "working_bytes": np.where(at_end, backward, parts["working_bytes"]),
    }


def _state(
    job: Job, rows: Space, run: Run, books: Bookkeeping, head_values: Column, schedule: str
) -> dict[str, Column]:
    """Weights, gradients and optimizer; under ZeRO-2 and 3 with what is gathered or not yet spread."""
    sharded, replicated, expert = stage_parameters(job.model, run.layers)
    tables = num_tables(job.model, rows, run)
    copies = float(order_of(schedule).num_copies)
    chip = ChipParameters(
        copies * (sharded / rows.tp + replicated + tables * head_values),
        copies * expert / rows.expert_ways,
    )
    replicas = rows.sharers
    state = state_bytes(chip, books.recipe, zero=rows.zero, dp=replicas, expert_dp=rows.expert_sharers)
    whole = np.asarray(chip.dense + chip.expert)
    unit = unit_parameters(job.model, rows, run, books)
    gathered = np.minimum(job.value_bytes * whole, 2.0 * job.value_bytes * unit)
    bucket = books.recipe.gradient * np.minimum(np.minimum(whole, unit), books.bucket_values)
    spread, shared = rows.zero >= 2, rows.zero >= 3
    weights = np.asarray(state.weight_bytes) + np.where(shared & (replicas > 1), gathered, 0.0)
    gradients = np.asarray(state.gradient_bytes) + np.where(spread & (replicas > 1), bucket, 0.0)
    # no more than all weights, and beside wide ones the copies they are multiplied as
    most = books.recipe.with_copies(job.value_bytes)
    fetched = np.where(rows.offloaded("parameters") > 0, np.minimum(weights, gathered), weights)
    error = kept_column(rows.compression) * whole  # what compression fed back has to be kept
    stays = np.where(rows.offloaded("optimizer") > 0, 0.0, 1.0)
    return {
        "weight_bytes": np.minimum(fetched, most * whole),
        "gradient_bytes": np.minimum(gradients, books.recipe.gradient * whole) + error,
        "optimizer_bytes": stays * np.asarray(state.optimizer_bytes),
    }


def table_values(model: Model, rows: Space, books: Bookkeeping) -> Column:
    """Values of the token table or the head on one chip."""
    step = VOCAB_ROWS * rows.tp if books.pads_vocab else rows.tp
    return np.ceil(model.vocab / step) * step / rows.tp * model.hidden


def unit_parameters(model: Model, rows: Space, run: Run, books: Bookkeeping) -> Column:
    """Parameters on one chip of the largest layer of a stage, or of its tables: what is gathered at once."""
    sizes = []
    for kind, _ in run.layers:
        each = layer_parameters(model, kind)
        sizes.append(each.sharded / rows.tp + each.replicated + each.expert / rows.expert_ways)
    tables = num_tables(model, rows, run) * table_values(model, rows, books)
    return np.maximum(_highest(sizes, len(rows)), tables)


def _highest(columns: list[Column], length: int) -> Column:
    return np.max(columns, axis=0) if columns else np.zeros(length)


def least_state_bytes(job: Job, num_chips: int, books: Bookkeeping) -> float:
    """Training state of one chip if everything were spread evenly over all of them [B]: no layout takes less."""
    if job.adapters is None:
        return books.recipe.total * count_parameters(job.model).total / num_chips
    counts, (dense, expert) = count_parameters(job.model), mean_frozen_bytes(job, books)
    frozen = dense * (counts.total - counts.expert) + expert * counts.expert
    return (frozen + books.recipe.total * trained_parameters(job)) / num_chips
