"""What an error suggests can be typed where the wrong value stood, and is not refused there again."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.answers.drawing import Asked, asked_verbs, inputs, question, said_in
from tests.answers.sayable import REFUSED

from datahall.answers.ask import form_of, prepare
from datahall.catalog import Catalog
from datahall.errors import DatahallError
from datahall.scenario.field import Field
from datahall.scenario.form import Form
from datahall.scenario.kinds import Count, Kind, Listed, Quantity, Rate, Ratios, Reading, Share, Sides
from datahall.scenario.read import read_names
from datahall.scenario.sections.lengths import LengthsKind
from datahall.units import SPELLINGS

SHELF = Catalog(user=False)
AT = Reading(catalog=SHELF)
NUMBERS = (Count, Quantity, Share, LengthsKind)
SPELLED = {"s": "s", "bytes": "B", "bytes_per_s": "B/s"}
BEYOND = ("-1", "0", "1e-30", "0.5", "1e30", "1e305", "1e308", "1e400", "2^2000", "inf", "nan", "many")
OF_KIND: dict[type[Kind], tuple[str, ...]] = {
    Ratios: ("0:1", "1:2", "1e9:1", "99999:1", "4", "many"),
    Sides: ("0x3", "99999x99999x99999", "-1", "4x", "many"),
}
# a value as a shell takes it for one word: in quotes, or without a blank
MARKED = re.compile(r"⟦(\w+)=([^⟧]*)⟧")
SUGGESTED = re.compile(r'(?:e\.g\.|did you mean) ("[^"]+"|[^\s,;"]*[^\s,;:?"])')


def numbers(form: Form) -> Iterator[tuple[str, Field]]:
    """The inputs of a verb that hold numbers, those of tables that flags give whole among them."""
    for name in inputs(form):
        table, _, key = name.partition(".")
        field = form.of(table)[key] if key else form.fields[name]
        kind = field.kind.of if isinstance(field.kind, Listed) else field.kind
        if isinstance(kind, (*NUMBERS, *OF_KIND)):
            yield name, field


def wrong_values(kind: Kind) -> list[str]:
    inner = kind.of if isinstance(kind, Listed) else kind
    if type(inner) in OF_KIND:
        return list(OF_KIND[type(inner)])
    unit = SPELLED.get(getattr(inner, "unit", ""), "")
    return [value + unit if value[-1].isdecimal() and "^" not in value else value for value in BEYOND]


def refusal(kind: Kind, raw: object) -> DatahallError | None:
    try:
        kind.read(raw, AT)  # type: ignore[arg-type]
    except DatahallError as error:
        return error
    return None


def suggestions(error: DatahallError) -> list[str]:
    return [word.strip('"') for word in SUGGESTED.findall(error.hint)]


@pytest.mark.parametrize("verb", asked_verbs())
def test_a_number_that_is_refused_is_answered_with_one_that_can_be_typed(verb: str) -> None:
    for name, field in numbers(form_of(verb)):
        for raw in wrong_values(field.kind):
            error = refusal(field.kind, raw)
            if error is None:
                continue
            said = suggestions(error)
            assert said, (name, raw, error.hint)
            for value in said:
                assert refusal(field.kind, value) is None, (name, raw, error.hint)


@pytest.mark.parametrize("verb", asked_verbs())
def test_nothing_is_infinite_unless_something_says_how_many(verb: str) -> None:
    form = form_of(verb)
    for name, field in numbers(form):
        kind = field.kind.of if isinstance(field.kind, Listed) else field.kind
        endless = isinstance(kind, Rate) and kind.endless in form.of(field.section)
        units = SPELLINGS.get(getattr(kind, "unit", ""), {"": 1.0})
        for raw in ("inf", float("inf"), *(f"1e308 {word}".strip() for word in units)):
            assert (refusal(field.kind, raw) is None) == (endless and "inf" in str(raw)), (name, raw)


def said_so(asked: Asked, name: str, value: object) -> Asked:
    table, _, key = name.partition(".")
    if not key:
        return Asked(asked.verb, asked.said | {name: value}, asked.tables)
    return Asked(asked.verb, asked.said, asked.tables | {table: [asked.tables[table][0] | {key: value}]})


def refused(asked: Asked, name: str) -> DatahallError | None:
    """The error that finds fault with an input, or with the table that it stands in."""
    given: dict[str, Any] = {**asked.said, **asked.tables}
    try:
        prepare(read_names(form_of(asked.verb), given, SHELF))
    except DatahallError as error:
        return error if error.field in (name, name.partition(".")[0]) else None
    return None


def offered(verb: str) -> list[tuple[str, str]]:
    """What the errors of a verb's inputs offer, each once; of a list it is one of many."""
    found: dict[tuple[str, str], None] = {}
    for name, field in numbers(form_of(verb)):
        if (verb, name) in REFUSED or isinstance(field.kind, Listed):
            continue
        for raw in wrong_values(field.kind):
            error = refusal(field.kind, raw)
            found |= dict.fromkeys((name, value) for value in (suggestions(error) if error else ()))
    return list(found)


@pytest.mark.parametrize("verb", asked_verbs())
def test_what_is_offered_is_taken_or_answered_with_what_is(verb: str) -> None:
    """A bound holds for every model and machine; where this one is closer, its room offers what it takes."""
    form = form_of(verb)
    for name, value in offered(verb):
        alone = question(form, [name], random.Random(name))
        if name not in said_in(alone) or refused(alone, name) is not None:
            continue  # what is drawn beside it is at fault
        asked = said_so(alone, name, value)
        error = refused(asked, name)
        if error is None:
            continue
        fixes: list[tuple[str, str | None]] = [*MARKED.findall(error.hint)]
        fixes = fixes or [(name, word) for word in suggestions(error)]
        fixes += [(error.field, None)] if "leave" in error.hint else []
        assert fixes, (name, value, error.message, error.hint)
        for other, fix in fixes:
            again = refused(said_so(asked, other, fix), name)
            assert again is None, (name, value, error.hint, again)
