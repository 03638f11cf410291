"""Tables of a training plan: the best layouts, what changes them, and what is traded for what."""

from __future__ import annotations

from math import inf

from datahall.answer import Cell, Column, Table
from datahall.answers.training.words import choice_changed, why_lost
from datahall.planner.training.candidate import Candidate
from datahall.planner.training.plan import TrainingPlan, Tried, Weighed
from datahall.training.layout.search import Elsewhere


def best_table(plan: TrainingPlan) -> Table:
    """The best cuts of the model: in closed form, the first few also as simulated; why the others lost."""
    ranked = [
        (plan.chosen, ""),
        *((one.candidate, why_lost(one.loss, leaves_domain=one.leaves_domain)) for one in plan.alternatives),
    ]

    def row(candidate: Candidate, why: str) -> tuple[Cell, ...]:
        run = candidate.execution
        return (
            candidate.layout.words,
            candidate.closed_step_s,
            run.step_s if run else None,
            candidate.difference_fraction,
            plan.duration_of(candidate) if run else None,
            candidate.headroom_bytes,
            why,
        )

    return Table(
        title="best layouts",
        columns=(
            Column("layout"),
            Column("closed form", "s", key="closed_step_s"),
            Column("simulated", "s", key="step_s"),
            Column("differs", "fraction"),
            Column("time", "s", key="duration_s"),
            Column("free", "bytes"),
            Column("why it lost"),
        ),
        rows=(*(row(candidate, why) for candidate, why in ranked), *_present_row(plan)),
        marked=0,
        note=f"of {len(plan.search.space):,} legal layouts {plan.search.num_fitting:,} fit; one row for each way of "
        f"splitting the model (tp, pp, cp, ep), the best {plan.num_simulated} simulated event by event",
    )


def _present_row(plan: TrainingPlan) -> tuple[tuple[Cell, ...], ...]:
    """The layout that somebody has."""
    has = plan.present
    if has is None:
        return ()
    run = has.execution
    return (
        (
            run.layout.words,
            has.closed_step_s,
            run.step_s,
            has.difference_fraction,
            has.duration_s if has.memory.fits else None,
            has.memory.headroom_bytes,
            f"yours: {why_lost(has.loss)}",
        ),
    )


def change_table(plan: TrainingPlan) -> Table:
    """The chosen layout with one choice changed."""
    return Table(
        title="if one choice changes",
        columns=(Column("change"), Column("then")),
        rows=tuple((choice_changed(one), why_lost(one.loss)) for one in plan.changes),
        note="data parallelism takes up what another degree gives; in closed form, against the chosen layout's",
    )


def machine_table(plan: TrainingPlan) -> Table:
    """The chosen layout on a somewhat different machine, and below it the one that would be faster there."""
    return Table(
        title="if the machine changes",
        columns=(
            Column("change"),
            Column("layout"),
            Column("step", "s"),
            Column("differs", "fraction"),
            Column("fastest then"),
        ),
        rows=tuple(
            (
                machine_changed(one),
                one.layout.words,
                one.step_s,
                one.difference_fraction,
                "yes" if one.fastest else "no",
            )
            for one in plan.machines
        ),
        note="in closed form, among the best ways of splitting the model; differs: from the chosen layout's step on "
        "the machine as it is",
    )


def machine_changed(one: Elsewhere) -> str:
    """What of the machine is different."""
    if one.num_domain:
        return f"scale-up domain of {one.num_domain}"
    return f"network {100 * one.network_fraction:+.0f} %"


def memory_table(plan: TrainingPlan) -> Table:
    """Layouts that no other beats in both time and memory."""
    return Table(
        title="time against memory",
        columns=(
            Column("layout"),
            Column("step", "s"),
            Column("memory", "bytes"),
            Column("free", "bytes"),
        ),
        rows=tuple(
            (one.layout.words, one.closed_step_s, one.memory_bytes, one.headroom_bytes)
            for one in plan.memory_front
        ),
        note="each is the fastest that gets by with its memory; in closed form",
    )


def chips_table(plan: TrainingPlan) -> Table:
    """The same run on fewer and on more chips."""
    return Table(
        title="chips against time",
        columns=(
            Column("chips", "count"),
            Column("time", "s", key="duration_s"),
            Column("chip-hours", "count"),
            Column("layout"),
            Column(""),
        ),
        rows=tuple(
            (
                one.candidate.num_chips,
                one.duration_s,
                one.chip_hours,
                one.candidate.layout.words,
                "beaten by fewer chips" if one.beaten else "",
            )
            for one in plan.chips_front
        ),
        marked=next(place for place, one in enumerate(plan.chips_front) if one.chosen),
        note="in closed form, of layouts as fast as can be told the simplest; the same global batch on each",
    )


def sizes_table(plan: TrainingPlan) -> Table:
    """Every number of chips that was weighed for a deadline."""

    def row(one: Weighed) -> tuple[Cell, ...]:
        candidate = one.candidate
        return (
            candidate.num_chips,
            one.duration_s,
            one.elapsed_s if one.elapsed_s < inf else None,
            one.done_s if one.done_s is not None and one.done_s < inf else None,
            one.chip_hours,
            one.cost_usd,
            candidate.layout.words,
            "in time" if one.in_time else "too late",
        )

    return Table(
        title="chips for the deadline",
        columns=(
            Column("chips", "count"),
            Column("time", "s", key="duration_s"),
            Column("elapsed", "s"),
            Column("nine of ten", "s", key="done_s"),
            Column("chip-hours", "count"),
            Column("cost", "usd"),
            Column("layout"),
            Column("verdict"),
        ),
        rows=tuple(row(one) for one in plan.weighed),
        marked=[one.candidate for one in plan.weighed].index(plan.chosen),
        note="; ".join(
            (
                "in time: nine of ten simulated runs are done by then, with interruptions; elapsed is expected",
                *(f"not on {one.what}: {one.why}" for one in plan.refusals[-1:]),
                f"chips tried{', in whole servers' if plan.in_servers else ''}: {', '.join(map(_tried, plan.tried))}",
            )
        ),
    )


def _tried(one: Tried) -> str:
    """A number of chips as it was tried, and what of it a row shows where the plan leaves some of them."""
    taken = f"{one.num_taken:,} of " if one.num_taken not in (0, one.num_chips) else ""
    return f"{taken}{one.num_chips:,}"
