"""`plan serve`: the least hardware that serves a model within its latency limits, chip by chip."""

from __future__ import annotations

from functools import partial

from datahall.answer import Answer, Cell
from datahall.answers.context import context_notes
from datahall.answers.follow import Tables, follow, our_error
from datahall.answers.power.idle import idle_site
from datahall.answers.reliability.words import out_of_reach
from datahall.answers.reply import Deployable
from datahall.answers.sections import section_figures, section_results, section_table
from datahall.answers.serving.apart import apart_pools, apart_results, apart_table, apart_words, group_inputs
from datahall.answers.serving.artefact import deploy_service, service_file
from datahall.answers.serving.idle import cut_share, idle_in_plan, idle_money
from datahall.answers.serving.mixed.beside import beside_notes
from datahall.answers.serving.mixed.idle import idle_stock
from datahall.answers.serving.mixed.plan import mixed_answer
from datahall.answers.serving.money import (
    front_chart,
    front_table,
    money_notes,
    money_results,
    price_table,
    priced,
)
from datahall.answers.serving.plan_tables import (
    chip_table,
    crosscheck_table,
    load_chart,
    lost_table,
    replica_table,
    think_table,
)
from datahall.answers.serving.recorded import mean_lengths, replayed
from datahall.answers.serving.words import (
    BINDS,
    all_at_the_worst,
    all_cut,
    banded,
    described,
    full_load,
    implied,
    on_switches,
    percent,
    shown_share,
    wanted_by,
)
from datahall.answers.supply.idle import idle_supply
from datahall.answers.supply.reach import at_users
from datahall.breakdown import Breakdown
from datahall.cluster.used import used_by_groups
from datahall.counted import counted
from datahall.economics.sections.reach import Reach
from datahall.errors import option
from datahall.inference.engine.replica import joined
from datahall.planner.serving.candidate import Proposal
from datahall.planner.serving.confirm import TURNS_ROUTING
from datahall.planner.serving.demand import Demand
from datahall.planner.serving.early import candidate_chips
from datahall.planner.serving.figure import chips_figure
from datahall.planner.serving.mixed.plan import MixedPlan, plan_within_stock
from datahall.planner.serving.plan import ServingPlan
from datahall.planner.serving.question import plan_serving, question_of
from datahall.reliability.sections.upkeep import Upkeep
from datahall.scenario.idle import is_changed
from datahall.scenario.kinds import Plain, whole_or_float
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import MOST_REPLICAS
from datahall.scenario.sections.wanted.candidates import Candidates
from datahall.units import fmt, short

SOME_REPLICAS = 100  # that stand for more than can be simulated
# techniques are of one replica under single requests: what joins several, and what makes requests longer, is not asked
NOT_OF_A_REPLICA = ("on", "failure", "turns", "system")


def plan_serve(scenario: Scenario) -> Deployable:
    """The least hardware of each kind of chip that serves so many users, or requests a second, within limits."""
    plan = plan_within_stock(scenario) if scenario.one(Candidates).available else plan_serving(scenario)
    if isinstance(plan, MixedPlan):
        return mixed_answer(scenario, plan)
    return Deployable(_answer(scenario, plan), partial(service_file, scenario, plan))


def _answer(scenario: Scenario, plan: ServingPlan) -> Answer:
    best, traffic, upkeep = plan.chosen, plan.demand.traffic, plan.part(Upkeep)
    added = upkeep.more_replicas
    figure = chips_figure(best)
    return Answer(
        kind="serving plan",
        inputs={
            "model": best.replica.model.name,
            "chips": ", ".join(candidate.replica.chip.name for candidate in plan.best),
            "like": upkeep.process.preset.name,
            **used_by_groups(scenario, [joined(best.replica)]),
        },
        headline=f"{_headline(best)}{at_users(plan.section(Reach))}{_cut(best.demand)}{priced(plan)}{apart_words(plan)}",
        binding=_binding(best) if added is not None else out_of_reach(upkeep),
        verdict="yes" if best.keeps and added is not None else "no",
        results={
            **_results(best, figure),
            **money_results(plan),
            **apart_results(plan),
            **section_results(plan),
        },
        tables=(
            chip_table(plan),
            price_table(plan),
            replica_table(plan),
            *((think_table(plan),) if plan.paces else ()),
            crosscheck_table(plan),
            *((apart_table(plan),) if plan.apart and plan.apart[0].keeps else ()),
            *((lost_table(plan),) if plan.alternatives else ()),
            *((front_table(plan),) if plan.weighed else ()),
            section_table(plan, "in operation"),
        ),
        figure=figure,
        beside=section_figures(plan),
        charts=(load_chart(plan), *((front,) if (front := front_chart(plan)) is not None else ())),
        notes=(
            *_notes(scenario, plan),
            *beside_notes(plan),
            *money_notes(scenario, plan),
            *idle_in_plan(scenario, plan),
            *idle_money(scenario, plan),
            *idle_stock(scenario, plan),
            *idle_supply(scenario, candidate_chips(scenario)),
            *idle_site(scenario, plan, swings=False),
            *all_at_the_worst(scenario, [(best.replica, best.num_deployed)]),
            *implied(scenario),
            *on_switches([best.replica]),
        ),
        sources=tuple(
            dict.fromkeys(
                source for source in (best.replica.engine.source, traffic.source) if source is not None
            )
        ),
        next_commands=_next(scenario, plan),
    )


def prepare(scenario: Scenario) -> None:
    """Make what is asked for, without looking for hardware."""
    question_of(scenario)


def _headline(best: Proposal) -> str:
    demand, promise, model, run = best.demand, best.demand.promise, best.replica.model, best.run
    who, load = wanted_by(demand), full_load(best)
    what = (
        f"{best.num_chips:,} × {best.replica.chip.name}: {counted(best.num_deployed, 'replica')}{_spare(best)} of "
        f"{described(best.replica, best.precision)}"
    )
    title = model.title or model.name
    if best.num_spare:
        load = f"with {counted(best.num_spare, 'replica')} out, {load}"
    if not best.keeps:
        return (
            f"No: {who} of {title} want more than {what}. Simulated {load}, {percent(run.good_fraction, 1)} of "
            f"requests keep both limits, where {shown_share(promise.percentile)} should."
        )
    each = best.latencies.get("TPOT")
    following = f" and a TPOT of at most {fmt(each.value, 's', 3)}" if each is not None else ""
    need = "needs" if demand.users == 1 else "need"
    return (
        f"{who} of {title} {need} {what}. Even {load}, {shown_share(promise.percentile)} of requests have a TTFT of at "
        f"most {fmt(run.ttft_s(promise.percentile), 's', 3)}{following}."
    )


def _spare(best: Proposal) -> str:
    """How many of the replicas may be out."""
    return f" ({best.num_spare:,} of them spare)" if best.num_spare else ""


def _cut(demand: Demand) -> str:
    return all_cut(demand.cut_fraction, demand.load.prompt, demand.load.output, demand.traffic.max_context)


def _binding(best: Proposal) -> str:
    spent = ", ".join(
        f"{name} {percent(share)}" for name, share in best.resource_shares.items() if share >= 0.05
    )
    if best.num_added and best.keeps:
        return f"{_added(best)} At {short(best.held_per_s)} requests/s a step is bound by {spent}."
    if best.num_added:
        return (
            f"{BINDS[best.binds].capitalize()} binds: each of {best.num_replicas:,} replicas gets "
            f"{short(best.held_per_s)} requests/s ({best.held_tokens_per_s:,.0f} tokens/s), where one holds "
            f"{_in_closed_form(best)}. There a step is bound by {spent}."
        )
    return (
        f"{BINDS[best.binds].capitalize()} binds: one replica holds {short(best.held_per_s)} requests/s "
        f"({best.held_tokens_per_s:,.0f} tokens/s) within the limits, {_most(best)}. There a step is bound by {spent}."
    )


def _added(best: Proposal) -> str:
    """Why there are more replicas than the closed form asks for, or fewer, and what each of them gets and keeps."""
    at, reached = fmt(best.demand.promise.percentile, "percentile"), best.limit_shares[best.binds]
    fewer = f"{best.num_fewer:,} replicas fewer" if best.num_fewer > 1 else "one replica fewer"
    tried = f"With {fewer}, too few requests keep both limits when simulated. " if best.num_fewer else ""
    needed = " that are needed" if best.num_spare else ""
    each = f"Each of {best.num_replicas:,} replicas{needed}" if best.num_replicas > 1 else "One replica"
    return (
        f"{tried}{each} gets "
        f"{short(best.held_per_s)} requests/s ({best.held_tokens_per_s:,.0f} tokens/s) "
        f"{full_load(best)}, where {BINDS[best.binds]} is nearest its limit, at {percent(reached)} "
        f"of it ({at}); one holds {_in_closed_form(best)}."
    )


def _in_closed_form(best: Proposal) -> str:
    return f"{short(best.held.rate_per_s)} requests/s in closed form within the limits, {_most(best)}"


def _most(best: Proposal) -> str:
    return f"{short(best.held.most_per_s)} requests/s without them"


def _results(best: Proposal, figure: Breakdown) -> dict[str, Cell]:
    run, most = best.run, best.held
    return {
        "chip": best.replica.chip.name,
        "num_chips": best.num_chips,
        "num_chips_low": figure.band.low if figure.band else None,
        "num_chips_high": figure.band.high if figure.band else None,
        "num_replicas": best.num_deployed,
        **({"num_spare_replicas": best.num_spare} if best.num_spare else {}),
        "tp": best.replica.tp,
        "pp": best.replica.pp,
        "dp": best.replica.dp,
        "ep": best.replica.ep,
        "precision": best.precision,
        **banded("ttft", best.latencies.get("TTFT")),
        **banded("tpot", best.latencies.get("TPOT")),
        "good_fraction": run.good_fraction,
        "spare_fraction": best.spare_fraction,
        "replica_requests_per_s": best.held_per_s,
        "replica_most_per_s": most.most_per_s,
        "chip_output_tokens_per_s": best.chip_output_tokens_per_s,
        "binds": best.binds,
        "level": most.price.level,
        "requests_per_s": best.offered_per_s,
        **(
            {"mean_requests_per_s": best.demand.stretch.mean_per_s} if best.demand.stretch is not None else {}
        ),
        "prompt_tokens": best.demand.load.prompt,
        "output_tokens": best.demand.load.output,
    }


def _notes(scenario: Scenario, plan: ServingPlan) -> tuple[str, ...]:
    best, demand = plan.chosen, plan.demand
    low, high = best.held.price.band
    ttft_low, ttft_high = best.replica.engine.band("TTFT")
    varied = demand.traffic.source or demand.load.spread or demand.load.output_spread
    ending = "" if varied else ", all of one length"
    lines = [
        f"requests of {demand.load.prompt:,.0f} tokens in and {demand.load.output:,.0f} out on average"
        f"{' as they are cut' if demand.cut_fraction else ''} ({demand.traffic.name}{ending})",
        f"band: of ten measured runs eight have a TPOT of {low:.2f} to {high:.2f} and a TTFT of {ttft_low:.2f} to "
        f"{ttft_high:.2f} of what is predicted",
    ]
    if demand.users and demand.reuse is None:
        pace, at_once = "each user reads one answer after the other at the pace of the TPOT limit", ""
        if best.hurried is not None:
            kept = percent(best.hurried.good_fraction)
            at_once = f"; where none reads and all ask again at once, {kept} of requests keep both limits"
            if not varied and not demand.think_s:
                at_once += (
                    " in the first rounds: who all ask for one length meet more and more later, and do not where "
                    "lengths differ by a few per cent"
                )
        lines.append(pace + at_once)
    upkeep = plan.part(Upkeep)
    if 0 < best.num_spare < upkeep.num_lost:
        lines.append(
            f"a node that fails takes {counted(upkeep.num_lost, 'replica')} that stand on it, more than are spare"
        )
    if demand.stretch is not None:
        lines += replayed(best, demand.stretch)
    if plan.apart:
        lines.append(
            "pools for prompts and answers are beside the plan: power and failures are of replicas that do both"
        )
    if demand.reuse is not None:
        lines.append(_turns(best))
    if best.num_deployed > MOST_REPLICAS:
        lines.append(
            f"at most {MOST_REPLICAS:,} replicas can be simulated: the command below has {SOME_REPLICAS} of them under "
            "their share of the load"
        )
    weak = sorted(
        {
            candidate.replica.chip.name
            for candidate in plan.best
            if candidate.held.price.level == "datasheet only"
        }
    )
    if weak:
        lines.append(f"no measured kernels of {', '.join(weak)}: datasheet and generic efficiencies")
    return (
        *lines,
        *(
            cut_share(scenario, demand.cut_fraction, demand.traffic.max_context)
            if demand.stretch is None or not demand.stretch.num_too_long
            else ()
        ),
        *context_notes(best.replica.model, best.replica.max_context),
    )


def _turns(best: Proposal) -> str:
    """How conversations were simulated, and what caches had of their prompts."""
    where = f" and stays on its replica ({option('routing', TURNS_ROUTING)})" if best.is_routed else ""
    pace = "; users ask again as soon as they have their answer and have thought" if best.demand.users else ""
    return (
        f"a conversation has {short(best.demand.traffic.conversation.num_turns)} turns on average{where}; of prompt "
        f"tokens {percent(best.run.hit_fraction)} were found in caches, {percent(best.cached_fraction)} in closed form"
        f"{pace}"
    )


def _next(scenario: Scenario, plan: ServingPlan) -> tuple[str, ...]:
    """The same service simulated, its techniques, on a fabric what its failures take, and our error."""
    best = plan.chosen
    replica, there = best.replica, group_inputs(best.replica, best.precision)
    promised: dict[str, Plain | None] = (
        {"ttft": f"{best.demand.promise.ttft_s:.6g}s"} if is_changed(scenario, "users_in") else {}
    )
    fleet = {**there, **_fleet(best), **promised}
    commands = [follow(scenario, "simulate serve", fleet)]
    if best.num_spare and best.num_deployed <= MOST_REPLICAS:
        out: dict[str, Plain] = {"replicas": list(range(best.num_spare))}
        failures: Tables = {"failure": [*scenario.said.get("failure", ()), out]}
        commands.append(follow(scenario, "simulate serve", fleet, tables=failures))
    if plan.apart and plan.apart[0].keeps:
        commands.append(follow(scenario, "simulate serve", {**apart_pools(plan.apart[0]), **promised}))
    if not any(is_changed(scenario, name) for name in NOT_OF_A_REPLICA):
        share = {"rate": _rounded(best.replica_rate_per_s), **mean_lengths(best.demand), **promised}
        commands.append(follow(scenario, "show techniques", {**there, **share}))
    if scenario.given("on"):
        site: dict[str, Plain | None] = {"chip": replica.chip.name, "chips": best.num_chips}
        commands.append(follow(scenario, "show blast-radius", site))
    files = deploy_service(scenario, plan) if best.keeps else ()
    return (*commands, *files, our_error(scenario, "inference"))


def _fleet(best: Proposal) -> dict[str, Plain | None]:
    """All replicas under all of the load; of more than can be simulated, some under their share."""
    routed: dict[str, Plain | None] = {"routing": TURNS_ROUTING} if best.is_routed else {}
    if best.num_deployed <= MOST_REPLICAS:
        return {"replicas": best.num_deployed, **routed}
    users, rate_per_s = best.load_of(SOME_REPLICAS)
    load: dict[str, Plain | None] = {"users": users} if best.demand.users else {"rate": _rounded(rate_per_s)}
    if best.demand.stretch is not None:
        load = {"trace": None, **load, **mean_lengths(best.demand)}
    return {"replicas": SOME_REPLICAS, **load, **routed}


def _rounded(value: float) -> int | float:
    return whole_or_float(float(f"{value:.6g}"))
