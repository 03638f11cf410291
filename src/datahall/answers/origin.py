"""Whether a leaf of a figure is an input: what somebody said is, be it usual; what nobody said is a default."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from datahall.breakdown import Breakdown, given
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.training import TrainingLayout


def attributed(figure: Breakdown, scenario: Scenario) -> Breakdown:
    """The figure with what was said called an input, and an input that nobody said an assumption: its default."""
    return _attributed(figure, scenario, _stated(scenario))


def _attributed(figure: Breakdown, scenario: Scenario, stated: Collection[str]) -> Breakdown:
    if any(_is_said(scenario, name, stated) for name in figure.fields):
        own = figure.note if figure.origin == "input" else ""
        return given(figure.name, figure.value, figure.unit, own)
    if figure.origin == "input" and figure.fields:
        note = f"default, {figure.note}" if figure.note else "default"
        return msgspec.structs.replace(figure, origin="assumption", note=note, fields=())
    parts = tuple(_attributed(part, scenario, stated) for part in figure.parts)
    return msgspec.structs.replace(figure, parts=parts, fields=())


def _stated(scenario: Scenario) -> Collection[str]:
    """The inputs, by attribute, that a person's layout file states."""
    if not scenario.given("layout"):
        return ()
    from datahall.training.layout.file import read_layout

    return read_layout(scenario.one(TrainingLayout).file).states


def _is_said(scenario: Scenario, name: str, stated: Collection[str]) -> bool:
    """Whether a person said an input, by its name or attribute, in some table of it or in their layout file."""
    known = scenario.form.fields
    field = known.get(name) or next((one for one in known.values() if one.attribute == name), None)
    if field is None:
        return False
    by_file = field.section in ("layout", "training") and field.attribute in stated
    return by_file or any(field.key in table for table in scenario.said.get(field.section, ()))
