"""A plain number is in SI, whether it is a keyword of a function or stands in a question that is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datahall as dh
from datahall.answers import ask as asking
from datahall.answers.ask import form_of
from datahall.answers.verbs import BY_NAME, VERBS
from datahall.errors import DatahallError
from datahall.scenario.field import Field
from datahall.scenario.kinds import Kind, Listed, Mapped, Percentile, Quantity, Share
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.lengths import LengthsKind

UNITS = (Quantity, Share, Percentile, LengthsKind)


def measured(kind: Kind) -> bool:
    """Whether an input is a number with a unit, or several of them."""
    return isinstance(kind, UNITS) or (isinstance(kind, Listed | Mapped) and measured(kind.of))


def number(kind: Kind) -> float:
    """A number within the bounds of a kind that stands for nothing but itself."""
    if isinstance(kind, Share):
        return (max(kind.least, 0.0) + min(kind.most, 1.0)) / 2
    if isinstance(kind, LengthsKind):
        return 321
    assert isinstance(kind, Quantity)
    return min(kind.most, max(kind.least, 0.0) + 1.5)


def value(kind: Kind) -> Any:
    if isinstance(kind, Mapped):
        return {"eu": number(kind.of)}
    return [number(kind.of)] if isinstance(kind, Listed) else number(kind)


FIELDS = [
    (verb.name, field)
    for verb in VERBS
    if verb.by_file
    for section in form_of(verb.name).sections
    for field in form_of(verb.name).sections[section]
    if measured(field.kind)
]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions are read and not answered: what was read is what comes back."""
    monkeypatch.setattr(asking, "answered", lambda scenario, _: scenario)
    monkeypatch.setattr(asking, "answer_of", lambda reply: reply)
    monkeypatch.setattr("datahall.answers.functions.answer_of", lambda reply: reply)


def outcome(asked: Any) -> object:
    """The sections that were read, or what was wrong with which input."""
    try:
        found = asked()
    except DatahallError as error:
        problems = getattr(error, "problems", ())
        return sorted(str(one.message) for one in problems) or [
            error.marked[0] if error.marked else error.message
        ]
    assert isinstance(found, Scenario)
    return found.sections


@pytest.mark.usefixtures("read")
@pytest.mark.parametrize(("verb", "field"), FIELDS, ids=[f"{verb} {field.path}" for verb, field in FIELDS])
def test_a_plain_number_is_read_alike(verb: str, field: Field) -> None:
    form, said = form_of(verb), value(field.kind)
    concept = next(one for one in form.concepts if one.name == field.section)
    row = {field.key: said}
    keywords = {field.section: row} if concept.inline else {field.name: said}
    first = {name: form.fields[name].kind.sample.strip('"') for name in form.arguments[:1]}
    by_name = outcome(lambda: getattr(dh, BY_NAME[verb].function)(*first.values(), **keywords))
    head = {form.fields[name].section: {form.fields[name].key: one} for name, one in first.items()}
    whole: dict[str, Any] = {"ask": verb}
    for section, table in (*head.items(), (field.section, row)):
        whole |= table if not section else {section: {**whole.get(section, {}), **table}}
    assert outcome(lambda: dh.ask(whole)) == by_name
    if isinstance(by_name, dict):
        (found,) = [getattr(one, field.attribute) for one in by_name[field.section]]
        assert found == said or isinstance(field.kind, Mapped | Listed | LengthsKind | Percentile)


@pytest.mark.usefixtures("read")
def test_values_of_an_array_library_and_paths_are_plain(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("arrival_s,prompt,output\n0,10,10\n")
    asked = {"deployment": {"tp": np.int64(2)}, "traffic": {"trace": file}}
    one = dh.ask({"ask": "simulate serve", "model": "llama-3.1-8b", **asked})
    assert one.sections == dh.simulate_serve("llama-3.1-8b", tp=2, trace=file).sections  # type: ignore[attr-defined]
