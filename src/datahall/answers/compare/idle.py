"""Inputs that say nothing of what is compared."""

from __future__ import annotations

from datahall.errors import ScenarioError
from datahall.scenario.idle import does_nothing
from datahall.scenario.scenario import Scenario

SUPPLY = ("country", "without", "licensed")


def refuse_idle(names: set[str], why: str) -> None:
    """Refuse an input that none of the questions takes that are asked."""
    for name in sorted(names):
        raise ScenarioError(does_nothing(name, why), field=name, hint="leave it out")


def refuse_unsupplied(scenario: Scenario, kind: str) -> None:
    """Refuse limits of supply where no chips are compared."""
    if kind != "chip":
        refuse_idle(
            {name for name in SUPPLY if scenario.given(name)}, "they are of chips, and none are compared"
        )
