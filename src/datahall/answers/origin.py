"""Whether a leaf of a figure is an input: what somebody said is, be it usual; what nobody said is a default."""

from __future__ import annotations

import msgspec

from datahall.breakdown import Breakdown, given
from datahall.scenario.scenario import Scenario


def attributed(figure: Breakdown, scenario: Scenario) -> Breakdown:
    """The figure with what was said called an input, and an input that nobody said an assumption: its default."""
    if any(_is_said(scenario, name) for name in figure.fields):
        own = figure.note if figure.origin == "input" else ""
        return given(figure.name, figure.value, figure.unit, own)
    if figure.origin == "input" and figure.fields:
        note = f"default, {figure.note}" if figure.note else "default"
        return msgspec.structs.replace(figure, origin="assumption", note=note, fields=())
    parts = tuple(attributed(part, scenario) for part in figure.parts)
    return msgspec.structs.replace(figure, parts=parts, fields=())


def _is_said(scenario: Scenario, name: str) -> bool:
    """Whether a person said an input, by its name or attribute, in some table of it; or their layout file may have."""
    known = scenario.form.fields
    field = known.get(name) or next((one for one in known.values() if one.attribute == name), None)
    if field is None:
        return False
    by_file = scenario.given("layout") and field.section in ("layout", "training")
    return by_file or any(field.key in table for table in scenario.said.get(field.section, ()))
