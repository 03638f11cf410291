"""What a plan of a training run has the least of, of the numbers of chips that are in time, and what it may cost."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import msgspec

from datahall.planner.plan import Objective
from datahall.planner.training.choice import TIME
from datahall.planner.training.money.cost import cost_usd, costs_usd, with_cost
from datahall.planner.training.operations import energy_of, with_site
from datahall.planner.training.plan import TrainingPlan
from datahall.power.sections.run import RunPower
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.goal import Goal
from datahall.scenario.words import Aims
from datahall.training.pipeline.execution import Execution

CHIPS = Objective("chips", "count")
OBJECTIVES: dict[Aims, Objective] = {
    "cost": Objective("cost", "usd"),
    "chips": CHIPS,
    "energy": Objective("energy", "j"),
    "carbon": Objective("carbon", "kg"),
    "time": TIME,
}


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
        if self.is_money or self.objective == CHIPS:
            return costs_usd(plan)
        return {self.objective.name: self.value(plan)}

    @property
    def is_money(self) -> bool:
        """Whether the least cost is wanted."""
        return self.objective == OBJECTIVES["cost"]


FEWEST = Aim(objective=CHIPS, value=lambda plan: float(plan.num_chips))


def aim_of(scenario: Scenario) -> Aim:
    """What a scenario wants the least of, and what it may cost."""
    asked = scenario.one(Goal)

    def power(plan: TrainingPlan) -> RunPower | None:
        return with_site(plan, scenario).section(RunPower)

    def energy_j(plan: TrainingPlan) -> float:
        found = power(plan)
        return inf if found is None else found.energy.value

    def carbon_kg(plan: TrainingPlan) -> float:
        found = power(plan)
        return inf if found is None else found.carbon.value

    values: dict[Aims, Callable[[TrainingPlan], float]] = {
        "cost": cost_usd, "chips": FEWEST.value, "energy": energy_j, "carbon": carbon_kg,
        "time": lambda plan: plan.elapsed_s,
    }  # fmt: skip
    by_step = asked.objective in ("energy", "carbon")
    return Aim(
        objective=OBJECTIVES[asked.objective],
        value=values[asked.objective],
        priced=lambda plan: with_cost(plan, scenario),
        step_value=(lambda execution: energy_of(scenario, execution)) if by_step else None,
        budget_usd=inf if asked.budget_usd is None else asked.budget_usd,
    )
