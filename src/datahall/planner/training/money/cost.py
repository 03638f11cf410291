"""What a plan of a training run costs, and where that is more than there is: by how much, and what would be enough."""

from __future__ import annotations

from math import inf

from datahall.breakdown import Breakdown, derived, product
from datahall.economics.capex import capex_of
from datahall.economics.run import span_years
from datahall.economics.sections.run import Paid, TrainingCost
from datahall.economics.ways import Way, ways_of
from datahall.planner.buying.run import hours_of
from datahall.planner.training.plan import TrainingPlan
from datahall.reliability.sections.goodput import Goodput
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.words import Buying


def with_cost(plan: TrainingPlan, scenario: Scenario) -> TrainingPlan:
    """The plan with its cost, on all chips that there are; as it was where the run never ends."""
    if plan.part(Goodput).elapsed_s == inf:
        return plan
    num_chips = plan.num_there
    hours, chip = chip_hours_of(plan), plan.cluster.chip
    ways = ways_for(plan, scenario, scenario.one(Purchase).buy)
    capex = capex_of(chip, num_chips, scenario.catalog, scenario.one(Ownership).capex_usd)
    owns = "own" in scenario.one(Purchase).buy and capex is not None
    count = derived("chips", num_chips, "count")
    section = TrainingCost(
        chip=chip.name,
        chip_hours=hours,
        paid=tuple(paid(hours, way) for way in ways if way.is_priced),
        unpriced=tuple(way for way in ways if not way.is_priced),
        upfront=product("price of the hardware", (count, capex.price), "usd") if owns and capex else None,
        num_tokens=plan.num_tokens,
    )
    return plan.with_section(section)


def chip_hours_of(plan: TrainingPlan, num_tokens: float | None = None) -> Breakdown:
    """Hours of all chips that there are, with what failures add; of so many tokens on the same layout."""
    return hours_of(plan.part(Goodput).run, num_tokens or plan.num_tokens, plan.num_there)


def ways_for(plan: TrainingPlan, scenario: Scenario, buy: tuple[Buying, ...]) -> tuple[Way, ...]:
    """Some ways to have the chips of a plan while it runs, the cheapest first."""
    num_chips = plan.num_there
    return ways_of(
        scenario, plan.cluster.chip, num_chips, job_chips=plan.num_chips, buy=buy,
        span_years=span_years(chip_hours_of(plan).value, num_chips),
    )  # fmt: skip


def paid(hours: Breakdown, way: Way) -> Paid:
    """A run on chips that are had a way which is priced."""
    assert way.hour is not None
    return Paid(way, product(f"cost of the run, {way.name}", (hours, way.hour), "usd"))


def cost_usd(plan: TrainingPlan) -> float:
    """What a plan costs the cheapest way; infinite where nobody prices it, or it never ends."""
    found = plan.section(TrainingCost)
    return inf if found is None or found.cost_usd is None else found.cost_usd
