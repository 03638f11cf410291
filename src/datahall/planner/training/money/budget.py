"""A run that costs more than there is: by how much, and changes that are tried before they are said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import floor, log10

import msgspec

from datahall.economics.sections.run import TrainingCost
from datahall.errors import InfeasibleError, ScenarioError, UnsupportedError, option
from datahall.planner.training.money.cost import bills_of, cost_usd, of_tokens
from datahall.planner.training.plan import Fix, Over, TrainingPlan
from datahall.scenario.buying import chip_ways
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.training import TrainingJob
from datahall.scenario.sections.wanted.goal import Goal
from datahall.scenario.words import Buying
from datahall.units import DAY_S, fmt, parse

HALVINGS = 3  # of the chips
LONGER = (1.5, 2.0, 4.0)  # times the deadline
DIGITS = 2  # of the tokens that a budget pays for

Changed = tuple[str, str, Scenario]  # an input, as it is typed, and the question with it
Replanned = Callable[[Scenario], TrainingPlan]  # the plan of a changed question, with its cost


def within_budget(plan: TrainingPlan, scenario: Scenario, replanned: Replanned) -> TrainingPlan:
    """The plan, and where it costs more than it may by how much, with what would be enough."""
    budget_usd = scenario.one(Goal).budget_usd
    cost = plan.section(TrainingCost)
    if budget_usd is None or cost is None:
        return plan
    if cost.cost_usd is None:
        raise InfeasibleError(
            f"whether {option('budget')} is enough cannot be said: nobody prices {cost.chip} ({cost.why_not})",
            field="budget",
            hint=f"{option('price', '2.50USD/h')}, or another {option('chip')}",
        )
    over = None
    if cost.cost_usd > budget_usd:
        fixes = tuple(_fixes(plan, scenario, budget_usd, replanned))
        over = Over(cost.cost_usd - budget_usd, cost.cost_usd / budget_usd - 1.0, fixes)
    return msgspec.structs.replace(plan, budget_usd=budget_usd, over=over)


def _fixes(plan: TrainingPlan, scenario: Scenario, budget_usd: float, replanned: Replanned) -> Iterator[Fix]:
    """Changes of one input with which the run is paid for, that which changes least of it first."""
    yield from _other_ways(plan, scenario, budget_usd)
    if scenario.one(TrainingJob).deadline_s is not None:
        yield from _first(_later(scenario), budget_usd, replanned)
    elif scenario.given("chips"):
        yield from _first(_fewer(plan, scenario), budget_usd, replanned)
    yield from _fewer_tokens(plan, scenario, budget_usd)


def _other_ways(plan: TrainingPlan, scenario: Scenario, budget_usd: float) -> Iterator[Fix]:
    """The cheapest way to have the chips that nobody allowed."""
    allowed = scenario.one(Purchase).buy
    others: tuple[Buying, ...] = tuple(way for way in chip_ways() if way not in allowed)
    best = next(iter(bills_of(plan, scenario, others)[0]), None) if others else None
    if best is not None and best.cost.value <= budget_usd:
        yield Fix("buy", ",".join((*allowed, best.way.buying)), best.cost.value)


def _later(scenario: Scenario) -> Iterator[Changed]:
    job = scenario.one(TrainingJob)
    assert job.deadline_s is not None
    for times in LONGER:
        days = max(1, round(times * job.deadline_s / DAY_S))
        changed = msgspec.structs.replace(job, deadline_s=days * DAY_S)
        yield "deadline", f"{days}d", scenario.having(changed)


def _fewer(plan: TrainingPlan, scenario: Scenario) -> Iterator[Changed]:
    design = scenario.one(FabricDesign)
    for halving in range(1, HALVINGS + 1):
        if count := plan.num_there >> halving:
            yield "chips", str(count), scenario.having(msgspec.structs.replace(design, chips=count))


def _fewer_tokens(plan: TrainingPlan, scenario: Scenario, budget_usd: float) -> Iterator[Fix]:
    """As many tokens as the budget pays for on the same layout, in two digits."""
    had = plan.part(TrainingCost).had
    assert had is not None
    most = plan.num_tokens * budget_usd / had.cost.value
    place = 10.0 ** (floor(log10(most)) - DIGITS + 1)
    text = fmt(floor(most / place) * place, "tokens").removesuffix(" tokens")
    num_tokens = parse(text, "tokens")
    cost = of_tokens(plan, scenario, had.way, num_tokens).cost.value
    if num_tokens >= 1.0 and cost <= budget_usd:
        yield Fix("tokens", text, cost)


def _first(changes: Iterator[Changed], budget_usd: float, replanned: Replanned) -> Iterator[Fix]:
    """The first of some changes that is enough."""
    for name, text, changed in changes:
        try:
            cost = cost_usd(replanned(changed))
        except (InfeasibleError, ScenarioError, UnsupportedError):
            continue
        if cost <= budget_usd:
            yield Fix(name, text, cost)
            return
