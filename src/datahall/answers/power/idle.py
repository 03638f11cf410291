"""Inputs of a site that change nothing."""

from __future__ import annotations

from typing import Any

from datahall.planner.plan import Plan
from datahall.power.sections.idle import idle_inputs
from datahall.power.sections.unknown import UnknownPower
from datahall.scenario.idle import idle_notes, idle_together
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.site import Site


def idle_site(scenario: Scenario, plan: Plan[Any], *, swings: bool) -> tuple[str, ...]:
    """All of them where nobody knows what the plan draws; a building beside a PUE, of which only a swing has parts."""
    unknown = plan.section(UnknownPower)
    if unknown is None:
        return idle_building(scenario, swings=swings)
    said = [name for name, field in scenario.form.fields.items() if field.section == "site"]
    return idle_together(scenario, said, unknown.why)


def idle_building(scenario: Scenario, *, swings: bool = True) -> tuple[str, ...]:
    """A building beside a PUE that says all."""
    return idle_notes(scenario, idle_inputs(scenario.one(Site), scenario.catalog, swings=swings))
