"""`show training-techniques`: the ladder of training on one job, rung on rung, each alone, and what a step learns."""

from __future__ import annotations

from datahall.answer import Answer, Cell, keyed
from datahall.answers.context import context_notes
from datahall.answers.follow import follow, our_error
from datahall.answers.ladder.tables import alone_table, learning_table, parts_chart, together_table
from datahall.answers.training.idle import idle_provider, idle_sites, network_of_step
from datahall.answers.training.words import file_notes, routing_notes
from datahall.breakdown import Breakdown, quotient
from datahall.cluster.used import used_by_machine
from datahall.planner.training.ladder.question import Climbed, climbed, with_chips
from datahall.planner.training.laid.step import laid_step
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.training.ladder.climb import Effect
from datahall.training.ladder.published import published, seen_of
from datahall.training.layout.asked import layout_inputs
from datahall.training.leaf import Degrees
from datahall.training.pipeline.figure import step_figure
from datahall.units import fmt

# inputs of a step that the ladder goes through itself
CLIMBED = {"precision", "state", "zero", "shard", "recompute", "modules", "compression", "offload"}


def show_training_techniques(scenario: Scenario) -> Answer:
    """From eager kernels to what the framework does and beyond; compression and several sites stand aside."""
    return _answer(scenario, climbed(scenario))


def prepare(scenario: Scenario) -> None:
    """Put job, machine and layout together, without climbing."""
    laid_step(with_chips(scenario))


def _answer(scenario: Scenario, found: Climbed) -> Answer:
    ladder, top = found.ladder, found.ladder.top
    return Answer(
        kind="training techniques",
        inputs={
            **{name: value for name, value in found.used.items() if name not in CLIMBED},
            "num_tokens": found.num_tokens,
            **used_by_machine(scenario, found.setup.cluster),
        },
        verdict="yes" if top.fits else "no",
        headline=_headline(found),
        binding=_binding(found),
        results=_results(found),
        tables=(together_table(found), alone_table(found), learning_table(found)),
        figure=_figure(found),
        beside=_beside(found),
        charts=(parts_chart(found),),
        notes=(
            *_notes(found),
            *routing_notes(found.setup.job, top.setting.layout),
            *context_notes(found.setup.job.model, found.setup.job.seq),
            *file_notes(found.setup.file),
            *idle_sites(scenario, found.sites.why_not),
            *(idle_provider(scenario, found.setup.cluster.chip.title) if found.nobody_sells else ()),
            *network_of_step(scenario, ladder.plain.run),
        ),
        sources=(found.setup.framework.source, *(one.source for one in published())),
        next_commands=_next(scenario, found),
    )


def _headline(found: Climbed) -> str:
    plain, top, setup = found.ladder.plain, found.ladder.top, found.setup
    what = (
        f"a step of {setup.job.model.title or setup.job.model.name} on {setup.cluster.num_chips:,} × "
        f"{setup.cluster.chip.title}"
    )
    words = " + ".join(found.ladder.kept) or "Nothing"
    took = f"{fmt(plain.step_s, 's', 3)} → {fmt(top.step_s, 's', 3)}, {fmt(top.run.mfu_fraction, 'fraction')} MFU"
    most, limit = fmt(top.memory_bytes, "bytes", 3), fmt(top.limit_bytes, "bytes", 3)
    fits = f"a chip holds {most} of {limit}" if top.fits else f"it does not fit: {most} of {limit}"
    made = f"{words} makes {what} {fmt(found.ladder.gain, 'ratio', 3)} as fast: {took}; {fits}."
    return f"{made[:1].upper()}{made[1:]}"


def _binding(found: Climbed) -> str:
    lines, most, apart = [], found.ladder.matters_most, found.sites
    if most is not None and most.longer is not None:
        name = f"{most.rung.name[:1].upper()}{most.rung.name[1:]}"
        lines.append(
            f"{name} gives the most: without it the step takes {fmt(most.longer, 'ratio', 3)} as long."
        )
    if apart.synchronous is not None and apart.local is not None:
        lines.append(
            f"Over {apart.asked.num_sites:,} sites that send {fmt(apart.asked.wan_bytes_per_s, 'bytes_per_s')} each it "
            f"takes {fmt(apart.synchronous.step_s, 's', 3)} with gradients exchanged in every step and "
            f"{fmt(apart.local.step_s, 's', 3)} with {apart.local.num_between:,} local ones between."
        )
    return " ".join(lines)


def _results(found: Climbed) -> dict[str, Cell]:
    ladder, top, apart = found.ladder, found.ladder.top, found.sites
    cost_usd = found.cost_usd(top.step_s)
    return {
        "step_s": top.step_s,
        "plain_step_s": ladder.plain.step_s,
        "gain_ratio": ladder.gain,
        "mfu_fraction": top.run.mfu_fraction,
        "tokens_per_s": top.run.tokens_per_s,
        "memory_bytes": top.memory_bytes,
        "headroom_bytes": top.headroom_bytes,
        **({"cost_usd": cost_usd} if cost_usd is not None else {}),
        "kept": ", ".join(ladder.kept),
        "layout": top.setting.layout.words,
        **{
            keyed(f"{step.rung.name} alone", "ratio"): step.gain
            for step in ladder.alone
            if step.gain is not None
        },
        **{
            keyed(f"without {step.rung.name}", "ratio"): step.longer
            for step in ladder.without
            if step.longer is not None
        },
        **({"sites_step_s": apart.synchronous.step_s} if apart.synchronous is not None else {}),
        **({"local_step_s": apart.local.step_s} if apart.local is not None else {}),
    }


def _figure(found: Climbed) -> Breakdown:
    plain, top = found.ladder.plain, found.ladder.top
    return quotient(
        "times as fast",
        step_figure(plain.run, _degrees(found, plain)).named("step of the plainest"),
        step_figure(top.run, _degrees(found, top)).named("step with all that was kept"),
        "ratio",
    )


def _degrees(found: Climbed, effect: Effect) -> Degrees:
    layout = effect.setting.layout
    if found.is_searched:
        return Degrees(layout, planned=True)
    own = found.setup.degrees
    return Degrees(layout, fewest=own.fewest, accumulated=own.accumulated)


def _beside(found: Climbed) -> tuple[Breakdown, ...]:
    apart, cost = found.sites, found.cost(found.ladder.top.step_s)
    steps = [one.figure for one in (apart.synchronous, apart.local) if one is not None]
    return (*steps, *((cost,) if cost is not None else ()))


def _notes(found: Climbed) -> tuple[str, ...]:
    setup, market = found.setup, found.market
    seen = [one.named for name in found.ladder.kept for one in seen_of(name)]
    price = (
        f"no cost: {market.why_not}"
        if market.price is None
        else f"cost: {fmt(market.price.value, 'usd_per_hour')} for a chip, rented on demand, without what failures add"
    )
    return (
        "MFU is over the dense peak of the format that products have on that rung, attention causal, nothing "
        "recomputed",
        f"overlap hides what {setup.framework.title} was seen to hide ({setup.framework.fitted_on})",
        "measured apart: eager against compiled kernels, fused against unfused attention, fp32, bf16 and fp8, and what "
        "compression costs a chip; not overlap alone, nor ZeRO or several sites",
        "between sites nothing is hidden, and no site waits for one that failed",
        price,
        *((f"published of what was kept: {'; '.join(seen)}",) if seen else ()),
        f"published of compression: {'; '.join(one.named for one in seen_of('compression'))}",
    )


def _next(scenario: Scenario, found: Climbed) -> tuple[str, ...]:
    """The step at the top, where a question can ask for it, and our error."""
    top, setup = found.ladder.top, found.setup
    error = our_error(scenario, "training")
    if top.setting.framework != setup.framework:
        return (error,)
    changes: dict[str, Plain | None] = {
        **layout_inputs(top.setting.layout),
        "layout": None,
        "chips": setup.cluster.num_chips,
        "seq": setup.job.seq,
        "global_batch": setup.job.global_batch,
        "precision": found.ladder.precision,
    }
    if top.setting.layout.pp > 1:
        changes["schedule"] = setup.schedule
    return (follow(scenario, "simulate train", changes), error)
