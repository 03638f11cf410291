"""Inputs that say nothing of what is compared."""

from __future__ import annotations

from datahall.errors import ScenarioError
from datahall.scenario.idle import does_nothing


def refuse_idle(names: set[str], why: str) -> None:
    """Refuse an input that none of the questions takes that are asked."""
    for name in sorted(names):
        raise ScenarioError(does_nothing(name, why), field=name, hint="leave it out")
