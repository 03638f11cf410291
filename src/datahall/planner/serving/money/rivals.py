"""What a plan of a service says of money: its bill, what would make another chip win, and who beats whom in what.

flip of a chip-hour = hour · (month of the chosen one − staff) / (month of the rival − staff)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite

import msgspec

from datahall.economics.sections.service import ServiceCost
from datahall.economics.ways import not_priced
from datahall.planner.plan import LEAST_COST
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.money.cost import Served, cost_section, served, ways_to_have
from datahall.planner.serving.objective import Aim
from datahall.planner.serving.operations import power_of
from datahall.planner.serving.plan import Alike, Rival, ServingPlan
from datahall.power.sections.service import ServicePower
from datahall.scenario.scenario import Scenario


def with_money(plan: ServingPlan, scenario: Scenario, aim: Aim) -> ServingPlan:
    """The plan with its bill, beside those of the other chips."""
    bills = {one.replica.chip.name: served(scenario, one) for one in plan.best}
    mine = bills[plan.chosen.replica.chip.name]
    plan = msgspec.structs.replace(
        plan,
        value=_known(aim.value(plan.chosen)),
        served=tuple(one for one in bills.values() if one is not None),
        rivals=tuple(
            _rival(scenario, aim, one, plan.chosen, mine, bills[one.replica.chip.name])
            for one in plan.best[1:]
        ),
        weighed=alike(scenario, plan.kept),
    )
    section: ServiceCost = cost_section(scenario, plan.chosen, mine)
    return plan.with_section(section)


def _rival(
    scenario: Scenario,
    aim: Aim,
    candidate: Candidate,
    chosen: Candidate,
    mine: Served | None,
    bill: Served | None,
) -> Rival:
    by_cost = aim.objective == LEAST_COST  # by another no price decides
    return Rival(
        candidate=candidate,
        value=_known(aim.value(candidate)),
        more_fraction=more_fraction(aim, candidate, chosen),
        served=bill,
        flip_usd_per_hour=None
        if mine is None or bill is None or not by_cost
        else flip_usd_per_hour(mine, bill),
        why_not="; ".join(not_priced(ways_to_have(scenario, candidate))) if bill is None else "",
    )


def flip_usd_per_hour(mine: Served, rival: Served) -> float | None:
    """The price of a chip-hour at which a rival costs as much a month; None where no price does."""
    left = mine.month_usd - rival.fixed_usd
    return rival.had.usd_per_hour * left / (rival.month_usd - rival.fixed_usd) if left > 0.0 else None


def more_fraction(aim: Aim, candidate: Candidate, best: Candidate) -> float | None:
    """How much more of the objective a candidate takes than the best; None where one of them is not known."""
    value, least = aim.value(candidate), aim.value(best)
    return value / least - 1.0 if isfinite(value) and isfinite(least) else None


def alike(scenario: Scenario, kept: Sequence[Candidate]) -> tuple[Alike, ...]:
    """What was simulated and keeps the limits, with its cost, latency and energy; cheapest first."""
    rows = [_measures(scenario, one) for one in kept]
    found = [
        Alike(
            candidate=one,
            cost_usd=_known(row[0]),
            latency_s=row[1],
            energy_j=_known(row[2]),
            on_front=not any(_beats(other, row) for other in rows),
        )
        for one, row in zip(kept, rows, strict=True)
    ]
    return tuple(sorted(found, key=lambda one: (one.cost_usd is None, one.cost_usd, one.latency_s)))


def _measures(scenario: Scenario, one: Candidate) -> tuple[float, float, float]:
    assert one.run is not None
    bill, power = served(scenario, one), power_of(one, scenario)
    return (
        inf if bill is None else bill.month_usd,
        one.run.e2e_s(one.demand.promise.percentile),
        power.energy.value if isinstance(power, ServicePower) else inf,
    )


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether one is nowhere worse than another, and somewhere better."""
    return one != other and all(mine <= its for mine, its in zip(one, other, strict=True))


def _known(value: float) -> float | None:
    return value if isfinite(value) else None
