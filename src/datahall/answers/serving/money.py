"""What a serving plan says of money and of its objective: in its headline, beside the other chips, and on the front."""

from __future__ import annotations

from datahall.answer import Axis, Cell, Column, LineChart, Point, Series, Table
from datahall.answers.economics.sections import without
from datahall.answers.serving.words import layout_words, percent
from datahall.counted import counted
from datahall.economics.sections.service import ServiceCost
from datahall.economics.ways import Way
from datahall.errors import option
from datahall.planner.plan import FEWEST_CHIPS, LEAST_COST
from datahall.planner.serving.plan import Alike, Rival, ServingPlan
from datahall.scenario.scenario import Scenario
from datahall.units import fmt


def priced(plan: ServingPlan) -> str:
    """What it costs, what it has the least of, and the next best chip with what would make it win."""
    cost = plan.part(ServiceCost)
    if not plan.chosen.keeps:
        return ""
    if cost.had is None:
        said = f"Nobody prices {cost.chip}"
    else:
        said = f"They cost {fmt(cost.had.month.value, 'usd')} a month, {cost.had.way.name}{without(cost.had.way)}"
    return f" {said}{_least(plan)}.{_api(cost)}"


def _dated(way: Way) -> str:
    """How a chip is had, and of when its price is."""
    return f"{way.name}, {way.dated}" if way.date else way.name


def _least(plan: ServingPlan) -> str:
    """What the chosen one has the least of, and by how much."""
    if not plan.rivals:
        return ""
    words, kinds = plan.objective.row, counted(len(plan.best), "kind")
    if plan.value is None:
        return f"{FEWEST_CHIPS.row.least_service.format(kinds)}, as {words.more} is not known"
    return f"{words.least_service.format(kinds)}{_next(plan, plan.rivals[0])}"


def _next(plan: ServingPlan, rival: Rival) -> str:
    name = rival.candidate.replica.chip.name
    if rival.more_fraction is None or not rival.candidate.keeps:
        return ""
    if plan.objective != LEAST_COST or rival.served is None:
        return f"; next is {name} with {percent(rival.more_fraction)} more"
    flip = rival.flip_usd_per_hour
    wins = f", cheaper below {fmt(flip, 'usd_per_hour')} a chip" if flip is not None else ""
    return f"; next is {name} at {fmt(rival.served.month_usd, 'usd')}{wins}"


def _api(cost: ServiceCost) -> str:
    if cost.api is None or cost.api_month is None:
        return ""
    return f" The same tokens cost {fmt(cost.api_month.value, 'usd')} by {cost.api.price.name}."


def money_results(plan: ServingPlan) -> dict[str, Cell]:
    """The objective, and the next best."""
    found: dict[str, Cell] = {
        "objective": plan.objective.name,
        "objective_value": plan.value,
        "num_kinds": len(plan.best),
    }
    rival = next(iter(plan.rivals), None)
    if rival is not None:
        found |= {
            "next_chip": rival.candidate.replica.chip.name,
            "next_more_fraction": rival.more_fraction,
            "next_month_usd": None if rival.served is None else rival.served.month_usd,
            "next_flip_usd_per_hour": rival.flip_usd_per_hour,
        }
    return found


def money_notes(scenario: Scenario, plan: ServingPlan) -> tuple[str, ...]:
    """What prices leave out."""
    lines = []
    for one in plan.served:
        owned = one.had.owned
        if owned is not None and owned.capex.missing:
            missing = " and ".join(owned.capex.missing)
            lines.append(f"the price to own {one.candidate.replica.chip.name} leaves out {missing}")
    if plan.served and not scenario.given("staff"):
        lines.append(f"no staff is counted; {option('staff')} adds it")
    return tuple(lines)


def price_table(plan: ServingPlan) -> Table:
    """The best of each chip as it is bought, and below which price of its chip-hour it would cost less."""
    cost = plan.part(ServiceCost)
    mine = plan.chosen
    rows: list[tuple[Cell, ...]] = [
        (
            mine.replica.chip.name,
            mine.num_chips,
            f"not priced: {cost.why_not}" if cost.had is None else _dated(cost.had.way),
            None if cost.had is None else cost.had.way.usd_per_hour,
            None if cost.had is None else cost.had.month.value,
            None,
            None,
        ),
        *(_rival(one) for one in plan.rivals),
    ]
    return Table(
        title="each chip as it is bought",
        columns=(
            Column("chip"),
            Column("chips", "count"),
            Column("had"),
            Column("chip-hour", "usd_per_hour"),
            Column("month", "usd"),
            Column(f"more {plan.objective.row.more}", "fraction", key="more_fraction"),
            Column("wins below", "usd_per_hour", key="flip_usd_per_hour"),
        ),
        rows=tuple(rows),
        marked=0,
        note=f"{plan.objective.row.first}, what nobody prices last; the cheapest way of each that is allowed, with "
        "overheads and staff; wins below: the price of its chip-hour at which it costs as much a month",
    )


def _rival(one: Rival) -> tuple[Cell, ...]:
    bill = one.served
    return (
        one.candidate.replica.chip.name,
        one.candidate.num_chips,
        f"not priced: {one.why_not}" if bill is None else _dated(bill.had),
        None if bill is None else bill.had.usd_per_hour,
        None if bill is None else bill.month_usd,
        one.more_fraction,
        one.flip_usd_per_hour,
    )


def front_table(plan: ServingPlan) -> Table:
    """Cost, latency and energy of what was simulated."""
    return Table(
        title="cost, latency and energy",
        columns=(
            Column("chip"),
            Column("one replica"),
            Column("chips", "count"),
            Column("month", "usd"),
            Column(f"answer {_at(plan)}", "s", key="latency_s"),
            Column("energy of a day", "j"),
            Column("beaten"),
        ),
        rows=tuple(
            (
                one.candidate.replica.chip.name,
                layout_words(one.candidate.replica, one.candidate.precision),
                one.candidate.num_chips,
                one.cost_usd,
                one.latency_s,
                one.energy_j,
                "" if one.on_front else "in all three",
            )
            for one in plan.weighed
        ),
        marked=next(
            (index for index, one in enumerate(plan.weighed) if one.candidate.key == plan.chosen.key), None
        ),
        note="all that were simulated and keep the limits, cheapest first; a whole answer with the headroom used up",
    )


def _at(plan: ServingPlan) -> str:
    return fmt(plan.demand.promise.percentile, "percentile")


def front_chart(plan: ServingPlan) -> LineChart | None:
    """The same over two axes, each named with its energy; nothing where fewer than two are priced."""
    shown = [one for one in plan.weighed if one.cost_usd is not None]
    if len(shown) < 2:
        return None
    front = [(one.cost_usd, one.latency_s) for one in shown if one.on_front and one.cost_usd is not None]
    return LineChart(
        title="cost against latency of what was simulated",
        x=Axis("a month", "usd"),
        y=Axis(f"answer {_at(plan)}", "s"),
        series=(Series("not beaten in all three", tuple(x for x, _ in front), tuple(y for _, y in front)),),
        points=tuple(_point(one) for one in shown),
    )


def _point(one: Alike) -> Point:
    assert one.cost_usd is not None
    energy = "" if one.energy_j is None else f", {fmt(one.energy_j, 'j', 3)} a day"
    layout = layout_words(one.candidate.replica, one.candidate.precision)
    return Point(
        label=f"{one.candidate.replica.chip.name}, {layout}{energy}", x=one.cost_usd, y=one.latency_s
    )
