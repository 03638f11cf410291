"""`datahall plan train`: the best layouts of a training run, or the fewest chips for a deadline."""

from __future__ import annotations

import msgspec

from datahall.answer import Answer, Cell, StackChart
from datahall.answers.bounds import find_model, opened, whole
from datahall.answers.training.imbalance_option import imbalance_notes, read_imbalance
from datahall.answers.training.layout_option import read_offload
from datahall.answers.training.memory import with_state
from datahall.answers.training.plan_table import (
    MOST_ROWS,
    best_table,
    change_table,
    chips_front,
    machine_table,
    memory_front,
    sizes_table,
)
from datahall.breakdown import Band, Breakdown
from datahall.catalog import Catalog
from datahall.errors import ScenarioError, UnitError
from datahall.planner.train import DeadlinePlan, TrainingPlan, plan_by_deadline, plan_on_chips
from datahall.training.layout.search import PARTS
from datahall.training.layout.space import WIDE
from datahall.training.memory.bookkeeping import bookkeeping_of
from datahall.training.memory.remedy import layout_offload
from datahall.training.pipeline.execution import OF_WHICH, PART_NAMES
from datahall.training.step.framework import framework as framework_named
from datahall.training.step.step import Job, step_band
from datahall.units import fmt, parse
from datahall.workload.precision import Precision


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
    offload: str = "",
    imbalance: str | float | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """The fastest layout that fits on so many chips, or the fewest chips that are done by a deadline.

    `offload` lets the search also put something on the host or NVMe: "optimizer", "optimizer:nvme,activations".
    `imbalance` is the load of the busiest of the ranks that share experts, over the mean.
    """
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
        imbalance=read_imbalance(imbalance),
    )
    kit = framework_named(framework)
    books = with_state(bookkeeping_of(kit), state)
    asked: dict[str, Cell] = {
        "model": job.model.name, "tokens": num_tokens, "chip": part.name, "seq": job.seq,
        "global_batch": job.global_batch, "precision": precision, "framework": framework,
    }  # fmt: skip
    if job.imbalance is not None:
        asked["imbalance_ratio"] = job.imbalance
    options = WIDE if not offload else msgspec.structs.replace(WIDE, offload=((), read_offload(offload)))
    machines = shelf.servers()
    if chips is not None:
        plan = plan_on_chips(
            job, part, whole("chips", chips), num_tokens, kit, books=books, options=options, servers=machines
        )
        return plan_answer(plan, asked | {"num_chips": plan.num_chips}, precision)
    assert deadline is not None
    limit_s = _positive("deadline", deadline, "s")
    by = plan_by_deadline(job, part, limit_s, num_tokens, kit, books=books, options=options, servers=machines)
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
        tables=(
            *((sizes_table(by),) if by else ()),
            best_table(plan),
            change_table(plan),
            machine_table(plan),
            memory_front(plan),
            *(() if by else (chips_front(plan),)),
        ),
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
    parts = _parts(plan)
    total = sum(parts.values())
    first, second = sorted(parts, key=lambda name: -parts[name])[:2]
    return (
        f"{first.capitalize()} take {parts[first] / total:.0%} of the step of {fmt(plan.step_s, 's')}, "
        f"{second} {parts[second] / total:.0%}. The closed form, which ranked all layouts, says "
        f"{fmt(plan.closed_step_s, 's')}, {plan.closed_step_s / plan.step_s - 1:+.1%} from what was played."
    )


def _parts(plan: TrainingPlan) -> dict[str, float]:
    """The chosen step taken apart by name [s], as it was played."""
    parts = plan.played[plan.place].parts
    return {
        text: getattr(parts, name)
        for name, text in PART_NAMES.items()
        if name not in OF_WHICH and getattr(parts, name) > 0
    }


def _results(plan: TrainingPlan) -> dict[str, Cell]:
    layout = plan.layout
    degrees: dict[str, Cell] = {
        name: " ".join(map(str, value)) if isinstance(value, tuple) else value
        for name, value in ((name, getattr(layout, name)) for name in layout.__struct_fields__)
    }
    low, high = _band(plan)
    return {
        "num_chips": plan.num_chips,
        **degrees,
        "step_s": plan.step_s,
        "closed_step_s": plan.closed_step_s,
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


def _figure(plan: TrainingPlan) -> Breakdown:
    kit = plan.search.framework
    below = tuple(Breakdown(name=name, value=value, unit="s") for name, value in _parts(plan).items())
    step = Breakdown(
        name="step",
        value=plan.step_s,
        unit="s",
        formula="as played: " + " + ".join(one.name for one in below),
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
    low, high = _band(plan)
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
    found = plan.search
    kit = found.framework
    outside = layout_offload(found.job, found.cluster, plan.layout, kit, found.books)
    return (
        *(line.sentence for line in outside),
        f"band: eight of ten runs of {kit.title} lie between {_band(plan)[0]:.2f} and {_band(plan)[1]:.2f} of "
        f"what is predicted (constants fitted on {kit.fitted_on})",
        "time is that of the steps; failures, restarts, evaluation and checkpoints come on top",
        *imbalance_notes(found.job, plan.layout),
        "MFU counts causal attention and no recomputation",
    )


def _next(plan: TrainingPlan, asked: dict[str, Cell], precision: str) -> tuple[str, ...]:
    layout = plan.layout
    job = plan.search.job
    degrees = " ".join(
        f"--{name.replace('_', '-')} {getattr(layout, name)}"
        for name in ("tp", "pp", "vpp", "cp", "ep", "etp", "shard", "micro_batch")
        if getattr(layout, name) > (0 if name in ("etp", "shard") else 1)
    )
    degrees += f" --context {layout.context}" if layout.context != "ring" else ""
    degrees += f" --offload {','.join(layout.offload)}" if layout.offload else ""
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


def _band(plan: TrainingPlan) -> tuple[float, float]:
    return step_band(plan.search.job, plan.search.cluster, plan.search.framework)
