"""The chips of a serving plan as a figure that adds up: what is offered over what a replica holds, times its chips."""

from __future__ import annotations

from math import isfinite

from datahall.breakdown import (
    Breakdown,
    ceiling,
    chosen,
    derived,
    difference,
    fact,
    given,
    product,
    quotient,
    simulated,
    total,
)
from datahall.inference.closed_form.held_figure import rank_figure
from datahall.inference.step.floor import token_band
from datahall.planner.serving.candidate import Candidate, Proposal
from datahall.planner.serving.demand import Demand

SEARCHED = "chosen by the search: the fewest chips that keep the limits"


def chips_figure(best: Proposal) -> Breakdown:
    """chips = (⌈offered / (held × (1 − headroom))⌉ ± what simulation asked for + spare) × chips of a replica.

    The search chose the degrees of a replica that nobody says.
    """
    room = difference(
        "share that is used",
        derived("all", 1.0, "fraction"),
        given("headroom", best.headroom_fraction, "fraction", field="headroom"),
    )
    load = quotient(
        "offered over held",
        _offered(best.demand),
        product("held with headroom", (_held(best), room), "requests/s"),
        "ratio",
    )
    replicas = ceiling("replicas", load)
    closed = replicas.named("replicas in closed form")
    if best.num_added > 0:
        how = "until enough requests kept both limits with the headroom used up"
        added = simulated("replicas that simulation added", best.num_added, "count", how)
        replicas = total("replicas", (closed, added))
    elif best.num_added:
        how = "the fewest of which enough requests kept both limits with the headroom used up"
        replicas = simulated("replicas", best.num_replicas, "count", how, closed)
        if closed.band is not None:  # the closed form is as far off as it would be, in proportion
            low, high = closed.band.low / closed.value, closed.band.high / closed.value
            replicas = replicas.with_band(low, high, closed.band.basis)
    if best.num_spare:
        spare = given("spare", best.num_spare, "count", field="spare")
        replicas = total("replicas, with spare ones", (replicas, spare))
    degrees = [
        chosen(name, getattr(best.replica, name), "count", SEARCHED).unless_said(name)
        for name in ("tp", "pp", "dp")
        if getattr(best.replica, name) > 1 or name == "tp"
    ]
    group = product("chips of a replica", degrees, "count")
    return product("chips", (replicas, group), "count")


def latency_figures(best: Candidate) -> dict[str, Breakdown]:
    """TTFT and TPOT at the percentile, simulated with the headroom used up; no TPOT where answers have one token."""
    run, promise, engine = best.run, best.demand.promise, best.replica.engine
    assert run is not None
    at = f"P{promise.percentile * 100:g}"
    how = f"over {run.num_measured:,} requests, with the headroom used up"
    basis = f"{engine.title}, kernels {best.held.price.level}"
    tpot_s = run.tpot_s(promise.percentile)
    figures = {
        "TTFT": (run.ttft_s(promise.percentile), engine.band("TTFT")),
        "TPOT": (tpot_s, token_band(best.replica, best.held.price, tpot_s)),
    }
    return {
        name: simulated(f"{name} {at}", value_s, "s", how).with_band(*band, basis)
        for name, (value_s, band) in figures.items()
        if isfinite(value_s)
    }


def _offered(demand: Demand) -> Breakdown:
    """Requests per second: as given or recorded, or of users who read at the pace of the limit."""
    if demand.stretch is not None:
        part = "all of the trace" if demand.stretch.is_whole else "the busiest stretch of the trace"
        num = derived("requests", float(len(demand.stretch.requests)), "count", part)
        return quotient(
            "offered", num, derived("until the next comes", demand.stretch.span_s, "s", part), "requests/s"
        )
    if not demand.users:
        return given("offered", demand.rate_per_s, "requests/s", field="rate")
    limit = given("TPOT limit", demand.promise.tpot_s, "s", field="tpot")
    reading = product("time to read an answer", (_answer(demand), limit), "s")
    turn = reading
    if demand.think_s:
        turn = total(
            "time between requests of a user",
            (reading, given("think time", demand.think_s, "s", field="think traffic")),
        )
    return quotient("offered", given("users", demand.users, "count", field="users"), turn, "requests/s")


def _answer(demand: Demand) -> Breakdown:
    """Tokens of a mean answer: those of a source, of lengths that are drawn or cut, or as many as were said."""
    name, mean, source = "tokens of an answer", demand.load.output, demand.traffic.source
    if source is not None:
        return fact(name, mean, "tokens", source, note=demand.traffic.name)
    if demand.load.output_spread or demand.cut_fraction:
        return derived(name, mean, "tokens", "mean of the lengths that are drawn, cut to the context")
    return given(name, mean, "tokens", field="osl traffic")


def _held(best: Proposal) -> Breakdown:
    """What one replica holds: all its ranks at the rate at which one of the latencies reaches its limit."""
    most = best.held
    each = rank_figure(most, best.step)
    low, high = token_band(best.replica, most.price, most.state.tpot_s)
    basis = f"{best.replica.engine.title}, {most.price.level}"
    ranks = chosen("dp", best.replica.dp, "count", SEARCHED)
    # a step that takes longer holds fewer requests, in proportion
    name = "one replica holds, in closed form" if best.num_added else "one replica holds"
    return product(name, (each.with_band(1 / high, 1 / low, basis), ranks), "requests/s")
