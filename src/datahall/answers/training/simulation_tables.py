"""The tables of a simulated training step: closed form beside simulation, exchange, synchronisation, stages."""

from __future__ import annotations

from datahall.answer import Cell, Column, StackChart, Table
from datahall.training.pipeline.execution import OF_WHICH, PART_NAMES, Execution
from datahall.training.pipeline.orders import FULL, B, F, W
from datahall.training.pipeline.step_memory import StepMemory

MOST_STAGES = 16


def difference_table(run: Execution) -> Table:
    """Each part of the step as it was simulated and as the closed form has it."""
    mine, closed = run.parts, run.closed_parts
    rows: list[tuple[Cell, ...]] = []
    for name, label in PART_NAMES.items():
        simulated_s, closed_s = float(getattr(mine, name)), float(getattr(closed, name))
        if name in OF_WHICH:
            if simulated_s:
                rows.append((label, simulated_s, simulated_s / run.step_s, None, None))
        elif max(abs(simulated_s), abs(closed_s)) > 1e-9 * run.step_s:
            rows.append(
                (
                    label,
                    simulated_s,
                    simulated_s / run.step_s,
                    closed_s,
                    (simulated_s - closed_s) / run.step_s,
                )
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


def stage_table(run: Execution, memory: StepMemory) -> Table:
    """Layers, work, idle time, activations in flight and memory of every stage."""
    slowest = run.slowest
    rows: list[tuple[Cell, ...]] = [
        (
            stage,
            run.stage_layers[stage],
            float(slowest.busy_s[stage]),
            float(slowest.idle_s[stage]) / slowest.kernels_s,
            run.in_flight[stage],
            memory.by_stage_bytes[stage],
        )
        for stage in range(run.plan.num_stages)
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
    num_micro = run.plan.num_micro
    return Table(
        title=f"stages under {run.plan.name}, {num_micro} micro-batch{'es' if num_micro != 1 else ''}",
        columns=columns,
        rows=tuple(shown),
        marked=None if len(rows) > MOST_STAGES else run.heaviest,
        note=f"In flight are micro-batches whose activations are held at the fullest moment.{left_out}",
    )


def stage_chart(run: Execution) -> StackChart:
    """A bar per stage: forward, backward, and the time it waits."""
    slowest = run.slowest
    parts = {
        "forward": tuple(slowest.spent_s(F).tolist()),
        "backward": tuple(slowest.spent_s(FULL, B).tolist()),
        "weights": tuple(slowest.spent_s(W).tolist()),
        "both at once": tuple(slowest.together_s.tolist()),
        "waiting": tuple(slowest.idle_s.tolist()),
    }
    return StackChart(
        title="where the time of each stage goes",
        unit="s",
        rows=tuple(f"stage {stage}" for stage in range(run.plan.num_stages)),
        parts={name: values for name, values in parts.items() if any(values)},
    )
