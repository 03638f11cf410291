"""What a plan of a training run costs, and where that is more than there is: by how much, and what would be enough."""

from __future__ import annotations

from math import inf

import msgspec

from datahall.breakdown import Breakdown, derived, product
from datahall.catalog.entries.offer import PRICE_KINDS
from datahall.economics.capex import capex_of
from datahall.economics.market import day_of
from datahall.economics.own import whole_servers
from datahall.economics.run import span_years
from datahall.economics.sections.run import Paid, TrainingCost
from datahall.economics.ways import Way, ways_of
from datahall.planner.buying.run import hours_of
from datahall.planner.training.money.spot import run_had
from datahall.planner.training.plan import TrainingPlan
from datahall.reliability.closed_form import expected
from datahall.reliability.ettr import HARDLY_ANY
from datahall.reliability.run import Run
from datahall.reliability.sections.goodput import Goodput
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.words import Buying
from datahall.units import fmt

ON_SPOT = PRICE_KINDS["spot"].called


def with_cost(plan: TrainingPlan, scenario: Scenario) -> TrainingPlan:
    """The plan with its cost, on all chips that there are; as it was where the run never ends."""
    if plan.part(Goodput).elapsed_s == inf:
        return plan
    chip = plan.cluster.chip
    buy = scenario.one(Purchase).buy
    had, unpriced = bills_of(plan, scenario, buy)
    said, day = scenario.one(Ownership).capex_usd, day_of(scenario.one(Purchase), scenario.catalog)
    capex = capex_of(chip, plan.num_there, scenario.catalog, said, day)
    owns = "own" in buy and capex is not None
    count = derived("chips of whole servers", whole_servers(chip, plan.num_there, scenario.catalog), "count")
    section = TrainingCost(
        chip=chip.name,
        chip_hours=had[0].chip_hours if had else _chip_hours(plan, plan.part(Goodput).run),
        paid=had,
        unpriced=unpriced,
        upfront=product("price of the hardware", (count, capex.price), "usd") if owns and capex else None,
        num_tokens=plan.num_tokens,
    )
    return plan.with_section(section)


def bills_of(
    plan: TrainingPlan, scenario: Scenario, buy: tuple[Buying, ...]
) -> tuple[tuple[Paid, ...], tuple[Way, ...]]:
    """The run by some ways to have its chips, the cheapest first, and those that nobody prices or that are no way."""
    bills, none = [], []
    for way in _ways(plan, scenario, buy):
        why = _why_not(plan, scenario, way)
        if why:
            none.append(msgspec.structs.replace(way, hour=None, why_not=why))
        else:
            bills.append(_paid(plan, scenario, way))
    return tuple(sorted(bills, key=lambda one: one.cost.value)), tuple(none)


def of_tokens(plan: TrainingPlan, scenario: Scenario, way: Way, num_tokens: float) -> Paid:
    """A run of so many tokens on the same layout, on chips that are had a way which is priced."""
    return _paid(msgspec.structs.replace(plan, num_tokens=num_tokens), scenario, way)


def _ways(plan: TrainingPlan, scenario: Scenario, buy: tuple[Buying, ...]) -> list[Way]:
    """Some ways to have the chips while the run lasts; an hour of spot is as it is sold, whatever it keeps."""
    num_chips = plan.num_there
    hours = _chip_hours(plan, run_had(plan, scenario, "rent")).value
    ways = ways_of(
        scenario, plan.cluster.chip, num_chips, job_chips=plan.num_chips, buy=buy,
        span_years=span_years(hours, num_chips),
    )  # fmt: skip
    return [_as_sold(way) for way in ways]


def _as_sold(way: Way) -> Way:
    if way.buying != "spot" or way.market is None or way.market.price is None:
        return way
    return msgspec.structs.replace(way, hour=way.market.price, name=ON_SPOT)


def _why_not(plan: TrainingPlan, scenario: Scenario, way: Way) -> str:
    """Why a way is none: nobody prices it, or the run comes to nothing on it or is too late."""
    if not way.is_priced:
        return way.why_not
    kept = expected(run_had(plan, scenario, way.buying)).ettr
    if kept < HARDLY_ANY:
        return "nodes are taken away so often that the run comes to nothing"
    elapsed_s = plan.duration_s / kept
    if way.buying == "spot" and plan.deadline_s is not None and elapsed_s > plan.deadline_s:
        return f"the run takes {fmt(elapsed_s, 's')} on it, past the deadline"
    return ""


def _paid(plan: TrainingPlan, scenario: Scenario, way: Way) -> Paid:
    assert way.hour is not None
    run = run_had(plan, scenario, way.buying)
    hours = _chip_hours(plan, run)
    cost = product(f"cost of the run, {way.name}", (hours, way.hour), "usd")
    return Paid(way, hours, plan.duration_s / expected(run).ettr, cost)


def _chip_hours(plan: TrainingPlan, run: Run) -> Breakdown:
    """Hours of all chips that there are, with what failures add."""
    return hours_of(run, plan.num_tokens, plan.num_there)


def cost_usd(plan: TrainingPlan) -> float:
    """What a plan costs the cheapest way; infinite where nobody prices it, or it never ends."""
    found = plan.section(TrainingCost)
    return inf if found is None or found.cost_usd is None else found.cost_usd


def costs_usd(plan: TrainingPlan) -> dict[str, float]:
    """What a plan costs each way that is priced."""
    found = plan.section(TrainingCost)
    return {} if found is None else {one.way.name: one.cost.value for one in found.paid}


def chip_hours(plan: TrainingPlan) -> float:
    """Hours of all its chips that are paid, as it is had; infinite where it never ends."""
    found = plan.section(TrainingCost)
    return inf if found is None else found.chip_hours.value
