"""Tables of the memory of a training step: by part, by stage, by tensor, and the changes that would fit."""

from __future__ import annotations

from datahall.answer import Cell, Column, Table
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.memory.peak import StageMemory
from datahall.training.memory.remedy import NAMES, Shortage
from datahall.training.memory.tensors import ranked, stage_tensors
from datahall.training.step.step import Job

SHOWN = {**NAMES, "slack_bytes": "allocator slack", "outside_bytes": "communicators and context"}
MOST_TENSORS = 16


def stages_named(stage: StageMemory) -> str:
    """A run of stages for a person, counting from 0."""
    first, last = stage.run.first, stage.run.last
    return f"stage {first}" if first == last else f"stages {first}–{last}"


def by_part(stage: StageMemory) -> Table:
    """What takes the memory of one chip of a stage."""
    rows: list[tuple[Cell, ...]] = [
        (text, stage.taken(name), stage.share(name)) for name, text in SHOWN.items()
    ]
    left = "free" if stage.headroom_bytes >= 0 else "lacking"
    rows.append((left, abs(stage.headroom_bytes), abs(stage.share("headroom_bytes"))))
    return Table(
        title=f"one chip of {stages_named(stage)}, the fullest",
        columns=(Column("part"), Column("memory", "bytes"), Column("of the chip", "fraction")),
        rows=tuple(rows),
    )


def by_stage(stages: tuple[StageMemory, ...], peak: int) -> Table:
    """Every run of alike stages."""

    def row(stage: StageMemory) -> tuple[Cell, ...]:
        return (
            stages_named(stage).split(" ")[1],
            stage.run.num_layers,
            stage.num_in_flight,
            stage.state_bytes,
            stage.taken("activation_bytes"),
            stage.taken("working_bytes", "buffer_bytes"),
            stage.headroom_bytes,
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


def by_tensor(job: Job, layout: Layout, stage: StageMemory, books: Bookkeeping) -> Table:
    """Saved tensors of the fullest stage, largest first; the smallest together."""
    found = ranked(stage_tensors(job, layout, stage, books), MOST_TENSORS)
    rows: list[tuple[Cell, ...]] = [
        (one.name.replace("_", " "), one.num_layers, one.size_bytes, one.held_bytes) for one in found.largest
    ]
    if found.smaller:
        rows.append((f"{len(found.smaller)} smaller", None, found.smaller_bytes, found.smaller_held_bytes))
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
