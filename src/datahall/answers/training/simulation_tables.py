"""The tables of a simulated training step: closed form beside simulation, exchange, synchronisation, stages."""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.answer import Cell, Column, StackChart, Table
from datahall.training.memory.bookkeeping import bookkeeping_of
from datahall.training.memory.peak import stage_memories
from datahall.training.pipeline.execution import OF_WHICH, PART_NAMES, Execution
from datahall.training.pipeline.orders import FULL, B, F, W
from datahall.units import fmt

MOST_STAGES = 16


def difference_table(run: Execution) -> Table:
    """Each part of the step as it was played and as the closed form has it."""
    mine, closed = run.parts, run.closed_parts
    rows: list[tuple[Cell, ...]] = []
    for name, label in PART_NAMES.items():
        played_s, closed_s = float(getattr(mine, name)), float(getattr(closed, name))
        if name in OF_WHICH:
            if played_s:
                rows.append((label, played_s, played_s / run.step_s, None, None))
        elif max(abs(played_s), abs(closed_s)) > 1e-9 * run.step_s:
            rows.append(
                (label, played_s, played_s / run.step_s, closed_s, (played_s - closed_s) / run.step_s)
            )
    rows.append(("step", run.step_s, 1.0, closed.step_s, 1.0 - closed.step_s / run.step_s))
    columns = (
        Column("part"),
        Column("simulated", "s"),
        Column("share", "fraction"),
        Column("closed form", "s"),
        Column("difference", "fraction"),
    )
    return Table(
        title=f"the step on its heaviest stage ({run.heaviest}), event by event and in closed form",
        columns=columns,
        rows=tuple(rows),
        marked=len(rows) - 1,
        note="Differences are shares of the simulated step.",
    )


def communication_table(run: Execution) -> Table:
    """What of the exchange is seen and what runs beside kernels."""
    parts, hidden = run.parts, run.hidden_s
    rows = [
        ("tensor and expert groups", parts.exchange_s, hidden["tensor"]),
        ("between stages", parts.messages_s, hidden["messages"]),
        ("gradients and parameters", parts.data_s, hidden["data"]),
    ]
    if hidden["parameters"]:
        rows.append(("parameters, every micro-batch", max(0.0, parts.beside_s), hidden["parameters"]))
    total = ("all", sum(row[1] for row in rows), sum(row[2] for row in rows))
    cells = tuple(
        (name, exposed, hid, exposed / run.step_s, hid / (exposed + hid) if exposed + hid else None)
        for name, exposed, hid in (*rows, total)
    )
    columns = (
        Column("exchange"),
        Column("exposed", "s"),
        Column("hidden", "s"),
        Column("share of step", "fraction"),
        Column("hidden part", "fraction"),
    )
    return Table(
        title="communication of the heaviest stage", columns=columns, rows=cells, marked=len(cells) - 1
    )


def synchronisation_table(run: Execution) -> Table:
    """The three costs of synchronisation of parallel simulation, and where they are in this step."""
    parts = run.parts
    rows = (
        ("barrier", "gradients and parameters, the slowest rank", parts.data_s + parts.slowest_s),
        ("message", "tensor, expert and pipeline exchange", parts.exchange_s + parts.messages_s),
        ("rollback's analogue: waiting", "pipeline bubble", parts.bubble_s),
        ("rollback's analogue: work done again", "recomputed forwards", parts.redone_s),
    )
    total_s = sum(row[2] for row in rows)
    columns = (Column("cost"), Column("what it is here"), Column("time", "s"), Column("share", "fraction"))
    cells = tuple((name, what, time_s, time_s / run.step_s) for name, what, time_s in rows)
    return Table(
        title="what synchronisation costs",
        columns=columns,
        rows=(*cells, ("all", "", total_s, total_s / run.step_s)),
        marked=len(cells),
    )


class MemoryView(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of a step by stage, as the answer shows it."""

    by_stage_bytes: tuple[float, ...]
    limit_bytes: float

    @property
    def fits(self) -> bool:
        return max(self.by_stage_bytes) <= self.limit_bytes

    @property
    def sentence(self) -> str:
        most, limit = max(self.by_stage_bytes), self.limit_bytes
        if self.fits:
            return f" The fullest stage takes {fmt(most, 'bytes', 3)} of {fmt(limit, 'bytes', 3)}."
        return (
            f" It would not fit: the fullest stage takes {fmt(most, 'bytes', 3)} of {fmt(limit, 'bytes', 3)}."
        )

    @property
    def results(self) -> dict[str, Cell]:
        most = max(self.by_stage_bytes)
        return {"memory_bytes": most, "headroom_bytes": self.limit_bytes - most}


def memory_of(run: Execution) -> MemoryView:
    """Peak memory of a chip on every stage."""
    found = stage_memories(
        run.job,
        run.cluster.chip,
        run.layout,
        bookkeeping_of(run.framework),
        schedule=run.plan.name,
    )
    held = run.plan.in_flight()
    taken: list[float] = []
    for one in found:
        activations = float(one.memory.activation_bytes[0])
        grows = float(one.memory.reserved_bytes[0] / one.memory.allocated_bytes[0])
        for stage in range(one.run.first, one.run.last + 1):  # alike but for what is in flight
            fewer = activations * (1.0 - float(held[stage] / held[one.run.first]))
            taken.append(float(one.memory.total_bytes[0]) - grows * fewer)
    return MemoryView(by_stage_bytes=tuple(taken), limit_bytes=float(found[0].memory.limit_bytes))


def stage_table(run: Execution, memory: MemoryView) -> Table:
    """Layers, work, idle time, activations in flight and memory of every stage."""
    plan, played = run.plan, run.slowest
    layers = run.stages.layers[plan.position].reshape(plan.num_stages, plan.num_chunks).sum(axis=1)
    held = plan.in_flight() * plan.num_stages / plan.num_parts  # chunks to micro-batches
    rows: list[tuple[Cell, ...]] = [
        (
            stage,
            int(layers[stage]),
            float(played.busy_s[stage]),
            float(played.idle_s[stage]) / played.kernels_s,
            float(held[stage]),
            memory.by_stage_bytes[stage],
        )
        for stage in range(plan.num_stages)
    ]
    shown = rows if len(rows) <= MOST_STAGES else [*rows[: MOST_STAGES // 2], *rows[-MOST_STAGES // 2 :]]
    columns = (
        Column("stage", "count"),
        Column("layers", "count"),
        Column("busy", "s"),
        Column("idle", "fraction"),
        Column("in flight", "count", "micro_batches_in_flight"),
        Column("memory", "bytes"),
    )
    left_out = (
        "" if len(shown) == len(rows) else f" {len(rows) - len(shown)} stages in the middle are left out."
    )
    return Table(
        title=f"stages under {plan.name}, {plan.num_micro} micro-batches",
        columns=columns,
        rows=tuple(shown),
        marked=None if len(rows) > MOST_STAGES else run.heaviest,
        note=f"In flight are micro-batches whose activations are held at the fullest moment.{left_out}",
    )


def stage_chart(run: Execution) -> StackChart:
    """A bar per stage: forward, backward, and the time it waits."""
    plan, played = run.plan, run.slowest
    own = played.end_s - played.start_s
    doubled = np.zeros_like(plan.joined)
    doubled[:, 1:] = plan.joined[:, :-1]
    both = plan.joined | doubled
    own = np.where(doubled, 0.0, own)

    def spent(*kinds: int) -> tuple[float, ...]:
        return tuple(np.where(np.isin(plan.kind, kinds) & ~both, own, 0.0).sum(axis=1).tolist())

    parts = {
        "forward": spent(F),
        "backward": spent(FULL, B),
        "weights": spent(W),
        "both at once": tuple(np.where(both, own, 0.0).sum(axis=1).tolist()),
        "waiting": tuple(played.idle_s.tolist()),
    }
    return StackChart(
        title="where the time of each stage goes",
        unit="s",
        rows=tuple(f"stage {stage}" for stage in range(plan.num_stages)),
        parts={name: values for name, values in parts.items() if any(values)},
    )
