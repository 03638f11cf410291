"""Inputs that do nothing: refused where the declaration knows it, said in one sentence wherever it is found."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from tests.answers.drawing import value_of
from tests.house import HOUSE, MODULES, each, texts

from datahall.answers.ask import form_of
from datahall.answers.verbs import BY_NAME, VERBS
from datahall.catalog import Catalog
from datahall.cli.command import Question
from datahall.errors import DatahallError, DocumentError, spelled
from datahall.scenario.field import CONCEPTS, Field
from datahall.scenario.form import Form
from datahall.scenario.idle import idle_together
from datahall.scenario.kinds import Flag
from datahall.scenario.read import read_names

NOTHING: tuple[object, ...] = (None, "", (), {}, False)


def taken(form: Form, need: str) -> bool:
    """Whether a verb takes what an input needs."""
    name = need.partition("=")[0]
    return name in form.fields or name in {concept.name for concept in form.tables}


def lacking(form: Form, field: Field) -> bool:
    """Whether what an input needs is not there of itself: one of them has a default that does."""
    for need in field.kind.needs:
        name, _, value = need.partition("=")
        other = next((one for one in form.sections[field.section] if one.name == name), None)
        if other is not None and (other.default == value if value else other.default not in NOTHING):
            return False
    return any(
        taken(form, need) or any(one.name == need.partition("=")[0] for one in form.sections[field.section])
        for need in field.kind.needs
    )


CASES = [
    (verb.name, section, field)
    for verb in VERBS
    for section, found in form_of(verb.name).sections.items()
    for field in found
    if lacking(form_of(verb.name), field) and field.name not in form_of(verb.name).required
]


def refusals(verb: str, said: dict[str, Any], shelf: Catalog) -> list[str]:
    """What reading a question says is wrong with it."""
    try:
        read_names(form_of(verb), said, shelf)
    except DocumentError as error:
        return [problem.message for problem in error.problems]
    except DatahallError as error:
        return [error.message]
    return []


@pytest.mark.parametrize(
    ("verb", "section", "field"), CASES, ids=[f"{verb} {field.path}" for verb, _, field in CASES]
)
def test_an_input_without_what_it_needs_is_refused_as_doing_nothing(
    verb: str, section: str, field: Field, shelf: Catalog
) -> None:
    value = value_of(field, verb, random.Random(1))
    inline = CONCEPTS[section].inline
    said = {section: {field.key: value}} if inline else {field.name: value}
    own = f"{field.key} of ⟦{section}⟧" if inline else f"⟦{field.name}⟧"
    assert any(
        found.startswith(f"{own} does nothing here: it needs ") for found in refusals(verb, said, shelf)
    )


def test_the_walk_meets_inputs_of_every_verb_that_has_them() -> None:
    assert {"plan serve", "show collective", "simulate fabric", "simulate serve", "simulate train"} <= {
        verb for verb, _, _ in CASES
    }


# what else could be written of an input that changes nothing
OTHER_WORDS = re.compile(
    r"\b(says? nothing (of|to|without|here)|has no effect|have no effect|is not used|is unused|is ignored"
    r"|makes no difference|do(es)? nothing)\b"
)


@each([path for path in MODULES if path != HOUSE / "scenario" / "idle.py"])
def test_that_an_input_does_nothing_is_worded_in_one_place(path: Path) -> None:
    found = [
        f"{path.relative_to(HOUSE)}:{line} {text!r}" for line, text in texts(path) if OTHER_WORDS.search(text)
    ]
    assert not found, "scenario/idle.py has the sentence"


@pytest.mark.parametrize("text", ["--x says nothing without --y", "--x is not used here", "--x does nothing"])
def test_other_words_are_known_when_seen(text: str) -> None:
    assert OTHER_WORDS.search(text)


DENIABLE = [
    (verb.name, field.name)
    for verb in VERBS
    for field in form_of(verb.name).fields.values()
    if isinstance(field.kind, Flag) and field.default is None
]


@pytest.mark.parametrize(("verb", "name"), DENIABLE, ids=str)
@pytest.mark.parametrize("value", [True, False])
def test_a_flag_that_does_nothing_is_spelled_as_it_was_set(
    verb: str, name: str, value: bool, shelf: Catalog
) -> None:
    form, command = form_of(verb), Question(BY_NAME[verb])
    asked = {"model": "llama-3.1-8b", "rate": 1, name: value}
    scenario = read_names(form, {key: one for key, one in asked.items() if key in form.fields}, shelf)
    (note,) = idle_together(scenario, (name,), "x")
    (option,) = (one for one in command.params if one.name == name)
    assert spelled(note, form.flag).split()[0] == (option.opts if value else option.secondary_opts)[-1]
    said_in_file = form.fields[name].path + ("" if value else " = false")
    assert spelled(note, form.key).startswith(f"{said_in_file} does nothing here")
    assert spelled(note).startswith(f"{name} does" if value else f"{name}=False does")
