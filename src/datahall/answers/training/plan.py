"""`plan train`: the best layouts of a training run, or the fewest chips, in whole servers, for a deadline."""

from __future__ import annotations

from functools import partial

from datahall.answer import Answer, Cell, StackChart
from datahall.answers.context import context_notes
from datahall.answers.power.idle import idle_site
from datahall.answers.reliability.words import with_interruptions
from datahall.answers.reply import Deployable
from datahall.answers.run.words import host_link_notes, slow_storage_notes, tier_notes
from datahall.answers.sections import section_figures, section_results, section_table
from datahall.answers.slices import slice_notes
from datahall.answers.supply.idle import idle_supply
from datahall.answers.training.artefact import run_file
from datahall.answers.training.beside import joining_words
from datahall.answers.training.fabrics import beside_others
from datahall.answers.training.idle import idle_money, idle_offload, network_of_plan
from datahall.answers.training.money import budget_results, priced, too_dear
from datahall.answers.training.plan_next import next_of_plan
from datahall.answers.training.plan_table import (
    best_table,
    change_table,
    chips_table,
    machine_table,
    memory_table,
    sizes_table,
)
from datahall.answers.training.sensitivity import sensitivity_charts
from datahall.answers.training.words import (
    adapter_notes,
    beside_simulation,
    routing_notes,
    torus_failure_notes,
    why_lost,
)
from datahall.cluster.used import used_by_machine
from datahall.errors import option
from datahall.fabric.design.early import on_each
from datahall.planner.training.figure import run_figure
from datahall.planner.training.plan import TrainingPlan
from datahall.planner.training.question import plan_on_fabrics, plan_training, search_of
from datahall.reliability.sections.goodput import Goodput
from datahall.reliability.simulation.story import nothing_comes
from datahall.scenario.scenario import Scenario
from datahall.training.layout.asked import said_precision
from datahall.training.pipeline.account import largest_parts
from datahall.training.setup import torus_failure_fraction
from datahall.training.step.parts import PARTS
from datahall.training.used import used_by_job
from datahall.units import fmt


def plan_train(scenario: Scenario) -> Deployable:
    """The fastest layout that fits on so many chips, or the fewest, in whole servers, that are done by a deadline."""
    each = on_each(scenario)
    if len(each) == 1:
        plan = plan_training(scenario)
        return Deployable(_answer(scenario, plan), partial(run_file, scenario, plan))
    found = plan_on_fabrics(each)
    best = found[0]
    assert best.plan is not None
    answer = beside_others(_answer(best.scenario, best.plan), found)
    return Deployable(answer, partial(run_file, best.scenario, best.plan))


def _answer(scenario: Scenario, plan: TrainingPlan) -> Answer:
    """A plan on one machine."""
    precision = said_precision(scenario)
    return Answer(
        kind="training plan",
        inputs={
            **used_by_job(plan.job, plan.search.framework, precision),
            **used_by_machine(scenario, plan.cluster),
            **({"chips": plan.num_asked} if plan.deadline_s is None else {}),
            "like": plan.part(Goodput).run.process.preset.name,
        },
        verdict="yes" if plan.ends and plan.over is None else "no",
        headline=(
            f"{'No: ' if plan.over is not None else ''}{_headline(scenario, plan)}{priced(plan)}{joining_words(plan)}"
        ),
        binding=_binds(plan),
        results=_results(plan),
        tables=(
            *((sizes_table(plan),) if plan.deadline_s is not None else ()),
            best_table(plan),
            change_table(plan),
            *((machine_table(plan),) if plan.machines else ()),
            memory_table(plan),
            *((chips_table(plan),) if plan.chips_front else ()),
            section_table(plan, "over the whole run"),
        ),
        figure=run_figure(plan),
        beside=section_figures(plan),
        charts=(_chart(plan), *sensitivity_charts(plan)),
        notes=(
            *_notes(plan),
            *slice_notes(plan.cluster),
            *tier_notes(plan.part(Goodput).run),
            *host_link_notes(plan.cluster),
            *slow_storage_notes(plan.part(Goodput).storage),
            *idle_offload(scenario, plan),
            *idle_money(scenario, plan),
            *idle_supply(scenario, [plan.cluster.chip]),
            *idle_site(scenario, plan, swings=True),
            *torus_failure_notes(
                torus_failure_fraction(scenario, plan.job, plan.cluster, plan.layout, plan.search.framework)
            ),
            *network_of_plan(scenario, plan),
        ),
        sources=(plan.search.framework.source, *plan.search.books.sources),
        next_commands=next_of_plan(scenario, plan),
    )


def _binds(plan: TrainingPlan) -> str:
    """What holds it back: its budget, its failures, or a part of its step."""
    if plan.over is not None:
        return too_dear(plan)
    return _binding(plan) if plan.ends else _never_ends(plan)


def prepare(scenario: Scenario) -> None:
    """Put job and machine together, without searching layouts."""
    for one in on_each(scenario):
        search_of(one)


def _headline(scenario: Scenario, plan: TrainingPlan) -> str:
    model, batch = plan.job.model, _batch(scenario, plan)
    tokens = "1 token" if plan.num_tokens == 1 else fmt(plan.num_tokens, "tokens")
    what = f"{tokens} through {model.title or model.name}"
    took = (
        f"{fmt(plan.duration_s, 's', 3)} at {fmt(plan.execution.mfu_fraction, 'fraction')} MFU, "
        f"{with_interruptions(plan.part(Goodput))}, "
        f"{fmt(plan.chosen.headroom_bytes, 'bytes', 3)} of {fmt(plan.search.memory.limit_bytes, 'bytes', 3)} free"
    )
    if plan.deadline_s is None:
        return f"{what} on {_chips(plan)}: {plan.layout.words}; {batch}; {took}.{_yours(plan)}"
    assert plan.done_s is not None
    done, spare = fmt(plan.done_s, "s", 3), fmt(plan.spare_s, "s", 3)
    return (
        f"{what} in {fmt(plan.deadline_s, 's', 3)} takes {_chips(plan)}, "
        f"{plan.layout.words}, {batch}: {took}; nine of ten runs are done after {done}, {spare} to spare."
    )


def _yours(plan: TrainingPlan) -> str:
    """The layout that somebody has, beside the chosen one."""
    has = plan.present
    if has is None:
        return ""
    yours = f" The layout of {has.file} ({has.execution.layout.words})"
    if not has.loss.fits:
        return f"{yours} {why_lost(has.loss)}."
    return f"{yours} takes {fmt(has.duration_s, 's', 3)}: {why_lost(has.loss)}."


def _batch(scenario: Scenario, plan: TrainingPlan) -> str:
    """The global batch, and why it is that."""
    size = plan.job.global_batch
    of_file = plan.present is not None and plan.present.states_batch
    why = (
        "as asked"
        if scenario.given("global_batch")
        else "as the layout file says"
        if of_file
        else "the usual"
    )
    return f"global batch {size:,}, {why} ({fmt(plan.job.batch_tokens, 'tokens')})"


def _chips(plan: TrainingPlan) -> str:
    """How many are used, and of how many."""
    if not (plan.num_idle or plan.num_out):
        return f"{plan.num_chips:,} × {plan.cluster.chip.name}"
    out = f", {plan.num_out:,} out" if plan.num_out else ""
    idle = f", {plan.num_idle:,} idle ({_why_idle(plan)})" if plan.num_idle else ""
    return f"{plan.num_chips:,} of {plan.num_asked:,} × {plan.cluster.chip.name}{out}{idle}"


def _why_idle(plan: TrainingPlan) -> str:
    """Why chips that work do nothing: no layout is placed on them, or none that is there is faster with them."""
    those = "all that work" if plan.num_out else "all of them"
    stranded = ""
    if plan.num_stranded:
        stranded = (
            f"{plan.num_stranded:,} beside failed chips: of domains that have lost some one is used in part"
        )
        if plan.num_chips == plan.num_placeable:
            return stranded
        stranded, those = f"{stranded}; ", f"the other {plan.num_placeable:,}"
    why = f"no layout fits on {those}"
    if not plan.batch_divides:
        why = f"a global batch of {plan.job.global_batch:,} does not divide over {those}"
    elif plan.on_all_s is not None:
        why = f"on {those} it takes {fmt(plan.on_all_s, 's', 3)}"
    return f"{stranded}{why}"


def _binding(plan: TrainingPlan) -> str:
    first, *rest = largest_parts(plan.execution)
    checked = beside_simulation(plan.execution, plan.chosen.difference_fraction)
    second = f", {rest[0].label} {fmt(rest[0].share_fraction, 'fraction')}" if rest else ""
    return (
        f"{first.label.capitalize()}: {fmt(first.share_fraction, 'fraction')} of the step of "
        f"{fmt(plan.step_s, 's')}{second}. The closed form, which ranked all layouts, says "
        f"{fmt(plan.closed_step_s, 's')}, {checked}.{_narrow(plan)}"
    )


def _never_ends(plan: TrainingPlan) -> str:
    """Why the run never ends, and what would end it."""
    goodput = plan.part(Goodput)
    why, wanted = nothing_comes(goodput.run, goodput.expected)
    way = f"nine of ten runs end with {plan.mended.words}" if plan.mended else f"it needs {wanted}"
    return f"{why[0].upper()}{why[1:]}: {way}."


def _narrow(plan: TrainingPlan) -> str:
    """What the narrow places of the network cost, where it has some."""
    wide = plan.full_bisection
    if wide is None or not plan.narrow_fraction:
        return ""
    return (
        f" The network is narrower than its ports: with full bisection the run takes "
        f"{fmt(plan.duration_of(wide), 's', 3)} ({wide.layout.words}), here "
        f"{fmt(plan.narrow_fraction, 'fraction')} longer."
    )


def _results(plan: TrainingPlan) -> dict[str, Cell]:
    layout = plan.layout
    degrees: dict[str, Cell] = {
        name: " ".join(map(str, value)) if isinstance(value, tuple) else value
        for name, value in ((name, getattr(layout, name)) for name in layout.__struct_fields__)
    }
    low_s, high_s = plan.band_s
    return {
        "objective": plan.objective.name,
        "num_chips": plan.num_chips,
        "num_idle_chips": plan.num_idle,
        **degrees,
        "step_s": plan.step_s,
        "closed_step_s": plan.closed_step_s,
        "duration_s": plan.duration_s,
        "duration_low_s": low_s,
        "duration_high_s": high_s,
        "num_steps": plan.num_steps,
        "tokens_per_s": plan.execution.tokens_per_s,
        "mfu_fraction": plan.execution.mfu_fraction,
        "memory_bytes": plan.chosen.memory_bytes,
        "headroom_bytes": plan.chosen.headroom_bytes,
        **(
            {"full_bisection_duration_s": plan.duration_of(plan.full_bisection)}
            if plan.full_bisection is not None
            else {}
        ),
        **section_results(plan),
        **({"spot_duration_s": plan.longer_s} if plan.longer_s is not None else {}),
        **({"done_s": plan.done_s} if plan.done_s is not None and plan.ends else {}),
        **({"num_in_time": plan.num_in_time} if plan.deadline_s is not None else {}),
        **budget_results(plan),
        **_present_results(plan),
        "num_layouts": len(plan.search.space),
        "num_fitting": plan.search.num_fitting,
    }


def _present_results(plan: TrainingPlan) -> dict[str, Cell]:
    has = plan.present
    if has is None:
        return {}
    return {
        "present_layout": has.execution.layout.words,
        "present_step_s": has.execution.step_s,
        "present_duration_s": has.duration_s,
        "present_fits": has.memory.fits,
        "present_headroom_bytes": has.memory.headroom_bytes,
        "present_slower_fraction": has.loss.slower_fraction if has.memory.fits else None,
        "present_more_s": has.loss.more_s if has.memory.fits else None,
    }


def _chart(plan: TrainingPlan) -> StackChart:
    return StackChart(
        title="step of the best layouts, in closed form",
        unit="s",
        rows=tuple(one.layout.words for one in plan.candidates),
        parts={
            text: values
            for name, text in PARTS.items()
            if name in plan.chosen.closed_parts_s
            and any(values := tuple(one.closed_parts_s[name] for one in plan.candidates))
        },
    )


def _notes(plan: TrainingPlan) -> tuple[str, ...]:
    found = plan.search
    framework = found.framework
    return (
        *(line.sentence for line in plan.offload),
        f"band: eight of ten runs of {framework.title} lie between {plan.band[0]:.2f} and {plan.band[1]:.2f} of "
        f"what is predicted (constants fitted on {framework.fitted_on}); it is that of tuned steps, and published "
        "runs took up to 3.3 times as long",
        *adapter_notes(plan.job),
        *_preferred(plan),
        *_all_chips(plan),
        f"each chip keeps {fmt(found.options.margin_fraction, 'fraction')} of its memory free at least "
        f"({option('memory_margin')})",
        "time is that of the steps, unless it says with interruptions; evaluation comes on top",
        *context_notes(found.job.model, found.job.seq),
        *routing_notes(found.job, plan.layout),
        "MFU counts causal attention and no recomputation"
        f"{', nor gradients of frozen weights' if plan.job.adapters is not None else ''}",
    )


def _all_chips(plan: TrainingPlan) -> tuple[str, ...]:
    """A global batch that divides over all chips, where the one asked for does not."""
    if not plan.near_batch:
        return ()
    those = f"the {plan.num_placeable:,} chips that layouts are placed on"
    return (
        f"over {those if plan.num_stranded else f'all {plan.num_working:,} chips'} a global batch of "
        f"{plan.near_batch:,} divides: "
        f"{option('global_batch', plan.near_batch)}",
    )


def _preferred(plan: TrainingPlan) -> tuple[str, ...]:
    """That a simpler layout was taken and what it costs, or that none was and why."""
    slower = plan.slower_fraction
    if plan.hurried:
        return ("a simpler layout, as fast as can be told, would be late",)
    if slower <= 0:
        return ()
    return (
        f"the fastest layout is {fmt(slower, 'fraction')} faster, less than can be told: this one keeps tensor "
        "parallelism inside a scale-up domain, or more memory free",
    )
