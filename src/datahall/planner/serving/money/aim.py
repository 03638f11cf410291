"""What a plan of a service has the least of, and how much of it a candidate takes.

cost     a month on the cheapest way that is allowed      chips    of all replicas
energy   of a day of the site, at the load asked          carbon   of that energy, on the site's grid
time     of an answer to one who asks alone: of its layout, whatever the load
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

from datahall.planner.plan import objective_of
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.money.cost import served
from datahall.planner.serving.objective import CHIPS, Aim
from datahall.planner.serving.operations import power_of
from datahall.power.sections.service import ServicePower
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.wanted.goal import Goal
from datahall.scenario.words import Aims

ALONE_PER_S = 1e-9  # requests: so few that none meets another


def aim_of(scenario: Scenario) -> Aim:
    """What a scenario wants the least of."""
    asked = scenario.one(Goal).objective
    return Aim(objective_of(asked), _once(partial(VALUES[asked], scenario)))


def month_usd(scenario: Scenario, candidate: Candidate) -> float:
    """A month, the cheapest way that is allowed [$]."""
    found = served(scenario, candidate)
    return inf if found is None else found.month_usd


def num_chips(scenario: Scenario, candidate: Candidate) -> float:
    """Chips of all replicas."""
    del scenario
    return CHIPS.value(candidate)


def energy_j(scenario: Scenario, candidate: Candidate) -> float:
    """Energy of a day of the site [J]."""
    power = power_of(candidate, scenario)
    return power.energy.value if isinstance(power, ServicePower) else inf


def carbon_kg(scenario: Scenario, candidate: Candidate) -> float:
    """Carbon of that energy [kg]."""
    power = power_of(candidate, scenario)
    return power.carbon.value if isinstance(power, ServicePower) else inf


def answer_s(scenario: Scenario, candidate: Candidate) -> float:
    """Time of a mean answer where nobody else asks [s]."""
    del scenario
    return alone_s(candidate)


# of each objective (`AIM_ROWS`, scenario/aims.py), how much a candidate takes
VALUES: dict[Aims, Callable[[Scenario, Candidate], float]] = {
    "cost": month_usd,
    "chips": num_chips,
    "energy": energy_j,
    "carbon": carbon_kg,
    "time": answer_s,
}


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
