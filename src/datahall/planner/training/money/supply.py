"""What a plan of a training run says of the supply of its chips, and of the regions that they stand in."""

from __future__ import annotations

from datahall.breakdown import given
from datahall.economics.sections.stands import stands_in, text_bytes
from datahall.economics.sections.supply import supplied
from datahall.planner.training.plan import TrainingPlan
from datahall.scenario.scenario import Scenario


def with_supply(plan: TrainingPlan, scenario: Scenario) -> TrainingPlan:
    """The plan with who makes and sells its chips, and where regions are named with those: its data goes there once."""
    chip = plan.cluster.chip
    plan = plan.with_section(supplied(scenario, chip))
    tokens = given("tokens", plan.num_tokens, "tokens", field="tokens")
    stands = stands_in(scenario, chip, text_bytes(scenario.catalog, "data of the run", tokens))
    return plan if stands is None else plan.with_section(stands)
