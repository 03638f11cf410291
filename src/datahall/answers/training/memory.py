"""`show memory`: what takes the memory of a chip in training, by part, stage and tensor."""

from __future__ import annotations

from datahall.answer import Answer, Cell, StackChart
from datahall.answers.context import context_notes
from datahall.answers.follow import follow
from datahall.answers.training.idle import idle_layout, network_of_memory
from datahall.answers.training.memory_table import SHOWN, by_part, by_stage, by_tensor, changes, stages_named
from datahall.answers.training.offload_table import offload_table
from datahall.answers.training.words import adapter_notes, compression_notes, file_notes
from datahall.counted import counted
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.training.layout.asked import layout_inputs
from datahall.training.memory.figure import memory_figure
from datahall.training.memory.peak import PARTS, StageMemory, fullest, stage_memories
from datahall.training.memory.remedy import NAMES, Shortage, layout_offload, why_not
from datahall.training.setup import Setup, setup_of
from datahall.units import fmt, short


def show_memory(scenario: Scenario) -> Answer:
    """Peak memory of one chip of every stage of a training layout; exit code 1 where it does not fit."""
    asked = setup_of(scenario)
    job, cluster, layout, framework, books = (
        asked.job,
        asked.cluster,
        asked.layout,
        asked.framework,
        asked.books,
    )
    stages = stage_memories(job, cluster.chip, layout, books, schedule=asked.schedule)
    shortage = why_not(job, cluster, layout, framework, books, schedule=asked.schedule)
    outside = layout_offload(job, cluster, layout, framework, books, schedule=asked.schedule)
    peak = fullest(stages)
    full = stages[peak]
    name = f"memory of one chip of {stages_named(full)}"
    return Answer(
        kind="training memory",
        inputs={**asked.used, "chip": cluster.chip.name},
        headline=_headline(asked, stages, peak, shortage),
        binding=_binding(full, shortage),
        verdict="no" if shortage or not all(line.fits for line in outside) else "yes",
        results=_results(asked, full),
        tables=(
            by_part(full),
            by_stage(stages, peak),
            by_tensor(job, layout, full, books),
            *offload_table(outside, cluster.host),
            *changes(shortage),
        ),
        figure=memory_figure(job, asked.degrees, full, books, asked.schedule, name),
        charts=(_chart(stages),),
        notes=(
            *_notes(asked),
            *idle_layout(scenario, layout),
            *(line.sentence for line in outside),
            *network_of_memory(scenario),
        ),
        sources=books.sources,
        next_commands=_next(scenario, asked, shortage),
    )


def _headline(asked: Setup, stages: tuple[StageMemory, ...], peak: int, shortage: Shortage | None) -> str:
    full, model = stages[peak], asked.job.model
    where = f" on {stages_named(full)}" if len(stages) > 1 else ""
    end = (
        f"{fmt(full.headroom_bytes, 'bytes', 3)} free"
        if shortage is None
        else f"{short(full.used_ratio)} times what it has"
    )
    verb = "fits" if shortage is None else "does not fit"
    return (
        f"{model.title or model.name} {verb} {asked.cluster.num_chips:,} × {asked.cluster.chip.name} "
        f"({asked.layout.words}): {fmt(full.total_bytes, 'bytes')} of {fmt(full.memory.limit_bytes, 'bytes')}{where}, "
        f"{end}."
    )


def _binding(stage: StageMemory, shortage: Shortage | None) -> str:
    if shortage is not None:
        return " ".join(f"{text[:1].upper()}{text[1:]}." for text in (shortage.sentence, shortage.advice))
    part, of_all = stage.largest, fmt(stage.share_of_used(stage.largest), "fraction")
    return f"{NAMES[part].capitalize()} take the most: {fmt(stage.taken(part), 'bytes')}, {of_all} of what is used."


def _results(asked: Setup, stage: StageMemory) -> dict[str, Cell]:
    names = (*PARTS, "slack_bytes", "outside_bytes", "allocated_bytes", "total_bytes", "headroom_bytes")
    found: dict[str, Cell] = {name: stage.taken(name) for name in names}
    return found | {
        "stage": stage.run.first,
        "limit_bytes": stage.memory.limit_bytes,
        "num_chips": asked.cluster.num_chips,
        "layout": asked.layout.words,
        "seq_tokens": asked.job.seq,
        "global_batch": asked.job.global_batch,
    }


def _chart(stages: tuple[StageMemory, ...]) -> StackChart:
    parts = {text: tuple(stage.taken(name) for stage in stages) for name, text in SHOWN.items()}
    free = {"free": tuple(stage.free_bytes for stage in stages)}
    return StackChart(
        title="memory of a chip by stage",
        unit="bytes",
        rows=tuple(stages_named(stage) for stage in stages),
        parts=parts | free,
        limits=tuple(stage.memory.limit_bytes for stage in stages),
    )


def _notes(asked: Setup) -> tuple[str, ...]:
    recipe = asked.books.recipe
    return (
        f"sequences of {counted(asked.job.seq, 'token')}, {asked.job.global_batch:,} in a step, "
        f"{counted(asked.num_micro, 'micro-batch')} on each replica",
        "the allocated peak of 19 logged layouts (Megatron-Core on 8 B200) is 0.1 % off in the mean, "
        "0.9 % at most; slack and communicators are estimates",
        f"state: {recipe.weight:g} B weights, {recipe.gradient:g} B gradients, {recipe.optimizer:g} B optimizer per "
        f"{'parameter' if asked.job.adapters is None else 'parameter of the adapters'}",
        *adapter_notes(asked.job),
        *context_notes(asked.job.model, asked.job.seq),
        *compression_notes(asked.layout),
        *file_notes(asked.file),
    )


def _next(scenario: Scenario, asked: Setup, shortage: Shortage | None) -> tuple[str, ...]:
    """The step of this layout and the best of all that fit; where it does not fit, with the cheapest change, if any."""
    chips, changed = asked.cluster.num_chips, enough(scenario, asked, shortage)
    if changed is None:
        return ()
    commands = [follow(scenario, "show memory", changed)] if shortage is not None else []
    commands.append(follow(scenario, "simulate train", {**changed, "chips": chips}))
    cheapest = shortage.cheapest if shortage is not None else None
    fitting = cheapest.layout if cheapest is not None else asked.layout
    same: dict[str, Plain | None] = {"tokens": "1T", "chips": chips}
    same |= {"seq": asked.job.seq, "global_batch": asked.job.global_batch}
    same["offload"] = list(fitting.offload) or None
    return (*commands, follow(scenario, "plan train", same))


def enough(scenario: Scenario, asked: Setup, shortage: Shortage | None) -> dict[str, Plain | None] | None:
    """The inputs of the cheapest change that makes a layout fit: none where it does, None where no change is enough."""
    if shortage is None:
        return {}
    if shortage.cheapest is None:
        return None
    changed = layout_inputs(shortage.cheapest.layout, asked.layout)
    if scenario.given("dp"):
        changed["dp"] = shortage.cheapest.layout.dp
    return {**changed, "global_batch": asked.job.global_batch, "chips": asked.cluster.num_chips}
