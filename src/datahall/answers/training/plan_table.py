"""Tables of a training plan: the best layouts, what changes them, and what is traded for what."""

from __future__ import annotations

import numpy as np

from datahall.answer import Cell, Column, Table
from datahall.planner.train import DeadlinePlan, TrainingPlan, chips_against_time
from datahall.training.layout.search import front, loss, machine_sensitivity, pareto, sensitivity
from datahall.training.pipeline.execution import OF_WHICH, PART_NAMES
from datahall.units import fmt

MOST_ROWS = 6


def best_table(plan: TrainingPlan) -> Table:
    """The best cuts of the model: in closed form, the first few also as they were played; why the others lost."""
    found = plan.search
    places = found.best(MOST_ROWS)
    ranked = sorted(plan.played, key=lambda place: plan.played[place].step_s)
    rows: list[tuple[Cell, ...]] = []
    for place in (*ranked, *(one for one in places if one not in plan.played)):
        row = int(found.order[place])
        closed_s = float(found.step_s[row])
        step_s = plan.played[place].step_s if place in plan.played else None
        rows.append(
            (
                found.space.row(row).words,
                closed_s,
                step_s,
                closed_s / step_s - 1.0 if step_s else None,
                plan.num_steps * step_s if step_s else None,
                float(found.memory.headroom_bytes[row]),
                "" if place == plan.place else _why(plan, place),
            )
        )
    return Table(
        title="best layouts",
        columns=(
            Column("layout"),
            Column("closed form", "s", key="closed_step_s"),
            Column("played", "s", key="step_s"),
            Column("differs", "fraction"),
            Column("time", "s", key="duration_s"),
            Column("free", "bytes"),
            Column("why it lost"),
        ),
        rows=tuple(rows),
        marked=0,
        note=f"of {len(found.space):,} legal layouts {found.num_fitting:,} fit; one row for each cut of the model, "
        f"the best {len(plan.played)} played event by event",
    )


def _why(plan: TrainingPlan, place: int) -> str:
    """Why a layout is not the chosen one: by what was played where it was, else by the closed form."""
    if place not in plan.played:
        return loss(plan.search, int(plan.search.order[place])).reason
    mine, best = plan.played[place], plan.played[plan.place]
    more = {
        name: getattr(mine.parts, name) - getattr(best.parts, name)
        for name in PART_NAMES
        if name not in OF_WHICH
    }
    part = max(more, key=lambda name: more[name])
    slower = fmt(mine.step_s / best.step_s - 1.0, "fraction")
    return f"{slower} slower: {fmt(more[part], 's', 3)} more {PART_NAMES[part]}"


def change_table(plan: TrainingPlan) -> Table:
    """The chosen layout with one choice changed."""
    return Table(
        title="if one choice changes",
        columns=(Column("change"), Column("then")),
        rows=tuple((change, lost.reason) for change, lost in sensitivity(plan.search, plan.place)),
        note="data parallelism takes up what another degree gives; in closed form, against its fastest",
    )


def machine_table(plan: TrainingPlan) -> Table:
    """The chosen layout on a somewhat different machine, and whether it would still be chosen."""
    rows: list[tuple[Cell, ...]] = []
    for change, step_s, fastest in machine_sensitivity(plan.search, plan.place):
        stays = "the same layout" if fastest == plan.layout else fastest.words
        rows.append((change, step_s, step_s / plan.closed_step_s - 1.0, stays))
    return Table(
        title="if the machine changes",
        columns=(
            Column("change"),
            Column("step", "s"),
            Column("differs", "fraction"),
            Column("fastest then"),
        ),
        rows=tuple(rows),
        note="in closed form, among the best cuts of the model",
    )


def memory_front(plan: TrainingPlan) -> Table:
    """Layouts that no other beats in both time and memory."""
    found = plan.search
    return Table(
        title="time against memory",
        columns=(
            Column("layout"),
            Column("step", "s"),
            Column("memory", "bytes"),
            Column("free", "bytes"),
        ),
        rows=tuple(
            (
                found.space.row(row).words,
                float(found.step_s[row]),
                float(found.memory.total_bytes[row]),
                float(found.memory.headroom_bytes[row]),
            )
            for row in map(int, found.order[front(found)[:MOST_ROWS]])
        ),
        note="each is the fastest that gets by with its memory; in closed form",
    )


def chips_front(plan: TrainingPlan) -> Table:
    """The same run on fewer and on more chips."""
    plans = chips_against_time(plan)
    times = np.array([one.num_steps * one.closed_step_s for one in plans])
    counts = np.array([float(one.num_chips) for one in plans])
    kept = set(pareto(counts, times).tolist())
    rows: list[tuple[Cell, ...]] = [
        (
            one.num_chips,
            float(times[place]),
            float(times[place]) / 3600.0 * one.num_chips,
            one.layout.words,
            "" if place in kept else "beaten by fewer chips",
        )
        for place, one in enumerate(plans)
    ]
    return Table(
        title="chips against time",
        columns=(
            Column("chips", "count"),
            Column("time", "s", key="duration_s"),
            Column("chip-hours", "count"),
            Column("layout"),
            Column(""),
        ),
        rows=tuple(rows),
        marked=next(place for place, one in enumerate(plans) if one is plan),
        note="in closed form; the same global batch on each",
    )


def sizes_table(by: DeadlinePlan) -> Table:
    """Every number of chips that was weighed for a deadline."""

    def row(plan: TrainingPlan) -> tuple[Cell, ...]:
        return (
            plan.num_chips,
            plan.duration_s,
            plan.mfu_fraction,
            plan.chip_hours,
            plan.layout.words,
            "in time" if plan.duration_s <= by.deadline_s else "too late",
        )

    return Table(
        title="chips for the deadline",
        columns=(
            Column("chips", "count"),
            Column("time", "s", key="duration_s"),
            Column("MFU", "fraction"),
            Column("chip-hours", "count"),
            Column("layout"),
            Column("verdict"),
        ),
        rows=tuple(row(plan) for plan in by.weighed),
        marked=len(by.weighed) - 1,
    )
