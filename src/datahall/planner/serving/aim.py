"""What a plan of a service has the least of, and how much of it a candidate takes.

cost     a month on the cheapest way that is allowed      chips    of all replicas
energy   of a day of the site, at the load asked          carbon   of that energy, on the site's grid
time     of an answer to one who asks alone: of its layout, whatever the load
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import msgspec

from datahall.planner.plan import Objective
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.cost import served
from datahall.planner.serving.operations import power_of
from datahall.planner.serving.plan import FEWEST_CHIPS
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


class Aim(msgspec.Struct, frozen=True):
    """An objective, and how much of it a candidate takes; infinite where nobody knows."""

    objective: Objective
    value: Callable[[Candidate], float]

    def key(self, candidate: Candidate) -> tuple[float, int]:
        """What candidates are ranked by: what nobody knows comes last, and then fewer chips first."""
        return self.value(candidate), candidate.num_chips

    def most(self, candidate: Candidate, below: Candidate) -> int:
        """The most replicas with which a candidate is better than another; 0: with none that hold the load."""
        limit, few = self.key(below), candidate.num_least
        most = max(few, 2 * candidate.num_replicas, 1 + below.num_chips // candidate.replica.num_chips)
        if self.key(_times(candidate, few)) >= limit:
            return 0
        while few < most:
            middle = (few + most + 1) // 2
            few, most = (middle, most) if self.key(_times(candidate, middle)) < limit else (few, middle - 1)
        return few


CHIPS = Aim(FEWEST_CHIPS, lambda candidate: float(candidate.num_chips))


def _times(candidate: Candidate, count: int) -> Candidate:
    return msgspec.structs.replace(candidate, num_replicas=count)


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
