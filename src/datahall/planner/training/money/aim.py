"""What a plan of a training run has the least of, of the numbers of chips that are in time, and what it may cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import NamedTuple

import msgspec

from datahall.planner.plan import FEWEST_CHIPS, LEAST_COST, Objective, objective_of
from datahall.planner.training.money.cost import cost_usd, costs_usd, with_cost
from datahall.planner.training.operations import energy_of, with_site
from datahall.planner.training.plan import TrainingPlan
from datahall.power.sections.run import RunPower
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.wanted.goal import Goal
from datahall.scenario.words import Aims
from datahall.training.pipeline.execution import Execution


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """An objective, how much of it a plan takes, infinite where nobody knows, and the most that it may cost."""

    objective: Objective
    value: Callable[[TrainingPlan], float]
    priced: Callable[[TrainingPlan], TrainingPlan] = lambda plan: plan
    step_value: Callable[[Execution], float] | None = None  # of layouts on the same chips; None: the fastest
    budget_usd: float = inf

    def over(self, plan: TrainingPlan) -> bool:
        """Whether a plan costs more than it may."""
        return self.budget_usd < inf and cost_usd(plan) > self.budget_usd

    def key(self, plan: TrainingPlan) -> tuple[bool, float, int]:
        """What plans are ranked by: what costs too much comes last, the cheapest first."""
        over = self.over(plan)
        return over, cost_usd(plan) if over else self.value(plan), plan.num_chips

    def pays(self, plan: TrainingPlan) -> dict[str, float]:
        """What tells whether still more chips are worth a look: of money what each way to have them takes."""
        if self.is_money or self.objective == FEWEST_CHIPS:
            return costs_usd(plan)
        return {self.objective.name: self.value(plan)}

    @property
    def is_money(self) -> bool:
        """Whether the least cost is wanted."""
        return self.objective == LEAST_COST


FEWEST = Aim(objective=FEWEST_CHIPS, value=lambda plan: float(plan.num_chips))


def aim_of(scenario: Scenario) -> Aim:
    """What a scenario wants the least of, and what it may cost."""
    asked = scenario.one(Goal)
    takes = VALUES[asked.objective]
    return Aim(
        objective=objective_of(asked.objective),
        value=partial(takes.of_plan, scenario),
        priced=lambda plan: with_cost(plan, scenario),
        step_value=None if takes.of_step is None else partial(takes.of_step, scenario),
        budget_usd=inf if asked.budget_usd is None else asked.budget_usd,
    )


class Takes(NamedTuple):
    """How much of an objective a run takes, and a layout on the same chips where the fastest has not the least."""

    of_plan: Callable[[Scenario, TrainingPlan], float]
    of_step: Callable[[Scenario, Execution], float] | None = None


def energy_j(scenario: Scenario, plan: TrainingPlan) -> float:
    """Energy of the site while the run lasts [J]."""
    found = with_site(plan, scenario).section(RunPower)
    return inf if found is None else found.energy.value


def carbon_kg(scenario: Scenario, plan: TrainingPlan) -> float:
    """Carbon of that energy [kg]."""
    found = with_site(plan, scenario).section(RunPower)
    return inf if found is None else found.carbon.value


# of each objective (`AIM_ROWS`, scenario/aims.py)
VALUES: dict[Aims, Takes] = {
    "cost": Takes(lambda _, plan: cost_usd(plan)),
    "chips": Takes(lambda _, plan: FEWEST.value(plan)),
    "energy": Takes(energy_j, of_step=energy_of),
    "carbon": Takes(carbon_kg, of_step=energy_of),
    "time": Takes(lambda _, plan: plan.elapsed_s),
}
