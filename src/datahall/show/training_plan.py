"""`datahall plan train`: the best layouts of a training run, or the fewest chips for a deadline."""

from __future__ import annotations

from datahall.answer import Answer, Cell, Column, StackChart, Table
from datahall.breakdown import Band, Breakdown
from datahall.catalog import Catalog
from datahall.errors import ScenarioError, UnitError
from datahall.planner.train import DeadlinePlan, TrainingPlan, plan_by_deadline, plan_on_chips
from datahall.show.bounds import find_model, opened, whole
from datahall.show.memory import with_state
from datahall.training.bookkeeping import bookkeeping_of
from datahall.training.framework import framework as framework_named
from datahall.training.search import PARTS, front, loss, sensitivity
from datahall.training.step import Job
from datahall.units import fmt, parse
from datahall.workload.precision import Precision

MOST_ROWS = 6


def plan_train(
    model: str,
    *,
    tokens: str | float,
    chips: str | int | None = None,
    deadline: str | float | None = None,
    chip: str = "h100-sxm",
    seq: str | int = 8192,
    global_batch: str | int = 1024,
    precision: str = "bf16",
    framework: str = "nemo",
    state: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """The fastest layout that fits on so many chips, or the fewest chips that are done by a deadline."""
    shelf = opened(catalog)
    if (chips is None) == (deadline is None):
        raise ScenarioError(
            "say either how many chips there are or when it must be done",
            hint="--chips 2048, or --deadline 30d",
        )
    num_tokens = _positive("tokens", tokens, "tokens")
    formats = Precision.named(precision)
    part = shelf.chip(chip)
    part.peak(formats.compute)
    job = Job(
        model=find_model(model, shelf),
        seq=whole("seq", seq),
        global_batch=whole("global-batch", global_batch),
        precision=formats,
    )
    kit = framework_named(framework)
    books = with_state(bookkeeping_of(kit), state)
    asked: dict[str, Cell] = {
        "model": job.model.name, "tokens": num_tokens, "chip": part.name, "seq": job.seq,
        "global_batch": job.global_batch, "precision": precision, "framework": framework,
    }  # fmt: skip
    if chips is not None:
        plan = plan_on_chips(job, part, whole("chips", chips), num_tokens, kit, books=books)
        return plan_answer(plan, asked | {"num_chips": plan.num_chips}, precision)
    assert deadline is not None
    limit_s = _positive("deadline", deadline, "s")
    by = plan_by_deadline(job, part, limit_s, num_tokens, kit, books=books)
    return plan_answer(by.chosen, asked | {"deadline_s": limit_s}, precision, by)


def _positive(name: str, value: str | float, unit: str) -> float:
    try:
        number = parse(value, unit)
    except UnitError as error:
        raise ScenarioError(f"--{name}: {error.message}", hint=error.hint) from error
    if number <= 0:
        raise ScenarioError(f"--{name} is {value}; it must be above 0")
    return number


def plan_answer(
    plan: TrainingPlan, asked: dict[str, Cell], precision: str, by: DeadlinePlan | None = None
) -> Answer:
    """A plan in the order a person asks."""
    return Answer(
        kind="training plan",
        inputs=asked,
        headline=_headline(plan, by),
        binding=_binding(plan),
        results=_results(plan),
        tables=(*((_sizes(by),) if by else ()), _best(plan), _sensitivity(plan), _front(plan)),
        figure=_figure(plan),
        charts=(_chart(plan),),
        notes=_notes(plan),
        sources=(plan.search.framework.source, *plan.search.books.sources),
        next_commands=_next(plan, asked, precision),
    )


def _headline(plan: TrainingPlan, by: DeadlinePlan | None) -> str:
    job, cluster = plan.search.job, plan.search.cluster
    what = f"{fmt(plan.num_tokens, 'tokens')} through {job.model.title or job.model.name}"
    took = (
        f"{fmt(plan.duration_s, 's', 3)} at {fmt(plan.mfu_fraction, 'fraction')} MFU, "
        f"{fmt(plan.headroom_bytes, 'bytes', 3)} of {fmt(plan.search.memory.limit_bytes, 'bytes', 3)} free"
    )
    if by is None:
        return f"{what} on {cluster.num_chips:,} × {cluster.chip.name}: {plan.layout.words}; {took}."
    spare = fmt(by.deadline_s - plan.duration_s, "s", 3)
    return (
        f"{what} in {fmt(by.deadline_s, 's', 3)} takes {cluster.num_chips:,} × {cluster.chip.name}, "
        f"{plan.layout.words}: {took}, {spare} to spare."
    )


def _binding(plan: TrainingPlan) -> str:
    parts = plan.search.parts(plan.place)
    total = sum(parts.values())
    first, second = sorted(parts, key=lambda name: -parts[name])[:2]
    return (
        f"{PARTS[first].capitalize()} take {parts[first] / total:.0%} of the step of {fmt(plan.step_s, 's')}, "
        f"{PARTS[second]} {parts[second] / total:.0%}."
    )


def _results(plan: TrainingPlan) -> dict[str, Cell]:
    layout = plan.layout
    degrees: dict[str, Cell] = {name: getattr(layout, name) for name in layout.__struct_fields__}
    low, high = plan.search.framework.band
    return {
        "num_chips": plan.num_chips,
        **degrees,
        "step_s": plan.step_s,
        "duration_s": plan.duration_s,
        "duration_low_s": plan.duration_s * low,
        "duration_high_s": plan.duration_s * high,
        "num_steps": plan.num_steps,
        "tokens_per_s": plan.tokens_per_s,
        "mfu_fraction": plan.mfu_fraction,
        "memory_bytes": plan.total_bytes,
        "headroom_bytes": plan.headroom_bytes,
        "num_layouts": len(plan.search.space),
        "num_fitting": plan.search.num_fitting,
    }


def _best(plan: TrainingPlan) -> Table:
    found = plan.search
    rows: list[tuple[Cell, ...]] = []
    for place in found.best(MOST_ROWS):
        row = int(found.order[place])
        step_s = float(found.step_s[row])
        rows.append(
            (
                found.space.row(row).words,
                step_s,
                plan.num_steps * step_s,
                plan.mfu_of(step_s),
                float(found.memory.headroom_bytes[row]),
                "" if place == plan.place else loss(found, row).reason,
            )
        )
    return Table(
        title="best layouts",
        columns=(
            Column("layout"),
            Column("step", "s"),
            Column("time", "s", key="duration_s"),
            Column("MFU", "fraction"),
            Column("free", "bytes"),
            Column("why it lost"),
        ),
        rows=tuple(rows),
        marked=0,
        note=f"of {len(found.space):,} legal layouts {found.num_fitting:,} fit; "
        "one row for each cut of the model",
    )


def _sensitivity(plan: TrainingPlan) -> Table:
    return Table(
        title="if one choice changes",
        columns=(Column("change"), Column("then")),
        rows=tuple((change, lost.reason) for change, lost in sensitivity(plan.search, plan.place)),
        note="data parallelism takes up what another degree gives",
    )


def _front(plan: TrainingPlan) -> Table:
    found = plan.search
    return Table(
        title="time against memory",
        columns=(Column("layout"), Column("step", "s"), Column("memory", "bytes")),
        rows=tuple(
            (found.space.row(row).words, float(found.step_s[row]), float(found.memory.total_bytes[row]))
            for row in map(int, found.order[front(found)[:MOST_ROWS]])
        ),
        note="each is the fastest that gets by with its memory",
    )


def _sizes(by: DeadlinePlan) -> Table:
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


def _figure(plan: TrainingPlan) -> Breakdown:
    kit = plan.search.framework
    parts = plan.search.parts(plan.place)
    slowest = plan.step_s - sum(parts.values())
    named = {PARTS[name]: value for name, value in parts.items()} | {"waiting for the slowest rank": slowest}
    below = tuple(Breakdown(name=name, value=value, unit="s") for name, value in named.items() if value > 0)
    step = Breakdown(
        name="step",
        value=plan.step_s,
        unit="s",
        formula="slot · (m + (pp − 1)/vpp) + fixed",
        parts=below,
        sources=(kit.source,),
    )
    job = plan.search.job
    steps = Breakdown(
        name="steps",
        value=float(plan.num_steps),
        unit="count",
        formula=f"{fmt(plan.num_tokens, 'tokens')} / ({job.global_batch:,} sequences × {job.seq:,})",
    )
    low, high = kit.band
    return Breakdown(
        name="time of the run",
        value=plan.duration_s,
        unit="s",
        formula="steps × step",
        parts=(steps, step),
        band=Band(plan.duration_s * low, plan.duration_s * high, f"{kit.title}, {kit.fitted_on}"),
    )


def _chart(plan: TrainingPlan) -> StackChart:
    places = plan.search.best(MOST_ROWS)
    taken = [plan.search.parts(place) for place in places]
    return StackChart(
        title="step of the best layouts",
        unit="s",
        rows=tuple(plan.search.layout(place).words for place in places),
        parts={
            text: tuple(one[name] for one in taken)
            for name, text in PARTS.items()
            if any(one[name] > 0 for one in taken)
        },
    )


def _notes(plan: TrainingPlan) -> tuple[str, ...]:
    kit = plan.search.framework
    return (
        f"band: eight of ten runs of {kit.title} lie between {kit.band[0]:.2f} and {kit.band[1]:.2f} of "
        f"what is predicted (constants fitted on {kit.fitted_on})",
        "time is that of the steps; failures, restarts, evaluation and checkpoints come on top",
        "experts are loaded evenly; MFU counts causal attention and no recomputation",
    )


def _next(plan: TrainingPlan, asked: dict[str, Cell], precision: str) -> tuple[str, ...]:
    layout = plan.layout
    job = plan.search.job
    degrees = " ".join(
        f"--{name.replace('_', '-')} {getattr(layout, name)}"
        for name in ("tp", "pp", "vpp", "cp", "ep", "micro_batch")
        if getattr(layout, name) > 1
    )
    more = f" --recompute {layout.recompute}" if layout.recompute != "none" else ""
    tokens, part = fmt(plan.num_tokens, "parameters"), asked["chip"]
    shape = f"--seq {job.seq} --global-batch {job.global_batch}"
    memory = f"datahall show memory {asked['model']} --train --chip {part} --chips {plan.num_chips} {degrees}"
    twice = (
        f"datahall plan train {asked['model']} --tokens {tokens} --chips {2 * plan.num_chips} --chip {part}"
    )
    return (
        f"{memory.rstrip()} --zero {layout.zero} {shape}{more}",
        f"{twice} {shape} --precision {precision}",
    )
