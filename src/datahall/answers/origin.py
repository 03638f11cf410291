"""Whether a leaf of a figure is an input: what somebody said is, be it usual; what nobody said is a default."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from datahall.breakdown import Breakdown, given
from datahall.scenario.field import fields
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.training import TrainingLayout

USUAL = "as is usual"


def said_by(scenario: Scenario) -> frozenset[str]:
    """The inputs, by name and by attribute, that a person said: in some table of it, or in their layout file."""
    known, stated = scenario.form.fields.values(), _stated(scenario)
    said = [
        field
        for field in known
        if field.attribute in stated
        or any(field.key in table for table in scenario.said.get(field.section, ()))
    ]
    return frozenset(name for field in said for name in (field.name, field.attribute))


def _stated(scenario: Scenario) -> Collection[str]:
    """The inputs, by attribute, that a person's layout file states."""
    if not scenario.given("layout"):
        return ()
    from datahall.training.layout.file import read_layout

    return read_layout(scenario.one(TrainingLayout).file).states


def taken_by(scenario: Scenario) -> frozenset[str]:
    """The inputs, by name and by attribute, that its verb takes: of others there is no default that could be said."""
    tables = (field for concept in scenario.form.tables for field in fields(concept.name))
    known = (*scenario.form.fields.values(), *tables)
    return frozenset(name for field in known for name in (field.name, field.attribute))


def attributed(figure: Breakdown, said: Collection[str], taken: Collection[str] | None = None) -> Breakdown:
    """The figure with what was said called an input, and an input that nobody said an assumption: its default.

    `taken`: those that can be said; of another the usual is assumed.
    """
    if any(name in said for name in figure.fields):
        own = figure.note if figure.origin == "input" else ""
        return given(figure.name, figure.value, figure.unit, own)
    if figure.origin == "input" and figure.fields:
        word = "default" if taken is None or any(name in taken for name in figure.fields) else USUAL
        note = f"{word}, {figure.note}" if figure.note else word
        return msgspec.structs.replace(figure, origin="assumption", note=note, fields=())
    parts = tuple(attributed(part, said, taken) for part in figure.parts)
    return msgspec.structs.replace(figure, parts=parts, fields=())
