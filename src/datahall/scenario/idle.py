"""Inputs that were given and change nothing, said in one way: as a note of the answer, or as why they are refused.

What the declaration knows (`needs`, `against`) is refused by `rules`; this is for what only the answer shows.
"""

from __future__ import annotations

from collections.abc import Mapping

from datahall.errors import option
from datahall.scenario.scenario import Scenario


def does_nothing(name: str, why: str) -> str:
    """What is said of an input that changes nothing.

    >>> from datahall.errors import spelled
    >>> spelled(does_nothing("nic", "all 8 chips are in one scale-up domain"))
    'nic does nothing here: all 8 chips are in one scale-up domain'
    """
    return f"{option(name)} does nothing here: {why}"


def idle_notes(scenario: Scenario, why: Mapping[str, str]) -> tuple[str, ...]:
    """Notes on those of some inputs, each with its reason, that a person gave another value than the usual."""
    return tuple(does_nothing(name, reason) for name, reason in why.items() if _said(scenario, name))


def _said(scenario: Scenario, name: str) -> bool:
    field = scenario.form.fields.get(name)
    if field is None:
        return any(scenario.said.get(name, ()))
    sections = scenario.sections.get(field.section, ())
    return scenario.given(name) and getattr(sections[0], field.attribute) != field.default
