"""The tables of a simulated training step: closed form beside simulation, exchange, synchronisation, stages."""

from __future__ import annotations

from datahall.answer import Cell, Column, StackChart, Table
from datahall.counted import counted
from datahall.training.pipeline.account import (
    exchange_account,
    idle_fractions,
    parts_account,
    waiting_account,
)
from datahall.training.pipeline.execution import Execution
from datahall.training.pipeline.orders import FULL, B, F, W
from datahall.training.pipeline.step_memory import StepMemory

MOST_STAGES = 16
AT_EITHER_END = 8  # stages shown where there are more
EXCHANGES = {
    "tensor": "tensor, context and expert groups",
    "messages": "between stages",
    "data": "gradients and parameters",
    "parameters": "parameters, every micro-batch",
    "all": "all",
}
COSTS = {
    "barrier": ("barrier", "gradients and parameters, the slowest rank"),
    "message": ("message", "tensor, expert and pipeline exchange"),
    "waiting": ("pipeline bubble", "stages that wait for a micro-batch"),
    "again": ("recomputation", "forwards that are run again"),
    "all": ("all", ""),
}


def difference_table(run: Execution) -> Table:
    """Each part of the step as it was simulated and as the closed form has it."""
    rows = tuple(
        (part.label, part.simulated_s, part.share_fraction, part.closed_s, part.difference_fraction)
        for part in parts_account(run)
    )
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
        rows=rows,
        marked=len(rows) - 1,
        note="Differences are shares of the simulated step.",
    )


def communication_table(run: Execution) -> Table:
    """What of the exchange is seen and what runs beside kernels."""
    rows = tuple(
        (EXCHANGES[one.name], one.exposed_s, one.hidden_s, one.share_fraction, one.hidden_fraction)
        for one in exchange_account(run)
    )
    columns = (
        Column("exchange"),
        Column("exposed", "s"),
        Column("hidden", "s"),
        Column("share of step", "fraction"),
        Column("hidden part", "fraction"),
    )
    return Table(
        title="communication of the heaviest stage", columns=columns, rows=rows, marked=len(rows) - 1
    )


def synchronisation_table(run: Execution) -> Table:
    """The three costs of synchronisation of parallel simulation, and where they are in this step."""
    rows = tuple((*COSTS[one.name], one.time_s, one.share_fraction) for one in waiting_account(run))
    columns = (Column("cost"), Column("what it is here"), Column("time", "s"), Column("share", "fraction"))
    return Table(title="what synchronisation costs", columns=columns, rows=rows, marked=len(rows) - 1)


def stage_table(run: Execution, memory: StepMemory) -> Table:
    """Layers, work, idle time, activations in flight and memory of every stage."""
    idle = idle_fractions(run)
    rows: list[tuple[Cell, ...]] = [
        (
            stage,
            run.stage_layers[stage],
            float(run.slowest.busy_s[stage]),
            idle[stage],
            run.in_flight[stage],
            memory.by_stage_bytes[stage],
        )
        for stage in range(run.plan.num_stages)
    ]
    shown = rows if len(rows) <= MOST_STAGES else [*rows[:AT_EITHER_END], *rows[-AT_EITHER_END:]]
    columns = (
        Column("stage", "count"),
        Column("layers", "count"),
        Column("busy", "s"),
        Column("idle", "fraction"),
        Column("in flight", "count", "micro_batches_in_flight"),
        Column("memory", "bytes"),
    )
    left_out = (
        ""
        if len(shown) == len(rows)
        else f" {len(rows) - len(shown):,} of the stages, in the middle, are left out."
    )
    return Table(
        title=f"stages under {run.plan.name}, {counted(run.plan.num_micro, 'micro-batch')}",
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
