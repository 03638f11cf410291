"""Tables of what a run may do instead: go on without a replica, and notice corruption in another way."""

from __future__ import annotations

import msgspec

from datahall.answer import Column, Quantity, Table
from datahall.counted import counted
from datahall.reliability.corruption import ways_to_notice
from datahall.reliability.elastic import num_away, ways_to_shrink
from datahall.reliability.run import Run, num_groups
from datahall.scenario.sections.operations.run import Recovering
from datahall.units import fmt


def tolerance_tables(asked: Recovering, run: Run) -> tuple[Table, ...]:
    """How batch and learning rate follow a lost replica, and how corruption is noticed, where a run does either."""
    return (
        *((_shrinking(asked, run),) if run.recovery.elastic else ()),
        *((_noticing(asked, run),) if asked.sdc else ()),
    )


def _shrinking(asked: Recovering, run: Run) -> Table:
    away = num_away(run.job.layout, run.job.num_node_chips)
    ways = ways_to_shrink(num_groups(run.job), run.job.setup.num_micro, run.restart_s, asked.stall_s)
    return Table(
        title=f"while {counted(away, 'replica')} {'are' if away > 1 else 'is'} away",
        columns=(
            Column("batch"), Column("its size", "fraction"), Column("learning rate", "fraction"),
            Column("micro-batches", "count"), Column("step", "ratio"), Column("tokens a second", "fraction"),
            Column("a failure costs", "s"),
        ),
        rows=tuple(
            (
                way.rule, way.step.batch_ratio, way.step.learning_rate_ratio, way.step.num_micro_batches,
                way.step.step_ratio, way.step.throughput_ratio, way.loss_s,
            )
            for way in ways
        ),
        marked=next(index for index, way in enumerate(ways) if way.rule == asked.elastic),
        note=f"of {run.job.layout.dp:,} replicas, for {fmt(run.restart_s, 's', 3)}; the batch grows back as it shrank",
    )  # fmt: skip


def _noticing(asked: Recovering, run: Run) -> Table:
    ways = ways_to_notice(
        msgspec.structs.replace(run.process, causes=run.causes),
        run.job.step_s,
        every_steps=asked.sdc_every,
        interval_s=run.plan.last.interval_s,
        restart_s=run.restart_s,
    )
    return Table(
        title="silent corruption, by how it is noticed",
        columns=(
            Column("by"), Column("noticed after", "s"), Column("of each step", "fraction"),
            Column("one costs", "s"), Column("lost in all", "fraction"), Column("wrong steps a day", "count"),
        ),
        rows=tuple(
            (
                way.by.method, way.by.delay_s, way.by.overhead_fraction, way.cost.loss_s, way.cost.lost_fraction,
                Quantity(way.cost.steps_per_day, "count"),
            )
            for way in ways
        ),
        marked=next(index for index, way in enumerate(ways) if way.by.method == asked.sdc),
        note="taken for granted, for nobody published it: half a day until it is seen in the loss, 2 % for checksums",
    )  # fmt: skip
