"""Inputs that change nothing where chips are short, or are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from datahall.answers.power.idle import idle_site
from datahall.answers.serving.idle import idle_in_plan, idle_money
from datahall.planner.serving.mixed.plan import MixedPlan
from datahall.planner.serving.mixed.stock import Short
from datahall.planner.serving.plan import ServingPlan
from datahall.scenario.idle import idle_together
from datahall.scenario.scenario import Scenario


def idle_stock(scenario: Scenario, plan: ServingPlan) -> tuple[str, ...]:
    """How many there are, where no kind of chip takes more."""
    if any(isinstance(one, Short) for one in plan.refusals):
        return ()
    return idle_together(scenario, ("available",), "no kind of chip takes more")


def idle_in_mixture(scenario: Scenario, plan: MixedPlan) -> tuple[str, ...]:
    """Of a fleet of several kinds: what does nothing in any of its pools."""
    return (
        *_in_all(plan, lambda pool: idle_in_plan(scenario, pool)),
        *_in_all(plan, lambda pool: idle_money(scenario, pool)),
        *_in_all(plan, lambda pool: idle_site(scenario, pool, swings=False)),
        *idle_together(scenario, ("disaggregated",), "replicas of several kinds are planned to do both"),
    )


def _in_all(plan: MixedPlan, lines: Callable[[ServingPlan], Iterable[str]]) -> tuple[str, ...]:
    said = [tuple(lines(pool)) for pool in plan.pools]
    return tuple(line for line in said[0] if all(line in other for other in said[1:]))
