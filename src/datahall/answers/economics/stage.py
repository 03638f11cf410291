"""`show stage`: where a growing firm is, what a customer costs and leaves, what to run, and what flips next."""

from __future__ import annotations

from math import inf

from datahall.answer import Answer, Cell, Column, Table
from datahall.answers.economics.choice import choice_next, choice_notes, choice_tables, own_words, used
from datahall.economics.growth import Growth, sizes
from datahall.planner.buying.growth import growth_of
from datahall.planner.buying.service import Choice
from datahall.scenario.scenario import Scenario
from datahall.scenario.usual import USUAL_MODEL
from datahall.units import fmt


def show_stage(scenario: Scenario) -> Answer:
    """A firm with so many customers that each use so many tokens."""
    growth, found = growth_of(scenario)
    limit = scenario.catalog.share("infrastructure").share_fraction
    inputs = used(scenario, found)
    if not scenario.root.model:
        inputs["model"] = USUAL_MODEL
    return Answer(
        kind="growth stage",
        inputs=inputs,
        verdict="yes" if found.is_possible and (growth.margin_fraction or 0.0) >= 0.0 else "no",
        headline=_headline(growth, found, limit),
        binding=_binding(growth, found),
        results=_results(growth, found, limit),
        tables=(_sizes_table(growth), _stages_table(growth), *choice_tables(found)),
        figure=growth.figure,
        notes=(
            "budgets and shares of stages are one essay's advice, shown beside what things cost here",
            *choice_notes(scenario, found),
        ),
        next_commands=choice_next(scenario, found),
    )


def _headline(growth: Growth, found: Choice, limit: float) -> str:
    if not found.is_possible:
        why = found.unserved or "the API is too slow"
        return f"No: {fmt(growth.tokens, 'tokens')} a month can be had in no way: {why}."
    who = f"{growth.num_customers:,} customers ({growth.stage.title})"
    cost = f"cost {fmt(growth.customer_usd, 'usd')} each a month, {_way(growth, found)}"
    margin = growth.margin_fraction
    if margin is None:
        needed = fmt(growth.needed_usd(limit), "usd")
        return (
            f"{who} {cost}; {needed} of revenue each would keep infrastructure at {fmt(limit, 'fraction')}."
        )
    if margin < 0.0:
        paid = fmt(growth.revenue_usd or 0.0, "usd")
        return f"No: {who} {cost}, {fmt(-margin, 'fraction')} more than the {paid} that they pay."
    within = "within" if (growth.infrastructure_fraction or 0.0) <= limit else "beyond"
    return (
        f"{who} {cost}: a gross margin of {fmt(margin, 'fraction')}, infrastructure {within} the "
        f"{fmt(limit, 'fraction')} of revenue that is advised."
    )


def _way(growth: Growth, found: Choice) -> str:
    if growth.is_own and found.best is not None:
        return f"on {own_words(found.best)}"
    return f"by {found.api.price.name}" if found.api is not None else "by an API"


def _binding(growth: Growth, found: Choice) -> str:
    flips, after = growth.num_flips, growth.next_stage
    lines = []
    if flips is None and growth.own is not None and growth.api is not None:
        lines.append("One's own chips never become cheaper than this API.")
    elif flips is not None and not growth.is_own:
        lines.append(f"What flips next: one's own chips are cheaper from {flips:,} customers on.")
    elif flips is not None:
        lines.append(f"One's own chips have been cheaper since {flips:,} customers.")
    if after is not None:
        lines.append(f"The next stage, {after.title}, begins at {after.num_customers:,}: {after.uses}.")
    del found
    return " ".join(lines)


def _results(growth: Growth, found: Choice, limit: float) -> dict[str, Cell]:
    results: dict[str, Cell] = {"stage": growth.stage.name, "total_tokens": growth.tokens}
    if growth.month_usd < inf:
        results |= {
            "month_usd": growth.month_usd,
            "customer_usd": growth.customer_usd,
            "needed_revenue_usd": growth.needed_usd(limit),
            "advised_fraction": limit,
            "is_own": growth.is_own,
        }
    if growth.api is not None:
        results |= {"api_usd": growth.api_usd, "api_usd_per_mtok": growth.api.value}
    if growth.own is not None:
        results |= {"own_usd": growth.own_usd}
    if found.best is not None:
        results |= {"chip": found.best.candidate.replica.chip.name, "num_chips": found.best.num_chips}
    margin = growth.margin_fraction
    if margin is not None and growth.month_usd < inf:
        results |= {"margin_fraction": margin, "infrastructure_fraction": growth.infrastructure_fraction}
    if growth.num_flips is not None:
        results["flips_at"] = growth.num_flips
    if growth.next_stage is not None:
        results["num_next_stage"] = growth.next_stage.num_customers
    return results


def _sizes_table(growth: Growth) -> Table:
    counts = sizes(growth)
    rows = tuple(growth.at(count) for count in counts)
    return Table(
        title="as it grows",
        columns=(
            Column("customers", "count"), Column("stage"), Column("API", "usd"), Column("one's own", "usd"),
            Column("a customer", "usd"), Column("gross margin", "fraction"), Column("run on"),
        ),
        rows=tuple(
            (
                one.num_customers, one.stage.title, _known(one.api_usd), _known(one.own_usd), _known(one.customer_usd),
                one.margin_fraction, "one's own chips" if one.is_own else "an API",
            )
            for one in rows
        ),
        marked=counts.index(growth.num_customers),
        note="chips as laid out for the customers of now; a row of far more of them wants its own question",
    )  # fmt: skip


def _known(value: float) -> float | None:
    return value if value < inf else None


def _stages_table(growth: Growth) -> Table:
    stages = growth.stages
    return Table(
        title="stages as one essay advises them",
        columns=(
            Column("stage"), Column("customers from", "count"), Column("budget a month", "usd"),
            Column("here at its start", "usd"), Column("runs on"), Column("watches"),
        ),
        rows=tuple(
            (
                one.title, one.num_customers, one.budget_usd, _known(growth.at(one.num_customers).month_usd), one.uses,
                one.watches,
            )
            for one in stages
        ),
        marked=stages.index(growth.stage),
        note="the budget is the most of the stage; it comes to about $10 a customer at every boundary",
    )  # fmt: skip
