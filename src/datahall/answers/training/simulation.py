"""`simulate train`: one step of a training run, stage by stage and micro-batch by micro-batch."""

from __future__ import annotations

from datahall.answer import Answer, Cell
from datahall.answers.context import context_notes
from datahall.answers.follow import follow, our_error
from datahall.answers.reply import Traced
from datahall.answers.slices import slice_notes
from datahall.answers.training.idle import idle_layout, idle_stragglers, network_of_step
from datahall.answers.training.memory import enough
from datahall.answers.training.offload_table import offload_table
from datahall.answers.training.simulation_tables import (
    communication_table,
    difference_table,
    stage_chart,
    stage_table,
    synchronisation_table,
)
from datahall.answers.training.words import (
    adapter_notes,
    beside_simulation,
    compression_notes,
    file_notes,
    leaf_notes,
    routing_notes,
    torus_failure_notes,
)
from datahall.cluster.used import used_by_machine
from datahall.counted import counted
from datahall.events import perfetto
from datahall.fabric.collectives.algorithms.table import spoken
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.training import Stragglers
from datahall.training.memory.remedy import layout_offload, why_not
from datahall.training.pipeline.account import kernels_part, largest_loss
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.pipeline.figure import step_figure
from datahall.training.pipeline.simulate import KIND_NAMES, timeline, track_names
from datahall.training.pipeline.step_memory import StepMemory, step_memory
from datahall.training.pipeline.table import less_idle_order
from datahall.training.setup import Setup, setup_of, torus_failure_fraction
from datahall.training.step.step import Job
from datahall.units import fmt


def simulate_train(scenario: Scenario) -> Traced:
    """One step: time, MFU, bubble, exposed and hidden exchange, memory, and the closed form beside it."""
    asked = setup_of(scenario)
    run = simulate_step(
        asked.job,
        asked.cluster,
        asked.layout,
        asked.framework,
        order=asked.schedule,
        stragglers=scenario.one(Stragglers),
        seed=scenario.root.seed,
    )
    return Traced(_answer(scenario, asked, run), lambda: train_trace(run))


def prepare(scenario: Scenario) -> None:
    """Put job, machine and layout together, without simulating a step."""
    setup_of(scenario)


def train_trace(run: Execution) -> bytes:
    """The slowest replica's step as a Perfetto trace: two tracks a stage, kernels and exchange beside them."""
    return perfetto(timeline(run.slowest, run.stages.work), KIND_NAMES, track_names(run.plan))


def _answer(scenario: Scenario, asked: Setup, run: Execution) -> Answer:
    memory = step_memory(run, asked.books)
    outside = layout_offload(
        run.job, run.cluster, run.layout, run.framework, asked.books, schedule=run.plan.name
    )
    return Answer(
        kind="training step",
        inputs={**asked.used, **used_by_machine(scenario, asked.cluster)},
        verdict="yes" if memory.fits else "no",
        headline=_headline(scenario, run, memory),
        binding=_binding(run) if memory.fits else _no_room(memory),
        results=_results(run, memory),
        tables=(
            difference_table(run),
            communication_table(run),
            synchronisation_table(run),
            stage_table(run, memory),
            *offload_table(outside, run.cluster.host),
        ),
        figure=step_figure(run, asked.degrees),
        charts=(stage_chart(run),),
        notes=(
            *_notes(run, asked, fits=memory.fits),
            *leaf_notes(asked.cluster, run.layout),
            *slice_notes(asked.cluster),
            *idle_layout(scenario, run.layout),
            *idle_stragglers(scenario, run),
            *torus_failure_notes(
                torus_failure_fraction(scenario, run.job, run.cluster, run.layout, run.framework)
            ),
            *(line.sentence for line in outside),
            *network_of_step(scenario, run),
        ),
        sources=(run.framework.source,),
        next_commands=_next(scenario, run) if memory.fits else _next_that_fits(scenario, asked),
    )


def _headline(scenario: Scenario, run: Execution, memory: StepMemory) -> str:
    said = _said(run, memory)
    return f"{scenario.name}: {said}" if scenario.name else said


def _said(run: Execution, memory: StepMemory) -> str:
    model, chip = run.job.model, run.cluster.chip
    what = f"{model.title or model.name} on {run.cluster.num_chips:,} × {chip.title}"
    most, limit = fmt(memory.most_bytes, "bytes", 3), fmt(memory.limit_bytes, "bytes", 3)
    full = f"fullest stage takes {most} of {limit}."
    if not memory.fits:
        return f"{what} does not fit: the {full}"
    return f"A step of {what} takes {_speed(run)}. The {full}"


def _speed(run: Execution) -> str:
    low_s, high_s = run.band_s
    return (
        f"{fmt(run.step_s, 's', 3)} ({fmt(low_s, 's', 3)} to {fmt(high_s, 's', 3)}): "
        f"{fmt(run.mfu_fraction, 'fraction')} MFU, {run.tokens_per_s:,.0f} tokens/s"
    )


def _no_room(memory: StepMemory) -> str:
    return f"Memory binds: {fmt(-memory.headroom_bytes, 'bytes', 3)} are missing on each chip of that stage."


def _binding(run: Execution) -> str:
    kernels, lost = kernels_part(run), largest_loss(run)
    return (
        f"Kernels take {fmt(kernels.share_fraction, 'fraction')} of the step; most of the rest goes to {lost.label} "
        f"({fmt(lost.share_fraction, 'fraction')}). The closed form says {fmt(run.closed_parts.step_s, 's', 3)}, "
        f"{beside_simulation(run, run.closed_difference_fraction)}."
    )


def _results(run: Execution, memory: StepMemory) -> dict[str, Cell]:
    low_s, high_s = run.band_s
    return {
        "step_s": run.step_s,
        "step_low_s": low_s,
        "step_high_s": high_s,
        "mfu_fraction": run.mfu_fraction,
        "tokens_per_s": run.tokens_per_s,
        "chip_tokens_per_s": run.chip_tokens_per_s,
        "bubble_fraction": run.bubble_fraction,
        "exposed_s": run.exposed_s,
        "hidden_s": run.all_hidden_s,
        "slowest_s": run.parts.slowest_s,
        "uneven_s": run.parts.uneven_s,
        "closed_form_s": run.closed_parts.step_s,
        "difference_fraction": run.closed_difference_fraction,
        "layout": run.layout.words,
        "dp": run.layout.dp,
        "schedule": run.plan.name,
        "seq_tokens": run.job.seq,
        "global_batch": run.job.global_batch,
        "num_micro": run.plan.num_micro,
        "num_slots": int(run.plan.kind.size),
        "num_replicas_simulated": run.num_simulated,
        "memory_bytes": memory.most_bytes,
        "headroom_bytes": memory.headroom_bytes,
    }


def _counted_flop(job: Job) -> str:
    if job.adapters is None:
        return "three forwards"
    return "two forwards and three of the adapters: frozen weights have no gradients"


def _notes(run: Execution, asked: Setup, *, fits: bool) -> tuple[str, ...]:
    num_chips = run.num_stage_chips
    lines = [
        f"MFU counts {_counted_flop(run.job)}, attention causal, nothing recomputed, over the dense "
        f"{run.job.precision.compute} peak",
        f"the range holds eight of ten measured runs ({run.framework.title}; {run.framework.fitted_on})",
    ]
    if run.num_slow_hosts:
        lines.append(f"{run.num_slow_hosts:,} of {counted(run.num_hosts, 'host')} slow")
    if run.stragglers.jitter_fraction:
        low, high = run.spread_s
        lines.append(
            f"mean of {counted(run.steps_s.size, 'step')} drawn, {fmt(low, 's')} to {fmt(high, 's')}; a stage waits "
            f"for the slowest of {counted(num_chips, 'chip')}, a step for the slowest of "
            f"{counted(run.layout.dp, 'replica')}"
        )
    elif run.layout.dp > 1:
        lines.append(
            f"{run.layout.dp:,} replicas, of which {run.num_simulated} had to be simulated to know the slowest"
        )
    lines += [
        *_data_notes(run),
        *adapter_notes(run.job),
        *context_notes(run.job.model, run.job.seq),
        *compression_notes(run.layout),
        *routing_notes(run.job, run.layout),
        *file_notes(asked.file),
    ]
    if not fits:
        lines.append(
            f"if there were room, a step would take {_speed(run)}; recomputation, more pp or tp, or ZeRO 2 take "
            "less memory"
        )
    return tuple(lines)


def _data_notes(run: Execution) -> tuple[str, ...]:
    """Which algorithms move gradients and parameters: a step may be shorter on more chips where they are others."""
    choices = run.data_choices
    if not choices:
        return ()
    reduced, gathered = (spoken((one.algorithm, one.protocol)) for one in choices)
    faster = [one.candidates[0] for one in choices if one.candidates[0].time_s < one.time_s]
    names = dict.fromkeys(spoken((one.algorithm, one.protocol)) for one in faster)
    better = f"; {' and '.join(names)} would be faster by our times" if names else ""
    back = "parameters gathered" if run.layout.zero else "gathered again"
    why = (
        "as NCCL chooses by its own estimate"
        if all(one.is_estimated_least for one in choices)
        else "by our times"
    )
    return (
        f"gradients are reduced over {choices[0].num_ranks:,} ranks with {reduced} and {back} with "
        f"{gathered}, {why}{better}",
    )


def _next(scenario: Scenario, run: Execution) -> tuple[str, ...]:
    commands = [follow(scenario, tail="-o step.perfetto-trace")]
    better = less_idle_order().name
    if run.layout.vpp == 1 and run.plan.name != better and run.layout.pp > 1:
        commands.append(follow(scenario, changes={"schedule": better}))
    if not run.stragglers.any:
        commands.append(follow(scenario, changes={"slow_hosts": "0.5 %", "jitter": "1 %"}))
    return (*commands, follow(scenario, "show memory"), our_error(scenario, "training"))


def _next_that_fits(scenario: Scenario, asked: Setup) -> tuple[str, ...]:
    """The step and the memory with the cheapest change that is enough; nothing where none is."""
    shortage = why_not(
        asked.job, asked.cluster, asked.layout, asked.framework, asked.books, schedule=asked.schedule
    )
    changed = enough(scenario, asked, shortage)
    return (follow(scenario, changes=changed), follow(scenario, "show memory", changed)) if changed else ()
