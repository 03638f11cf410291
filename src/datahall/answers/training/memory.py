"""`datahall show memory --train`: what takes the memory of a chip in training, by part, stage and tensor."""

from __future__ import annotations

import msgspec

from datahall.answer import Answer, Cell, StackChart
from datahall.answers.bounds import find_model, opened
from datahall.answers.training.layout_option import Asked, asked_layout
from datahall.answers.training.memory_table import SHOWN, by_part, by_stage, by_tensor, changes, stages_named
from datahall.answers.training.offload_table import offload_table
from datahall.breakdown import Breakdown
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_of
from datahall.errors import ScenarioError
from datahall.scenario.words import SCHEDULES
from datahall.training.memory.bookkeeping import Bookkeeping, bookkeeping_of
from datahall.training.memory.offload import Line
from datahall.training.memory.peak import PARTS, StageMemory, stage_memories
from datahall.training.memory.remedy import NAMES, Shortage, layout_offload, why_not
from datahall.training.step.compression import CAVEAT
from datahall.training.step.framework import framework as framework_named
from datahall.training.step.step import Job
from datahall.units import fmt
from datahall.workload.memory.state import StateRecipe
from datahall.workload.precision import Precision


def show_memory(
    model: str,
    *,
    train: bool = False,
    chip: str = "h100-sxm",
    chips: str | int | None = None,
    tp: str | int | None = None,
    pp: str | int | None = None,
    vpp: str | int | None = None,
    cp: str | int | None = None,
    ep: str | int | None = None,
    etp: str | int | None = None,
    dp: str | int | None = None,
    zero: str | int | None = None,
    shard: str | int | None = None,
    micro_batch: str | int | None = None,
    seq: str | int | None = None,
    global_batch: str | int | None = None,
    recompute: str | None = None,
    modules: str | None = None,
    context: str | None = None,
    split: str | None = None,
    offload: str | None = None,
    compress: str | None = None,
    precision: str | None = None,
    framework: str = "nemo",
    state: str = "",
    schedule: str = "1f1b",
    layout: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """Peak memory of one chip of every stage of a training layout; exit code 1 where it does not fit."""
    shelf = opened(catalog)
    known = find_model(model, shelf)
    if not train:
        raise ScenarioError(
            "which memory: say --train", hint=f"for serving: datahall show model {model} --chip {chip}"
        )
    degrees = {
        "tp": tp, "pp": pp, "vpp": vpp, "cp": cp, "ep": ep, "etp": etp, "dp": dp, "zero": zero, "shard": shard,
        "micro_batch": micro_batch,
    }  # fmt: skip
    words = {
        "recompute": recompute, "modules": modules, "context": context, "split": split, "offload": offload,
        "compression": compress,
    }  # fmt: skip
    asked = asked_layout(
        known, degrees, chips=chips, seq=seq, global_batch=global_batch, words=words,
        precision=precision, layout_file=layout,
    )  # fmt: skip
    if schedule not in SCHEDULES:
        raise ScenarioError(f'--schedule is "{schedule}"', hint=f"one of {', '.join(SCHEDULES)}")
    kit = framework_named(framework)
    books = with_state(bookkeeping_of(kit), state)
    cluster = cluster_of(shelf.chip(chip), asked.num_chips, servers=shelf.servers())
    job = Job(
        model=known,
        seq=asked.seq,
        global_batch=asked.global_batch,
        precision=Precision.named(asked.precision),
    )
    stages = stage_memories(job, cluster.chip, asked.layout, books, schedule=schedule)
    shortage = why_not(job, cluster, asked.layout, kit, books)
    outside = layout_offload(job, cluster, asked.layout, kit, books)
    return memory_answer(job, asked, stages, shortage, books, cluster, framework, outside)


def with_state(books: Bookkeeping, state: str) -> Bookkeeping:
    """The books of a framework with another recipe for its state, where one is asked for."""
    return msgspec.structs.replace(books, recipe=StateRecipe.named(state)) if state else books


def memory_answer(
    job: Job,
    asked: Asked,
    stages: tuple[StageMemory, ...],
    shortage: Shortage | None,
    books: Bookkeeping,
    cluster: Cluster,
    framework: str,
    outside: tuple[Line, ...] = (),
) -> Answer:
    """Where the memory goes, first the stage that has the most."""
    chip = cluster.chip.name
    peak = max(range(len(stages)), key=lambda place: float(stages[place].memory.total_bytes[0]))
    return Answer(
        kind="training memory",
        inputs=_inputs(job, asked, chip, framework),
        headline=_headline(job, asked, stages, peak, chip, shortage),
        binding=_binding(stages[peak], shortage),
        verdict="no" if shortage or not all(line.fits for line in outside) else "yes",
        results=_results(stages[peak]),
        tables=(
            by_part(stages[peak]),
            by_stage(stages, peak),
            by_tensor(job, asked, stages[peak], books),
            *offload_table(outside, cluster.host),
            *changes(shortage),
        ),
        figure=_figure(stages[peak], books),
        charts=(_chart(stages),),
        notes=(*_notes(asked, books), *(line.sentence for line in outside)),
        sources=books.sources,
        next_commands=(
            f"datahall plan train {job.model.name} --tokens 1T --chips {asked.num_chips} --chip {chip} "
            f"--seq {job.seq} --global-batch {job.global_batch}",
        ),
    )


def _inputs(job: Job, asked: Asked, chip: str, framework: str) -> dict[str, Cell]:
    return {
        "model": job.model.name,
        "chip": chip,
        "num_chips": asked.num_chips,
        "layout": asked.layout.words,
        "seq": job.seq,
        "global_batch": job.global_batch,
        "precision": asked.precision,
        "framework": framework,
        "layout_file": asked.file.path if asked.file else None,
    }


def _headline(
    job: Job, asked: Asked, stages: tuple[StageMemory, ...], peak: int, chip: str, shortage: Shortage | None
) -> str:
    memory = stages[peak].memory
    used, limit = fmt(float(memory.total_bytes[0]), "bytes"), fmt(memory.limit_bytes, "bytes")
    where = f" on {stages_named(stages[peak])}" if len(stages) > 1 else ""
    share = float(memory.total_bytes[0]) / memory.limit_bytes
    end = (
        f"{fmt(float(memory.headroom_bytes[0]), 'bytes', 3)} free"
        if shortage is None
        else f"{share:.2f} times what it has"
    )
    verb = "fits" if shortage is None else "does not fit"
    return (
        f"{job.model.title or job.model.name} {verb} {asked.num_chips:,} × {chip} ({asked.layout.words}): "
        f"{used} of {limit}{where}, {end}."
    )


def _binding(stage: StageMemory, shortage: Shortage | None) -> str:
    if shortage is not None:
        return " ".join(f"{text[:1].upper()}{text[1:]}." for text in (shortage.sentence, shortage.advice))
    part = max(PARTS, key=lambda name: float(getattr(stage.memory, name)[0]))
    size = float(getattr(stage.memory, part)[0])
    share = size / float(stage.memory.total_bytes[0])
    return f"{NAMES[part].capitalize()} take the most: {fmt(size, 'bytes')}, {share:.0%} of what is used."


def _results(stage: StageMemory) -> dict[str, Cell]:
    memory = stage.memory
    names = (*PARTS, "slack_bytes", "outside_bytes", "allocated_bytes", "total_bytes", "headroom_bytes")
    found: dict[str, Cell] = {name: float(getattr(memory, name)[0]) for name in names}
    return found | {"stage": stage.run.first, "limit_bytes": memory.limit_bytes}


def _figure(stage: StageMemory, books: Bookkeeping) -> Breakdown:
    memory = stage.memory
    recipe = books.recipe
    formulas = {
        "weight_bytes": f"parameters of the chip × {recipe.weight:g} B, spread from ZeRO-3",
        "gradient_bytes": f"parameters of the chip × {recipe.gradient:g} B, spread from ZeRO-2",
        "optimizer_bytes": f"parameters of the chip × {recipe.optimizer:g} B, spread from ZeRO-1",
        "activation_bytes": f"Σ layers kept × {stage.num_in_flight:.4g} micro-batches in flight",
        "working_bytes": "the widest moment of backward: loss and head, or one layer",
        "buffer_bytes": "one 16-bit gradient per shape of weight, library workspaces",
        "slack_bytes": f"{books.slack_fraction:.0%} of what the tensors take",
        "outside_bytes": "communicators of the groups, context of the driver",
    }
    parts = tuple(
        Breakdown(name=text, value=float(getattr(memory, name)[0]), unit="bytes", formula=formulas[name])
        for name, text in SHOWN.items()
    )
    return Breakdown(
        name=f"memory of one chip of {stages_named(stage)}",
        value=float(memory.total_bytes[0]),
        unit="bytes",
        formula="sum of the parts",
        parts=parts,
        sources=books.sources,
    )


def _chart(stages: tuple[StageMemory, ...]) -> StackChart:
    parts = {
        text: tuple(float(getattr(stage.memory, name)[0]) for stage in stages) for name, text in SHOWN.items()
    }
    free = {"free": tuple(max(0.0, float(stage.memory.headroom_bytes[0])) for stage in stages)}
    return StackChart(
        title="memory of a chip by stage",
        unit="bytes",
        rows=tuple(stages_named(stage) for stage in stages),
        parts=parts | free,
        limits=tuple(stage.memory.limit_bytes for stage in stages),
    )


def _notes(asked: Asked, books: Bookkeeping) -> tuple[str, ...]:
    lines = [
        "the allocated peak of 19 logged layouts (Megatron-Core on 8 B200) is 0.1 % off in the mean, "
        "0.9 % at most; slack and communicators are estimates",
        f"state: {books.recipe.weight:g} B weights, {books.recipe.gradient:g} B gradients, "
        f"{books.recipe.optimizer:g} B optimizer per parameter",
    ]
    if asked.layout.compression != "none":
        lines.append(f"gradients {asked.layout.compression}: {CAVEAT}")
    if asked.file is not None and asked.file.ignored:
        lines.append(f"ignored in {asked.file.path}: {', '.join(asked.file.ignored)}")
    return tuple(lines)
