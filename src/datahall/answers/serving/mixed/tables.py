"""The tables of a fleet of several kinds of chip, and its figures."""

from __future__ import annotations

from datahall.answer import Cell, Column, Table
from datahall.answers.serving.words import layout_words
from datahall.breakdown import Breakdown, chosen, product, total
from datahall.counted import counted
from datahall.economics.sections.service import ServiceCost
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.mixed.plan import MixedPlan
from datahall.units import fmt

SPLIT = "chosen by the search: the least of the objective that holds the load with what can be had"


def pool_table(plan: MixedPlan) -> Table:
    """The pools behind the router."""
    mix = plan.chosen
    spare = f"; {counted(mix.num_spare, 'replica')} of them spare, whichever are out" if mix.num_spare else ""
    return Table(
        title="pools behind one router",
        columns=(
            Column("chip"),
            Column("one replica"),
            Column("replicas", "count"),
            Column("chips", "count"),
            Column("share of the load", "fraction", key="load_fraction"),
            Column("weight", "ratio"),
            Column("month", "usd"),
        ),
        rows=tuple(
            (
                pool.chosen.replica.chip.name,
                layout_words(pool.chosen.replica, pool.chosen.precision),
                count,
                chips,
                share,
                weight,
                _month(pool.part(ServiceCost)),
            )
            for pool, count, chips, share, weight in zip(
                plan.pools, mix.counts, mix.pool_chips, mix.shares, mix.weights, strict=True
            )
        ),
        note="weight: requests in flight on a replica at what it holds, over those of the first; the router sends each "
        f"request where the fewest are for the weight{spare}",
    )


def _month(cost: ServiceCost) -> float | None:
    return None if cost.had is None else cost.had.month.value


def alone_table(plan: MixedPlan) -> Table:
    """What each kind would take alone."""
    rows: list[tuple[Cell, ...]] = []
    for one, bill in zip(plan.best, plan.bills, strict=True):
        name = one.replica.chip.name
        rows.append(
            (
                name,
                layout_words(one.replica, one.precision),
                one.num_deployed,
                one.num_chips,
                plan.stock.get(name),
                None if bill is None else bill.month_usd,
                _why(plan, one),
            )
        )
    return Table(
        title="each kind alone",
        columns=(
            Column("chip"),
            Column("one replica"),
            Column("replicas", "count"),
            Column("chips", "count"),
            Column("can be had", "count", key="num_available"),
            Column("month", "usd"),
            Column("why not"),
        ),
        rows=tuple(rows),
        note=f"{plan.objective.row.first}; can be had: –, where nobody says that it is short",
    )


def _why(plan: MixedPlan, one: Candidate) -> str:
    if not one.keeps:
        return "too few requests keep the limits"
    missing = plan.num_missing(one)
    return f"{counted(missing, 'chip')} short" if missing else f"more {plan.objective.row.more}"


def chips_of_all(plan: MixedPlan) -> Breakdown:
    """chips = Σ replicas of a pool × chips of one."""
    mix = plan.chosen
    parts = []
    for one, count in zip(mix.alone, mix.counts, strict=True):
        name = one.replica.chip.name
        each = chosen("chips of a replica", one.replica.num_chips, "count", SPLIT)
        parts.append(product(f"chips of {name}", (chosen("replicas", count, "count", SPLIT), each), "count"))
    return total("chips", parts)


def month_of_all(plan: MixedPlan) -> Breakdown | None:
    """month = Σ months of the pools; None where nobody prices one of them."""
    costs = [pool.part(ServiceCost) for pool in plan.pools]
    months = [
        cost.had.month.named(f"{cost.chip}, {cost.had.way.name}") for cost in costs if cost.had is not None
    ]
    return total("a month", months) if len(months) == len(costs) else None


def ways_of_all(plan: MixedPlan) -> str:
    """How the chips of each pool are had."""
    costs = [pool.part(ServiceCost) for pool in plan.pools]
    return " and ".join(
        f"{cost.chip} {cost.had.way.name} ({fmt(cost.had.month.value, 'usd')})"
        for cost in costs
        if cost.had is not None
    )
