"""Inputs of a site that change nothing in a plan."""

from __future__ import annotations

from typing import Any

from datahall.planner.plan import Plan
from datahall.power.sections.unknown import UnknownPower
from datahall.scenario.idle import idle_together
from datahall.scenario.scenario import Scenario


def idle_site(scenario: Scenario, plan: Plan[Any]) -> tuple[str, ...]:
    """All of them, where nobody knows what the plan draws."""
    unknown = plan.section(UnknownPower)
    if unknown is None:
        return ()
    said = [name for name, field in scenario.form.fields.items() if field.section == "site"]
    return idle_together(scenario, said, unknown.why)
