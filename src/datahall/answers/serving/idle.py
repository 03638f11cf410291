"""Inputs of a service that change nothing as it is: what each of them waits for did not happen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan

from datahall.answers.economics.idle import idle_terms
from datahall.answers.idle import idle_network
from datahall.cluster.wiring import wiring_of
from datahall.economics.sections.service import ServiceCost
from datahall.errors import option
from datahall.inference.engine.asked import implied_chip
from datahall.inference.engine.replica import Replica, joined
from datahall.inference.fleet.service import Outcome
from datahall.inference.fleet.summary import is_scaled, is_shrunk
from datahall.inference.simulation.run import ServingRun
from datahall.inference.step.idle import idle_inputs
from datahall.planner.serving.plan import ServingPlan
from datahall.scenario.idle import do_nothing, idle_together, is_changed
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.failure import Failure
from datahall.scenario.sections.fleet import Router
from datahall.scenario.words import FREE_DRAFT
from datahall.units import fmt

COUNTING = ("least-outstanding", "two-choices")  # routings for which requests of a replica are counted
AUTOSCALER = ("cold_start", "interval", "patience")


def idle_in_run(scenario: Scenario, outcome: Outcome) -> tuple[str, ...]:
    """Of a service that was simulated."""
    run, service = outcome.run, outcome.service
    pools, scaling = service.fleet.pools, run.scaling
    lines = [
        *idle_network(
            scenario,
            [pool.joined for pool in pools],
            lambda: _by_all(scenario, [(pool.replica, pool.count, pool.role != "both") for pool in pools]),
        ),
        *_idle_experts(scenario, [pool.replica for pool in pools]),
        *_idle_by_engine(scenario, run, any(stream.traffic.shares_prefixes for stream in service.streams)),
        *_idle_tiers(scenario, run, swaps=any(pool.replica.engine.preemption == "swap" for pool in pools)),
    ]
    if not service.fleet.routes:
        lines += idle_together(
            scenario, ("routing", "affinity_load", "spill"), "there is one replica to go to"
        )
    if len({pool.weight_ratio for pool in pools}) == 1:
        lines += idle_together(scenario, ("weight",), "all replicas have the same")
    elif service.fleet.routing not in COUNTING:
        lines += idle_together(scenario, ("weight",), f"{service.fleet.routing} counts no requests")
    if scaling is not None and not is_scaled(scaling):
        lines += idle_together(scenario, AUTOSCALER, "the number of replicas stayed the same")
    elif scaling is not None and not is_shrunk(scaling) and _would_not_shrink(scenario, run):
        lines += idle_together(scenario, ("patience",), "no replica was stopped")
    lines += _late(scenario, outcome)
    if len({stream.priority for stream in service.streams}) == 1:
        lines += idle_together(scenario, ("priority",), "all requests have the same")
    return tuple(lines)


def _late(scenario: Scenario, outcome: Outcome) -> tuple[str, ...]:
    """Failures that begin after all requests have ended."""
    run, failures = outcome.run, [one for one in scenario.all(Failure) if one.of_service]
    late = [one for one in failures if one.start_s >= run.duration_s] if not run.num_unfinished else []
    if not late:
        return ()
    named = (
        [option("failure")] if late == failures else [f"a failure at {fmt(one.start_s, 's')}" for one in late]
    )
    return (do_nothing(named, f"the last request ends at {fmt(run.duration_s, 's', 3)}"),)


def _would_not_shrink(scenario: Scenario, run: ServingRun) -> bool:
    """Whether the usual patience would have stopped no replica either: it is longer, or longer than the run."""
    return Router().patience_s >= min(scenario.one(Router).patience_s, run.duration_s)


def idle_in_plan(scenario: Scenario, plan: ServingPlan) -> tuple[str, ...]:
    """Of the deployment that was chosen."""
    best = plan.chosen
    return (
        *idle_network(
            scenario,
            [joined(best.replica)],
            lambda: _by_all(scenario, [(one.replica, one.num_joined, False) for one in plan.candidates]),
            searched=True,
        ),
        *_idle_experts(scenario, [best.replica]),
        *_idle_by_engine(scenario, best.run, best.demand.traffic.shares_prefixes),
        *(
            idle_together(scenario, ("busiest",), "the trace is no longer")
            if plan.demand.stretch is not None and plan.demand.stretch.is_whole
            else ()
        ),
        *(
            idle_together(scenario, ("whole_output_blocks",), "blocks never run short")
            if best.replica.engine.whole_output_blocks and best.never_short
            else ()
        ),
    )


def idle_in_closed_form(scenario: Scenario, replica: Replica) -> tuple[str, ...]:
    """Of a replica in closed form, beside which a disaggregated one stands."""
    usual = scenario.one(Deployment).draft == FREE_DRAFT
    return (
        *(
            idle_together(scenario, ("draft",), f"{FREE_DRAFT} is what drafts if nothing else is said")
            if usual
            else ()
        ),
        *idle_network(scenario, [joined(replica, hands_over=True)]),
        *_idle_experts(scenario, [replica]),
        *idle_together(
            scenario,
            ("preemption", "prefix_caching", "whole_prompt_blocks", "whole_output_blocks"),
            "in closed form blocks never run out, and what a cache holds is said, not found",
        ),
    )


def idle_tiers_of_turns(scenario: Scenario, has_turns: bool) -> tuple[str, ...]:
    """Of caches below the chips, and of what users think, where no request is a turn of a conversation."""
    if has_turns:
        return ()
    return idle_together(
        scenario,
        ("host_cache", "host_link", "drive_cache", "drive_rate", "think"),
        "no request is a turn of a conversation",
    )


def _by_all(scenario: Scenario, placed: Iterable[tuple[Replica, int, bool]]) -> dict[str, str]:
    """What does nothing for any replica, with why; each with how many there are and whether it hands over."""
    wiring = wiring_of(scenario)
    found = [
        idle_inputs(replica, count, wiring, scenario.catalog, hands_over=hands_over)
        for replica, count, hands_over in placed
    ]
    brought = implied_chip(scenario) is not None  # where the fabric brought its chip, it did something
    first = found[0] if found else {}
    return {
        name: why
        for name, why in first.items()
        if all(name in one for one in found) and not (brought and name == "on")
    }


def _idle_experts(scenario: Scenario, replicas: Iterable[Replica]) -> tuple[str, ...]:
    lines: list[str] = []
    some = [replica for replica in replicas if replica.model.moe is not None]
    if some and all(replica.ep == 1 for replica in some):
        lines += idle_together(scenario, ("routing_skew",), "every chip has a part of every expert")
    if some and all(replica.dp == 1 for replica in some):
        lines += idle_together(
            scenario, ("expert_exchange",), "no ranks with sequences of their own meet at experts"
        )
    return tuple(lines)


def _idle_by_engine(scenario: Scenario, run: ServingRun, shares: bool) -> tuple[str, ...]:
    lines: list[str] = []
    if not run.num_preempted:
        lines += idle_together(scenario, ("preemption",), "no request had to leave")
    if not shares:
        lines += idle_together(scenario, ("prefix_caching",), "no two prompts begin alike")
    if not run.num_over_budget:
        lines += idle_together(
            scenario, ("chunked_prefill",), "every prompt fits into what is left of a step"
        )
    if not run.num_over_blocks:
        lines += idle_together(scenario, ("whole_prompt_blocks",), "no prompt that is cut is short of blocks")
    return tuple(lines)


def _idle_tiers(scenario: Scenario, run: ServingRun, *, swaps: bool) -> tuple[str, ...]:
    """What is swapped out goes over the link that a cache on the host brings; what is computed again does not."""
    lines: list[str] = []
    if not run.host_hit_tokens and not (swaps and run.num_preempted and is_changed(scenario, "host_link")):
        lines += idle_together(scenario, ("host_cache", "host_link"), "no block came back from a host")
    if not run.drive_hit_tokens:
        lines += idle_together(scenario, ("drive_cache", "drive_rate"), "no block came back from a drive")
    return tuple(lines)


def cut_run(scenario: Scenario, outcome: Outcome) -> tuple[str, ...]:
    """What the context did to the requests of a run."""
    cut = outcome.cut
    if outcome.is_cut:
        parts = {
            "prompts": cut.num_prompts,
            "answers": cut.num_outputs,
            "turns of conversations": cut.num_turns,
        }
        words = [f"{num:,} {what}" for what, num in parts.items() if num]
        done = "were cut or left out" if cut.num_turns else "were cut"
        return (f"{_listed(words)} {done} to fit the context of {_context(outcome):,} tokens",)
    if outcome.run.num_too_long:
        return ()
    return _uncut(scenario)


def _uncut(scenario: Scenario) -> tuple[str, ...]:
    """It may have asked for more chips all the same."""
    said = is_changed(scenario, "max_context")
    return (f"{option('max_context')} cuts nothing: no request is longer",) if said else ()


def _context(outcome: Outcome) -> int:
    return max(stream.traffic.max_context for stream in outcome.service.streams)


def _listed(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def cut_share(scenario: Scenario, share: float, context: int) -> tuple[str, ...]:
    """What the context does to the requests of a closed form."""
    if not share:
        return _uncut(scenario)
    return (f"{100 * share:.3g} % of requests are cut to fit the context of {context:,} tokens",)


def idle_money(scenario: Scenario, plan: ServingPlan) -> tuple[str, ...]:
    """Terms of ways that nobody prices, of an API that nobody has, or that lists no price of what is in its cache."""
    cost = plan.part(ServiceCost)
    lines = idle_terms(scenario, cost.chip, cost.unpriced) if len(plan.best) == 1 else ()
    if cost.api is None:
        return (*lines, *idle_together(scenario, ("cached", "batched"), "nobody hosts the model"))
    if isnan(cost.api.price.cached_usd_per_mtok):
        why = f"{cost.api.price.name} lists no price of what its cache has"
        return (*lines, *idle_together(scenario, ("cached",), why))
    return lines
