"""A fleet of several kinds of chip: its headline, its results and what to ask next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from datahall.answer import Answer, Cell, keyed
from datahall.answers.context import context_notes
from datahall.answers.follow import follow, our_error
from datahall.answers.reliability.words import out_of_reach
from datahall.answers.reply import Deployable
from datahall.answers.sections import section_table
from datahall.answers.serving.apart import group_inputs
from datahall.answers.serving.mixed.idle import idle_in_mixture
from datahall.answers.serving.mixed.tables import (
    alone_table,
    chips_of_all,
    month_of_all,
    pool_table,
    ways_of_all,
)
from datahall.answers.serving.money import money_notes
from datahall.answers.serving.plan_tables import load_chart, replica_table
from datahall.answers.serving.words import (
    all_at_the_worst,
    described,
    full_load,
    implied,
    on_switches,
    percent,
    shown_share,
    wanted_by,
)
from datahall.answers.supply.idle import idle_supply
from datahall.cluster.used import used_by_groups
from datahall.counted import counted
from datahall.errors import UnsupportedError, option
from datahall.inference.engine.replica import joined
from datahall.planner.serving.early import candidate_chips
from datahall.planner.serving.mixed.plan import MixedPlan
from datahall.planner.serving.plan import ServingPlan
from datahall.reliability.sections.upkeep import Upkeep
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import MOST_REPLICAS
from datahall.units import fmt, short


def mixed_answer(scenario: Scenario, plan: MixedPlan) -> Deployable:
    """A fleet of several kinds; its pools have no file of their own."""
    return Deployable(_answer(scenario, plan), partial(_file, plan))


def _answer(scenario: Scenario, plan: MixedPlan) -> Answer:
    mix, first = plan.chosen, plan.pools[0].chosen
    lost = next((pool for pool in plan.pools if pool.part(Upkeep).more_replicas is None), None)
    month = month_of_all(plan)
    together = msgspec.structs.replace(plan.pools[0], best=plan.kinds)
    replicas = [one.replica for one in mix.alone]
    return Answer(
        kind="serving plan",
        inputs={
            "model": first.replica.model.name,
            "chips": ", ".join(one.replica.chip.name for one in plan.best),
            "like": plan.pools[0].part(Upkeep).process.preset.name,
            **used_by_groups(scenario, [joined(one) for one in replicas]),
        },
        headline=f"{_headline(plan)}{_priced(plan)}",
        binding=_binding(plan) if lost is None else out_of_reach(lost.part(Upkeep)),
        verdict="yes" if lost is None else "no",
        results=_results(plan),
        tables=(
            pool_table(plan),
            alone_table(plan),
            replica_table(together),
            *(section_table(pool, f"in operation: {pool.chosen.replica.chip.name}") for pool in plan.pools),
        ),
        figure=chips_of_all(plan),
        beside=(month,) if month is not None else (),
        charts=(load_chart(together),),
        notes=(
            *_notes(plan),
            *_of_any(plan, lambda pool: money_notes(scenario, pool)),
            *idle_in_mixture(scenario, plan),
            *idle_supply(scenario, candidate_chips(scenario)),
            *all_at_the_worst(scenario, list(zip(replicas, mix.counts, strict=True))),
            *implied(scenario),
            *on_switches(replicas),
            *context_notes(first.replica.model, first.replica.max_context),
        ),
        sources=tuple(
            dict.fromkeys(
                source
                for source in (first.replica.engine.source, mix.demand.traffic.source)
                if source is not None
            )
        ),
        next_commands=_next(scenario, plan),
    )


def _headline(plan: MixedPlan) -> str:
    mix = plan.chosen
    run, promise, model = mix.run, mix.demand.promise, mix.alone[0].replica.model
    assert run is not None
    chips = " and ".join(
        f"{count:,} × {one.replica.chip.name}" for one, count in zip(mix.alone, mix.pool_chips, strict=True)
    )
    pools = " and ".join(
        f"{counted(count, 'replica')} of {described(one.replica, one.precision)}"
        for one, count in zip(mix.alone, mix.counts, strict=True)
    )
    load = full_load(mix)
    if mix.num_spare:
        load = f"with {counted(mix.num_spare, 'replica')} out, {load}"
    following = (
        f" and a TPOT of at most {fmt(run.tpot_s(promise.percentile), 's', 3)}"
        if mix.demand.load.streams
        else ""
    )
    need = "needs" if mix.demand.users == 1 else "need"
    return (
        f"{wanted_by(mix.demand)} of {model.title or model.name} {need} {chips} behind one router: {pools}. "
        f"Even {load}, {shown_share(promise.percentile)} of requests have a TTFT of at most "
        f"{fmt(run.ttft_s(promise.percentile), 's', 3)}{following}."
    )


def _priced(plan: MixedPlan) -> str:
    """What the mixture costs, and what serves alone beside it."""
    month, words = plan.totals.month_usd, plan.objective.row
    said = "" if month is None else f" They cost {fmt(month, 'usd')} a month: {ways_of_all(plan)}."
    enough = next((one for one in plan.best if not plan.num_missing(one)), None)
    if enough is None or plan.alone_more_fraction is None:
        return f"{said} There are not enough of any kind to serve alone."
    more = percent(plan.alone_more_fraction)
    return f"{said} {enough.num_chips:,} × {enough.replica.chip.name} alone take {more} more {words.more}."


def _binding(plan: MixedPlan) -> str:
    """What keeps the best kind from serving alone, and what the pools hold."""
    mix = plan.chosen
    best = next(one for one in plan.best if plan.num_missing(one))
    name = best.replica.chip.name
    hold = " and ".join(
        f"{short(rate)} requests/s on {one.replica.chip.name}"
        for one, rate in zip(mix.alone, mix.rates_per_s, strict=True)
    )
    return (
        f"Supply binds: {name} alone would take {best.num_chips:,} chips, and {plan.stock[name]:,} can be had. "
        f"A replica holds {hold}; all together hold {short(mix.held_per_s)} requests/s, where "
        f"{short(mix.full_rate_per_s)} come {full_load(mix)}."
    )


def _results(plan: MixedPlan) -> dict[str, Cell]:
    mix = plan.chosen
    run, at = mix.run, mix.demand.promise.percentile
    assert run is not None
    totals = plan.totals
    found: dict[str, Cell] = {
        "chip": " + ".join(one.replica.chip.name for one in mix.alone),
        "num_chips": mix.num_chips,
        "num_replicas": mix.num_replicas,
        **({"num_spare_replicas": mix.num_spare} if mix.num_spare else {}),
        "precision": " + ".join(one.precision for one in mix.alone),
        **{
            f"num_chips_{keyed(one.replica.chip.name)}": n
            for one, n in zip(mix.alone, mix.pool_chips, strict=True)
        },
        "ttft_s": run.ttft_s(at),
        "tpot_s": run.tpot_s(at) if mix.demand.load.streams else None,
        "good_fraction": run.good_fraction,
        "spare_fraction": mix.spare_fraction,
        "chip_output_tokens_per_s": mix.chip_output_tokens_per_s,
        "requests_per_s": mix.demand.rate_per_s,
        "prompt_tokens": mix.demand.load.prompt,
        "output_tokens": mix.demand.load.output,
        "objective": plan.objective.name,
        "objective_value": plan.value,
        "next_more_fraction": plan.alone_more_fraction,
        "num_kinds": len(plan.best),
        "month_tokens": totals.month_tokens,
        "month_usd": totals.month_usd,
    }
    if totals.api_month_usd is not None:
        found["api_month_usd"] = totals.api_month_usd
    if totals.drawn is not None:
        found |= msgspec.structs.asdict(totals.drawn)
    return found


def _notes(plan: MixedPlan) -> tuple[str, ...]:
    mix = plan.chosen
    demand = mix.demand
    lines = [
        f"requests of {demand.load.prompt:,.0f} tokens in and {demand.load.output:,.0f} out on average "
        f"({demand.traffic.name})",
        "each pool is of the group that is best of its chip alone; what a mixture costs besides, in people who know "
        "both and in files of two kinds, is not counted",
    ]
    if demand.users:
        lines.append("each user reads one answer after the other at the pace of the TPOT limit")
    if mix.hurried is not None:
        kept = percent(mix.hurried.good_fraction)
        lines.append(f"where none reads and all ask again at once, {kept} of requests keep both limits")
    unused = [name for name in plan.stock if name not in {one.replica.chip.name for one in mix.alone}]
    lines += [f"of the {plan.stock[name]:,} {name} that can be had none is taken" for name in unused]
    return tuple(lines)


def _next(scenario: Scenario, plan: MixedPlan) -> tuple[str, ...]:
    """Each pool simulated under its share of the load, each kind as if enough could be had, and our error."""
    commands = []
    for place in range(len(plan.pools)):
        pool = plan.chosen.pool(place)
        share: dict[str, Plain | None] = {
            "users": None,
            "rate": float(f"{pool.demand.rate_per_s:.6g}"),
            "think": None,
        }
        if pool.demand.stretch is None and pool.num_deployed <= MOST_REPLICAS:
            there = {**group_inputs(pool.replica, pool.precision), "replicas": pool.num_deployed, **share}
            commands.append(follow(scenario, "simulate serve", there))
    commands.append(follow(scenario, changes={"available": None}))
    return (*commands, our_error(scenario, "inference"))


def _file(plan: MixedPlan, name: str) -> str:
    names = " and ".join(one.replica.chip.name for one in plan.chosen.alone)
    pool = plan.chosen.pool(0)
    raise UnsupportedError(
        f"{name} runs one kind of chip, and this plan is of {names}",
        hint=f"a plan of each pool: {option('chips', pool.replica.chip.name)} "
        f"{option('rate', f'{pool.demand.rate_per_s:.4g}')} without {option('available')}",
    )


def _of_any(plan: MixedPlan, lines: Callable[[ServingPlan], Iterable[str]]) -> tuple[str, ...]:
    """What is said of some pool, once."""
    return tuple(dict.fromkeys(line for pool in plan.pools for line in lines(pool)))
