"""Tables of the memory of a training step: by part, by stage, by tensor, and the changes that would fit."""

from __future__ import annotations

from datahall.answer import Cell, Column, Table
from datahall.answers.training.layout_option import Asked
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.memory.peak import PARTS, StageMemory
from datahall.training.memory.remedy import NAMES, Shortage
from datahall.training.step.micro_batch import sharding_of
from datahall.training.step.shard import saved_tensors, tensor_bytes
from datahall.training.step.step import Job

SHOWN = {**NAMES, "slack_bytes": "allocator slack", "outside_bytes": "communicators and context"}
MOST_TENSORS = 16


def stages_named(stage: StageMemory) -> str:
    """A run of stages for a person, counting from 0."""
    first, last = stage.run.first, stage.run.last
    return f"stage {first}" if first == last else f"stages {first}–{last}"


def by_part(stage: StageMemory) -> Table:
    """What takes the memory of one chip of a stage."""
    memory = stage.memory
    rows: list[tuple[Cell, ...]] = [
        (text, float(getattr(memory, name)[0]), float(getattr(memory, name)[0]) / memory.limit_bytes)
        for name, text in SHOWN.items()
    ]
    free = float(memory.headroom_bytes[0])
    rows.append(("free" if free >= 0 else "lacking", abs(free), abs(free) / memory.limit_bytes))
    return Table(
        title=f"one chip of {stages_named(stage)}, the fullest",
        columns=(Column("part"), Column("memory", "bytes"), Column("of the chip", "fraction")),
        rows=tuple(rows),
    )


def by_stage(stages: tuple[StageMemory, ...], peak: int) -> Table:
    """Every run of alike stages."""

    def row(stage: StageMemory) -> tuple[Cell, ...]:
        memory = stage.memory
        state = sum(float(getattr(memory, name)[0]) for name in PARTS[:3])
        rest = sum(float(getattr(memory, name)[0]) for name in ("working_bytes", "buffer_bytes"))
        return (
            stages_named(stage).split(" ")[1],
            stage.run.num_layers,
            stage.num_in_flight,
            state,
            float(memory.activation_bytes[0]),
            rest,
            float(memory.headroom_bytes[0]),
        )

    return Table(
        title="by stage",
        columns=(
            Column("stage"),
            Column("layers", "count"),
            Column("in flight", "count"),
            Column("state", "bytes"),
            Column("activations", "bytes"),
            Column("at work and buffers", "bytes"),
            Column("free", "bytes"),
        ),
        rows=tuple(row(stage) for stage in stages),
        marked=peak,
        note="in flight: micro-batches whose activations a stage holds at its fullest",
    )


def by_tensor(job: Job, asked: Asked, stage: StageMemory, books: Bookkeeping) -> Table:
    """Saved tensors of the fullest stage, largest first; the smallest together."""
    layout = asked.layout
    shard = sharding_of(layout)
    sizes: dict[str, float] = {}
    counts: dict[str, int] = {}
    for kind, count in stage.run.layers:
        for tensor in saved_tensors(job, kind, books, layout.recompute, layout.modules):
            one = float(tensor_bytes(tensor, float(layout.micro_batch), job.seq, shard))
            sizes[tensor.name] = sizes.get(tensor.name, 0.0) + count * one
            counts[tensor.name] = counts.get(tensor.name, 0) + count
    found = float(stage.memory.activation_bytes[0]) / max(stage.num_in_flight, 1e-9)
    if (rest := found - sum(sizes.values())) > 1.0 and not layout.offload:
        sizes["attention_output_before_exchange"] = rest
        counts["attention_output_before_exchange"] = stage.run.num_layers
    ranked = sorted(sizes, key=lambda name: -sizes[name])
    rows: list[tuple[Cell, ...]] = [
        (name.replace("_", " "), counts[name], sizes[name], sizes[name] * stage.num_in_flight)
        for name in ranked[:MOST_TENSORS]
    ]
    if small := sum(sizes[name] for name in ranked[MOST_TENSORS:]):
        rows.append((f"{len(ranked) - MOST_TENSORS} smaller", None, small, small * stage.num_in_flight))
    return Table(
        title="activations by tensor",
        columns=(
            Column("tensor"),
            Column("layers", "count"),
            Column("one micro-batch", "bytes"),
            Column("in flight", "bytes"),
        ),
        rows=tuple(rows),
    )


def changes(shortage: Shortage | None) -> tuple[Table, ...]:
    """Single changes and what they leave free, where something is lacking."""
    if shortage is None or not shortage.remedies:
        return ()
    rows = tuple(
        (one.change, "yes" if one.fits else "no", one.headroom_bytes, one.step_s) for one in shortage.remedies
    )
    return (
        Table(
            title="single changes on the same chips",
            columns=(Column("change"), Column("fits"), Column("free", "bytes"), Column("step", "s")),
            rows=rows,
            marked=0 if shortage.cheapest else None,
        ),
    )
