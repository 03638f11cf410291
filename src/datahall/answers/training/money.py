"""What a training plan says of money: in its headline, why it is a no, and as results."""

from __future__ import annotations

from datahall.answer import Cell
from datahall.answers.economics.sections import without
from datahall.counted import counted
from datahall.economics.sections.run import TrainingCost
from datahall.planner.training.plan import Fix, TrainingPlan
from datahall.units import fmt


def priced(plan: TrainingPlan) -> str:
    """What the run costs, what it has the least of, and how that stands to the budget."""
    cost = plan.section(TrainingCost)
    if cost is None:
        return ""
    if cost.had is None:
        sold = any(way.market is not None and way.market.price is not None for way in cost.unpriced)
        return f" It has no price: {cost.why_not}." if sold else f" Nobody prices {cost.chip}."
    took = f", where it takes {fmt(plan.longer_s, 's', 3)}" if plan.longer_s is not None else ""
    had = f"{cost.had.way.name}{took}{without(cost.had.way)}"
    return f" It costs {fmt(cost.had.cost.value, 'usd')}, {had}{_least(plan)}{_budget(plan)}.{_bound(cost)}"


def _bound(cost: TrainingCost) -> str:
    """What the run pays only a part of: the whole term of a reservation, or hardware that is bought."""
    if not cost.bound_usd:
        return ""
    return f" That is the hours of the run alone: {fmt(cost.bound_usd, 'usd')} are bound, which other work has to use."


def _least(plan: TrainingPlan) -> str:
    """Of what it has the least of all numbers of chips that are in time."""
    num = plan.num_in_time
    if plan.deadline_s is None or num < 2:
        return ""
    return f", {plan.objective.row.least_run} of {counted(num, 'number')} of chips in time"


def _budget(plan: TrainingPlan) -> str:
    if plan.budget_usd is None:
        return ""
    budget = f"the budget of {fmt(plan.budget_usd, 'usd')}"
    if plan.over is None:
        return f", {fmt(plan.under_usd, 'usd')} below {budget}"
    return f", {fmt(plan.over.by_usd, 'usd')} ({fmt(plan.over.by_fraction, 'fraction')}) over {budget}"


def too_dear(plan: TrainingPlan) -> str:
    """What would be enough, each tried."""
    assert plan.over is not None
    if not plan.over.fixes:
        return (
            "Over the budget: it pays for no other way to have the chips, no fewer of them, no fewer tokens."
        )
    return f"Over the budget; enough would be {' or '.join(map(_fix, plan.over.fixes))}."


def _fix(fix: Fix) -> str:
    return f"{fix.words} (then it costs {fmt(fix.cost_usd, 'usd')})"


def budget_results(plan: TrainingPlan) -> dict[str, Cell]:
    """How the cost stands to the budget."""
    if plan.budget_usd is None:
        return {}
    found: dict[str, Cell] = {"within_budget": plan.over is None}
    if plan.over is not None:
        found |= {"over_usd": plan.over.by_usd, "over_fraction": plan.over.by_fraction}
    else:
        found["under_usd"] = plan.under_usd
    return found
