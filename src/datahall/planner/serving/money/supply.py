"""What a plan of a service says of the supply of its chips, and of the regions that they stand in."""

from __future__ import annotations

from datahall.breakdown import Breakdown, derived, product
from datahall.economics.sections.service import ServiceCost
from datahall.economics.sections.stands import stands_in, text_bytes
from datahall.economics.sections.supply import supplied
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.money.cost import request_tokens
from datahall.planner.serving.plan import ServingPlan
from datahall.scenario.scenario import Scenario


def with_supply(plan: ServingPlan, scenario: Scenario) -> ServingPlan:
    """The plan with who makes and sells its chips, and where regions are named with those."""
    chip = plan.chosen.replica.chip
    plan = plan.with_section(supplied(scenario, chip))
    stands = stands_in(scenario, chip, _answers(plan, scenario, plan.chosen))
    return plan if stands is None else plan.with_section(stands)


def _answers(plan: ServingPlan, scenario: Scenario, best: Candidate) -> Breakdown:
    """The text of all answers of a month, whose mean is the load over the peak."""
    share = best.demand.load.output / request_tokens(best)
    tokens = product(
        "tokens of answers a month",
        (
            derived("tokens a month", plan.part(ServiceCost).tokens, "tokens", "at the mean load"),
            derived("share of answers", share, "fraction"),
        ),
        "tokens",
    )
    return text_bytes(scenario.catalog, "answers of a month", tokens)
