"""`datahall plan serve`: the least hardware that serves a model as promised, chip by chip."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import msgspec

from datahall.answer import Answer, Cell
from datahall.answers.bounds import find_model, opened, whole
from datahall.answers.serving.plan_tables import (
    chip_table,
    crosscheck_table,
    load_chart,
    lost_table,
    replica_table,
)
from datahall.answers.serving.words import BINDS, continuous, counted, described, load_of, shown_share
from datahall.breakdown import Band, Breakdown
from datahall.catalog import Catalog
from datahall.errors import ScenarioError, UnitError
from datahall.inference.closed_form.bottleneck import mean_step, resource_shares
from datahall.inference.closed_form.capacity import HEADROOM
from datahall.planner.serve import (
    Choice,
    Confirmed,
    Demand,
    ServingPlan,
    confirmed,
    demand_of_users,
    plan_serving,
)
from datahall.scenario.promise import Promise
from datahall.units import fmt, parse
from datahall.workload.traffic.options import traffic_from
from datahall.workload.traffic.traffic import Traffic

CHIPS = ("h100-sxm", "h200", "b200", "mi300x")
TRAFFIC = "lmsys-chat"


def plan_serve(
    model: str,
    *,
    users: str | int | None = None,
    rate: str | float | None = None,
    ttft: str | float = "1s",
    tpot: str | float = "50ms",
    percentile: str | float = "95",
    chips: str | Sequence[str] = CHIPS,
    traffic: str = "",
    isl: str | int | None = None,
    osl: str | int | None = None,
    think: str | float = 0.0,
    precision: str | Sequence[str] = ("bf16", "fp8"),
    engine: str = "vllm",
    headroom: str | float = HEADROOM,
    tp: int | str = 0,
    catalog: Catalog | None = None,
) -> Answer:
    """The least hardware of each kind of chip that serves so many users, or requests a second, as promised."""
    shelf = opened(catalog)
    known = find_model(model, shelf)
    continuous(engine)
    slo = Promise(
        ttft_s=positive("ttft", ttft, "s"),
        tpot_s=positive("tpot", tpot, "s"),
        percentile=share_of("percentile", percentile),
    )
    named = traffic or ("" if isl is not None or osl is not None else TRAFFIC)
    coming = traffic_from(
        rate=rate, users=users, preset_name=named, isl=isl, osl=osl, max_context=known.max_context
    )
    load = load_of(coming)
    pause_s = positive("think", think, "s", zero=True)
    demand = (
        demand_of_users(whole("users", users), load, slo, think_s=pause_s)
        if users is not None
        else Demand(load=load, slo=slo, rate_per_s=positive("rate", rate or 0.0, "count"))
    )
    names = _names(chips)
    plan = plan_serving(
        known,
        [shelf.chip(name) for name in names],
        demand,
        engine,
        precisions=_names(precision),
        headroom=share_of("headroom", headroom, zero=True),
        tp=whole("tp", tp, at_least=0),
    )
    asked: dict[str, Cell] = {
        "model": known.name, "users": demand.users or None, "requests_per_s": demand.rate_per_s,
        "ttft_s": slo.ttft_s, "tpot_s": slo.tpot_s, "kept_fraction": slo.percentile, "chips": ", ".join(names),
        "prompt_tokens": load.prompt, "output_tokens": load.output, "traffic": coming.name, "engine": engine,
    }  # fmt: skip
    return plan_answer(plan, confirmed(plan, coming), asked, coming)


def share_of(name: str, value: str | float, *, zero: bool = False) -> float:
    """A share from "95", "95 %" or 0.95."""
    try:
        number = parse(value, "fraction")
    except UnitError as error:
        raise ScenarioError(f"--{name}: {error.message}", hint=f"e.g. --{name} 95") from error
    number = number / 100.0 if number > 1 else number
    if not (number < 1 and (number > 0 or (zero and number == 0))):
        least = "0 %, or above it and below 100 %" if zero else "above 0 and below 100 %"
        raise ScenarioError(f"--{name} is {value}; it must be {least}", hint=f'e.g. --{name} "30 %"')
    return number


def positive(name: str, value: str | float, unit: str, *, zero: bool = False) -> float:
    try:
        number = parse(value, unit)
    except UnitError as error:
        raise ScenarioError(f"--{name}: {error.message}", hint=error.hint) from error
    if number < 0 or (number == 0 and not zero):
        raise ScenarioError(f"--{name} is {value}; it must {'not be negative' if zero else 'be above 0'}")
    return number


def _names(given: str | Sequence[str]) -> list[str]:
    words = given.split(",") if isinstance(given, str) else list(given)
    return [word.strip() for word in words if word.strip()]


def plan_answer(
    plan: ServingPlan, played: tuple[Confirmed, ...], asked: dict[str, Cell], coming: Traffic
) -> Answer:
    """A plan in the order a person asks."""
    first = played[0]
    best = first.choice
    return Answer(
        kind="serving plan",
        inputs=asked,
        headline=_headline(first, plan.headroom_fraction),
        binding=_binding(best),
        verdict="yes" if first.keeps else "no",
        results=_results(first),
        tables=(
            chip_table(plan, played),
            replica_table(played),
            crosscheck_table(played, plan.headroom_fraction),
            *((lost_table(plan, played),) if plan.others else ()),
        ),
        figure=_figure(best),
        charts=(load_chart(played),),
        notes=_notes(first, played, coming),
        sources=tuple(
            dict.fromkeys(
                source for source in (best.replica.engine.source, coming.source) if source is not None
            )
        ),
        next_commands=_next(best, coming),
    )


def _headline(first: Confirmed, headroom: float) -> str:
    best = first.choice
    demand, slo, model = best.demand, best.demand.slo, best.replica.model
    who = (
        f"{counted(demand.users, 'user')} at {1 / slo.tpot_s:.3g} tokens/s each"
        if demand.users
        else f"{fmt(demand.rate_per_s, 'requests/s')}"
    )
    run = first.run
    more = 1.0 / (1.0 - headroom) - 1.0
    load = f"at {more:.0%} more load" if more else "at that load"
    what = (
        f"{counted(best.num_chips, best.replica.chip.name, times=True)}: {counted(best.num_replicas, 'replica')} of "
        f"{described(best.replica, best.precision)}"
    )
    if not first.keeps:
        return (
            f"No: {who} of {model.title or model.name} want more than {what}. Played {load}, "
            f"{run.good_fraction:.1%} of requests keep both limits, where {shown_share(slo.percentile)} should."
        )
    tokens_s = run.tpot_s(slo.percentile)
    following = f" and the others every {fmt(tokens_s, 's', 3)}" if isfinite(tokens_s) else ""
    return (
        f"{who} of {model.title or model.name} need {what}. Even {load}, {shown_share(slo.percentile)} of requests "
        f"have their first token in {fmt(run.ttft_s(slo.percentile), 's', 3)}{following}."
    )


def _binding(best: Choice) -> str:
    one = best.carried
    shares = resource_shares(mean_step(one.replica, one.load, one.state))
    spent = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if share >= 0.05)
    return (
        f"{BINDS[one.ends].capitalize()} binds: one replica carries {one.rate_per_s:.3g} requests/s "
        f"({one.output_tokens_per_s:,.0f} tokens/s) under the promise, {one.most_per_s:.3g} without one. There a step "
        f"is bound by {spent}."
    )


def _results(first: Confirmed) -> dict[str, Cell]:
    best, run, slo = first.choice, first.run, first.choice.demand.slo
    one = best.carried
    return {
        "chip": best.replica.chip.name,
        "num_chips": best.num_chips,
        "num_replicas": best.num_replicas,
        "tp": best.replica.tp,
        "pp": best.replica.pp,
        "dp": best.replica.dp,
        "ep": best.replica.ep,
        "precision": best.precision,
        "ttft_s": run.ttft_s(slo.percentile),
        "tpot_s": run.tpot_s(slo.percentile),
        "good_fraction": run.good_fraction,
        "headroom_fraction": best.headroom_fraction,
        "replica_requests_per_s": one.rate_per_s,
        "replica_most_per_s": one.most_per_s,
        "chip_output_tokens_per_s": best.output_tokens_per_s,
        "binds": one.ends,
        "level": one.price.level,
    }


def _figure(best: Choice) -> Breakdown:
    one, demand = best.carried, best.demand
    low, high = one.price.band
    offered = Breakdown(
        name="offered",
        value=demand.rate_per_s,
        unit="requests/s",
        formula="users / (output · TPOT)" if demand.users else "",
    )
    holds = Breakdown(
        name="one replica carries",
        value=one.rate_per_s,
        unit="requests/s",
        formula="the greatest rate at which TTFT and TPOT keep their limits",
        band=Band(
            one.rate_per_s / high, one.rate_per_s / low, f"{best.replica.engine.title}, {one.price.level}"
        ),
        sources=(best.replica.engine.source,),
    )
    group = Breakdown(
        name="chips of a replica", value=float(best.replica.num_chips), unit="count", formula="tp · pp · dp"
    )
    step = mean_step(one.replica, one.load, one.state)
    return Breakdown(
        name="chips",
        value=float(best.num_chips),
        unit="count",
        formula="⌈offered / (carried · (1 − headroom))⌉ · chips of a replica",
        parts=(offered, msgspec.structs.replace(holds, parts=(step,)), group),
        band=Band(
            _chips_at(best, low), _chips_at(best, high), f"{best.replica.engine.title}, {one.price.level}"
        ),
    )


def _chips_at(best: Choice, slower: float) -> float:
    """Chips if every step took so many times what was predicted; rates fall in proportion."""
    return max(1.0, round(best.num_replicas * slower)) * best.replica.num_chips


def _notes(first: Confirmed, played: tuple[Confirmed, ...], coming: Traffic) -> tuple[str, ...]:
    best = first.choice
    load = best.demand.load
    low, high = best.carried.price.band
    ending = "" if coming.source else ", all of one length"
    lines = [
        f"requests of {load.prompt:,.0f} tokens in and {load.output:,.0f} out on average ({coming.name}{ending})",
        f"band: eight of ten measured steps lie between {low:.2f} and {high:.2f} of what is predicted",
    ]
    if best.demand.users:
        lines.append("each user reads one answer after the other at the pace promised")
    weak = sorted(
        {one.choice.replica.chip.name for one in played if one.choice.carried.price.level == "datasheet only"}
    )
    if weak:
        lines.append(f"no measured kernels of {', '.join(weak)}: datasheet and generic efficiencies")
    return tuple(lines)


def _next(best: Choice, coming: Traffic) -> tuple[str, ...]:
    replica, load = best.replica, best.demand.load
    degrees = " ".join(
        f"--{name} {getattr(replica, name)}"
        for name in ("tp", "pp", "dp", "ep")
        if getattr(replica, name) > 1
    )
    where = f"{replica.model.name} --chip {replica.chip.name} {degrees}".rstrip()
    shape = (
        f"--traffic {coming.name}" if coming.source else f"--isl {load.prompt:.0f} --osl {load.output:.0f}"
    )
    tail = "" if best.precision == "bf16" else f" --precision {best.precision}"
    rate, count = best.demand.rate_per_s, best.num_replicas
    return (
        f"datahall simulate serve {where} --replicas {count} --rate {rate:.4g} {shape}{tail}",
        f"datahall show techniques {where} --rate {rate / count:.3g} {shape}{tail}",
        "datahall validate inference",
    )
