"""What a plan of a service has the least of, and how much of it a candidate takes.

cost     a month on the cheapest way that is allowed      chips    of all replicas
energy   of a day of the site, at the load asked          carbon   of that energy, on the site's grid
time     of an answer to one who asks alone: of its layout, whatever the load
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from datahall.planner.plan import Objective
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.money.cost import served
from datahall.planner.serving.objective import CHIPS, FEWEST_CHIPS, Aim
from datahall.planner.serving.operations import power_of
from datahall.power.sections.service import ServicePower
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.goal import Goal
from datahall.scenario.words import Aims

OBJECTIVES: dict[Aims, Objective] = {
    "cost": Objective("cost", "usd"),
    "chips": FEWEST_CHIPS,
    "energy": Objective("energy", "j"),
    "carbon": Objective("carbon", "kg"),
    "time": Objective("time", "s"),
}
ALONE_PER_S = 1e-9  # requests: so few that none meets another


def aim_of(scenario: Scenario) -> Aim:
    """What a scenario wants the least of."""
    asked = scenario.one(Goal).objective

    def month_usd(candidate: Candidate) -> float:
        found = served(scenario, candidate)
        return inf if found is None else found.month_usd

    def energy_j(candidate: Candidate) -> float:
        power = power_of(candidate, scenario)
        return power.energy.value if isinstance(power, ServicePower) else inf

    def carbon_kg(candidate: Candidate) -> float:
        power = power_of(candidate, scenario)
        return power.carbon.value if isinstance(power, ServicePower) else inf

    values: dict[Aims, Callable[[Candidate], float]] = {
        "cost": month_usd, "energy": energy_j, "carbon": carbon_kg, "time": alone_s,
    }  # fmt: skip
    return CHIPS if asked == "chips" else Aim(OBJECTIVES[asked], _once(values[asked]))


def alone_s(candidate: Candidate) -> float:
    """Time of a mean answer where nobody else asks [s]."""
    state = candidate.held.at(ALONE_PER_S)
    return state.ttft_s + max(0.0, candidate.demand.load.output - 1.0) * state.tpot_s


def _once(value: Callable[[Candidate], float]) -> Callable[[Candidate], float]:
    """The same, computed once for as many replicas of a kind."""
    known: dict[tuple[object, ...], float] = {}

    def remembered(candidate: Candidate) -> float:
        place = (candidate.key, candidate.num_replicas, candidate.offered_per_s)
        if place not in known:
            known[place] = value(candidate)
        return known[place]

    return remembered
