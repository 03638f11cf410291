"""`show build-or-buy`: chips of one's own or tokens by an API, by how much, and from which volume on it flips."""

from __future__ import annotations

from math import isnan

from datahall.answer import Answer, Axis, Cell, Column, LineChart, Mark, Series, Table
from datahall.answers.economics.idle import idle_cached
from datahall.answers.economics.tables import ways_table
from datahall.answers.follow import follow
from datahall.answers.supply.idle import idle_supply, left_out_notes
from datahall.breakdown import Breakdown
from datahall.counted import counted
from datahall.economics.market import day_of
from datahall.economics.supply.limits import left_out
from datahall.economics.ways import not_priced
from datahall.errors import option
from datahall.planner.buying.growth import asked_model
from datahall.planner.buying.service import Choice, asked_of, choice_of
from datahall.planner.serving.early import candidate_chips
from datahall.planner.serving.money.cost import Served
from datahall.planner.serving.question import question_of
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.hosted import Business, HostedModel
from datahall.scenario.sections.money.purchase import Purchase
from datahall.units import fmt


def show_build_or_buy(scenario: Scenario) -> Answer:
    """Build or buy, at a volume and within a latency."""
    tokens = scenario.one(Business).monthly_tokens
    assert tokens is not None
    found = choice_of(scenario, tokens)
    return Answer(
        kind="build or buy",
        inputs=used(scenario, found),
        verdict="yes" if found.is_possible else "no",
        headline=_headline(scenario, found),
        binding=_binding(scenario, found),
        results=choice_results(found),
        tables=choice_tables(found),
        figure=_figure(found),
        charts=_charts(found),
        notes=choice_notes(scenario, found),
        next_commands=choice_next(scenario, found),
    )


def prepare(scenario: Scenario) -> None:
    """Make what is asked for, without looking for hardware."""
    question_of(asked_of(asked_model(scenario), 1e9).scenario)


def used(scenario: Scenario, found: Choice) -> dict[str, Cell]:
    """What stands for inputs that nobody said."""
    inputs: dict[str, Cell] = {"as_of": day_of(scenario.one(Purchase), scenario.catalog).isoformat()}
    if found.served:
        inputs["chips"] = ", ".join(one.candidate.replica.chip.name for one in found.served)
    if found.api is not None:
        inputs["api"] = found.api.price.name
    return inputs


def own_words(best: Served) -> str:
    """What serves, and how it is had."""
    return f"{counted(best.num_chips, 'chip')} of {best.candidate.replica.chip.name}, {best.had.name}"


def _headline(scenario: Scenario, found: Choice) -> str:
    business, best, api = scenario.one(Business), found.best, found.api
    within = "" if business.latency_s is None else f" within {fmt(business.latency_s, 's')}"
    tokens = f"{fmt(found.tokens, 'tokens')} a month"
    volume = f"{tokens}{within}"
    if_so = f", if it answers{within}" if within and not scenario.given("api_latency") else ""
    if not found.is_possible:
        late = "the API is too slow" if found.api_is_late else "nobody hosts the model"
        return f"No: {volume} can be had in no way: {found.unserved}; {late}."
    both = found.at_volume
    if best is None:
        assert api is not None
        bill = fmt(api.month_usd(found.tokens), "usd")
        return (
            f"Buy: {api.price.name} serves {volume if not if_so else tokens} for {bill}{if_so}; nothing of one's own "
            f"does: {found.unserved}."
        )
    costs = "cost" if best.num_chips > 1 else "costs"
    own = f"{own_words(best)}, {costs} {fmt(best.own.month_usd(found.tokens), 'usd')}"
    if both is None or api is None:
        return f"Build: nobody hosts the model; {volume} on {own}."
    if found.api_is_late:
        return f"Build: the API is too slow for {volume}; {own}."
    saved = fmt(both.apart_fraction, "fraction")
    if found.builds:
        return f"Build: {volume} on {own}, {saved} less than {fmt(both.api_usd, 'usd')} by {api.price.name}."
    times = fmt(both.own_over_api_ratio, "ratio")
    asked = tokens if if_so else volume
    return f"Buy: {asked} cost {fmt(both.api_usd, 'usd')} by {api.price.name}{if_so}; {own}, {times} of that."


def _binding(scenario: Scenario, found: Choice) -> str:
    best, api, flips = found.fullest, found.api, found.break_even
    if best is None or api is None:
        return ""
    if found.api_is_late:
        answers_s, asked_s = scenario.one(HostedModel).answers_s, scenario.one(Business).latency_s
        assert answers_s is not None
        assert asked_s is not None
        return (
            f"The API is no choice at any volume: it answers in {fmt(answers_s, 's')}, where {fmt(asked_s, 's')} are "
            "asked."
        )
    full = fmt(best.own.full_usd_per_mtok, "usd_per_mtok")
    price = fmt(api.blended.value, "usd_per_mtok")
    if flips is None:
        return (
            f"At this API's price it never flips: a full replica's tokens cost {full}, the API's {price}. An API "
            f"must cost more than {full} before one's own chips pay."
        )
    return (
        f"One's own chips are cheaper from {fmt(flips.value, 'tokens')} a month on; full, a replica of "
        f"{best.candidate.replica.chip.name} serves {fmt(best.own.replica_tokens, 'tokens')} at {full}, where the API "
        f"takes {price}."
    )


def _figure(found: Choice) -> Breakdown | None:
    """The break-even; where there is none, a month of a replica, or the API's price."""
    flips = found.break_even
    if flips is not None:
        return flips
    if found.best is not None:
        return found.best.own.replica
    return found.api.blended if found.api is not None else None


def choice_results(found: Choice) -> dict[str, Cell]:
    """The decision as numbers."""
    best, api, flips, both = found.best, found.api, found.break_even, found.at_volume
    results: dict[str, Cell] = {"builds": found.builds, "request_tokens": found.request_tokens}
    if best is not None:
        results |= {
            "chip": best.candidate.replica.chip.name,
            "num_chips": best.num_chips,
            "way": best.had.name,
            "chip_usd_per_hour": best.had.usd_per_hour,
            "replica_usd": best.own.replica.value,
            "replica_tokens": best.own.replica_tokens,
            "own_usd": best.own.month_usd(found.tokens),
            "own_usd_per_mtok": best.own.token_usd_per_mtok(found.tokens),
            "full_usd_per_mtok": best.own.full_usd_per_mtok,
        }
    if found.fullest is not None:
        results["least_full_usd_per_mtok"] = found.fullest.own.full_usd_per_mtok
        results["fullest_tokens"] = found.fullest.own.replica_tokens
    if api is not None:
        results |= {
            "api": api.price.name,
            "api_usd_per_mtok": api.blended.value,
            "api_usd": api.month_usd(found.tokens),
        }
    if both is not None:
        results["own_over_api_ratio"] = both.own_over_api_ratio
        results["apart_fraction"] = both.apart_fraction
    if flips is not None:
        results["break_even_tokens"] = flips.value
    return results


def choice_tables(found: Choice) -> tuple[Table, ...]:
    """Chips that serve it, the curve of volumes, what each kind of token costs, ways to have the chip."""
    best = found.best
    if best is None:
        return ()
    return (
        _served_table(found),
        *((_curve_table(found),) if found.curve else ()),
        _token_table(found, best),
        ways_table(best.ways, best.had),
    )


def _served_table(found: Choice) -> Table:
    return Table(
        title="chips that serve it, cheapest way of each",
        columns=(
            Column("chip"), Column("chips", "count"), Column("had"), Column("chip-hour", "usd_per_hour"),
            Column("month", "usd"), Column("all tokens", "usd_per_mtok"), Column("full replica", "usd_per_mtok"),
        ),
        rows=tuple(
            (
                one.candidate.replica.chip.name, one.num_chips, one.had.name, one.had.usd_per_hour,
                one.own.month_usd(found.tokens), one.own.token_usd_per_mtok(found.tokens), one.own.full_usd_per_mtok,
            )
            for one in found.served
        ),
        marked=0,
        note="chips as the planner says, for the busiest hour; months with overheads and staff",
    )  # fmt: skip


def _curve_table(found: Choice) -> Table:
    points = found.curve
    return Table(
        title="the same at other volumes",
        columns=(
            Column("tokens a month", "tokens"), Column("chip"), Column("replicas", "count"),
            Column("one's own", "usd"), Column("API", "usd"), Column("one's own over API", "ratio"), Column("then"),
        ),
        rows=tuple(
            (
                one.tokens, chip, one.num_replicas, one.own_usd, one.api_usd, one.own_over_api_ratio,
                "build" if one.builds or found.api_is_late else "buy",
            )
            for chip, one in points
        ),
        marked=next(index for index, (_, one) in enumerate(points) if one.tokens == found.tokens),
        note="on the chip that is cheapest there, in whole replicas, by what one holds at the volume that is asked; "
        "each volume asked for itself is planned and simulated, and may take more of them",
    )  # fmt: skip


def _token_table(found: Choice, best: Served) -> Table:
    costs, api = best.tokens, found.api
    price = api.price if api is not None else None
    rows: list[tuple[Cell, ...]] = [
        ("input", costs.input.value, None if price is None else price.input_usd_per_mtok),
        ("output", costs.output.value, None if price is None else price.output_usd_per_mtok),
        ("all, as they are mixed", costs.blended.value, None if api is None else api.blended.value),
    ]
    if costs.cached is not None:
        listed = None if price is None or isnan(price.cached_usd_per_mtok) else price.cached_usd_per_mtok
        rows.insert(1, ("cached input", costs.cached.value, listed))
    return Table(
        title="a million tokens",
        columns=(Column("tokens"), Column("one's own", "usd_per_mtok"), Column("API", "usd_per_mtok")),
        rows=tuple(rows),
        note="one's own by the time that each kind takes of the chips at this load, before overheads",
    )


def _charts(found: Choice) -> tuple[LineChart, ...]:
    points = [one.point for one in found.curve]
    if not points:
        return ()
    tokens = tuple(one.tokens for one in points)
    return (
        LineChart(
            title="a month by volume",
            x=Axis("tokens a month", "tokens", log=True),
            y=Axis("cost", "usd", log=True),
            series=(
                Series("one's own", tokens, tuple(one.own_usd for one in points)),
                Series("API", tokens, tuple(one.api_usd for one in points)),
            ),
            marks=(Mark("asked", found.tokens),),
        ),
    )


def choice_notes(scenario: Scenario, found: Choice) -> tuple[str, ...]:
    """What the decision rests on, and what is not priced."""
    best, api, business = found.best, found.api, scenario.one(Business)
    lines = [
        f"requests of {found.request_tokens:,.0f} tokens, {fmt(found.input_share, 'fraction')} of them prompts; the "
        f"busiest hour is {fmt(business.peak_ratio, 'ratio')} the mean"
    ]
    if api is not None:
        hosts = f"the cheapest of {counted(api.num_hosts, 'host')}, " if api.num_hosts > 1 else ""
        lines.append(f"API: {api.price.name}, {hosts}list price of {api.price.source.date}")
        lines += idle_cached(scenario, api.price)
        if scenario.one(HostedModel).batch_fraction:
            lines.append(f"the discount on batches is the usual one of hosts; {api.price.name} may have none")
    if business.latency_s is not None and not scenario.given("api_latency"):
        lines.append(f"nobody promises an API's latency; {option('api_latency')} says one that was measured")
    if best is not None:
        lines += [f"not priced: {line}" for line in not_priced(best.ways)]
        if best.had.buying == "own" and best.had.owned is not None and best.had.owned.capex.missing:
            lines.append(f"the price to own leaves out {' and '.join(best.had.owned.capex.missing)}")
        if not scenario.given("staff"):
            lines.append(f"no staff is counted; {option('staff')} adds it")
    chips = candidate_chips(scenario)
    without = left_out_notes(left_out(scenario, chips))
    return (*lines, *without, *idle_supply(scenario, chips, says_country=False))


def choice_next(scenario: Scenario, found: Choice) -> tuple[str, ...]:
    """The plan behind it, and the price of the chip."""
    best = found.best
    if best is None or found.plan is None:
        return (follow(scenario, "catalog api-prices", {"hosted": scenario.root.model}),)
    rate = float(f"{found.plan.demand.rate_per_s:.4g}")
    chip = best.candidate.replica.chip.name
    changes: dict[str, Plain | None] = {"model": found_model(scenario), "rate": rate, "chips": [chip]}
    latency_s = scenario.one(Business).latency_s
    if latency_s is not None:  # which is the plan's limit of the first token
        changes["ttft"] = scenario.form.fields["latency"].kind.write(latency_s)
    planned = follow(scenario, "plan serve", changes)
    return (planned, follow(scenario, "show cost", {"priced": chip}))


def found_model(scenario: Scenario) -> str:
    """The model that is served."""
    return asked_model(scenario).root.model
