"""Asking a question: a verb and its inputs, from any border, to the function that answers.

flags, keywords ──┐
                  ├─ scenario ─ the function of the verb ─ answer
TOML, JSON ───────┘
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from datahall.answer import Answer, Cell
from datahall.answers.origin import attributed, said_by, taken_by
from datahall.answers.reply import Deployable, Reply, Scored, Traced, answer_of
from datahall.answers.verb import Verb
from datahall.answers.verbs import BY_NAME
from datahall.catalog import Catalog, document, load
from datahall.catalog.document import Document
from datahall.errors import DatahallError, ScenarioError, Speller, UnknownNameError, keyword, spelled
from datahall.scenario.field import Field, Section
from datahall.scenario.form import Form
from datahall.scenario.form import form as make_form
from datahall.scenario.kinds import Plain, Raw
from datahall.scenario.read import VERSION, is_scenario, read_document, read_names
from datahall.scenario.rules import taken_needs
from datahall.scenario.scenario import Scenario

Answering = Callable[[Scenario], Reply]
Viewing = Callable[[Scenario], Iterator[Answer]]


@cache
def form_of(name: str) -> Form:
    """The inputs of a verb."""
    verb = verb_named(name)
    return make_form(verb.name, verb.takes, verb.arguments, verb.required, dict(verb.means))


def verb_named(name: str) -> Verb:
    """A verb of the table; an unknown one is an error with the nearest."""
    if name not in BY_NAME:
        raise UnknownNameError("verb", name, BY_NAME, hint="all of them: datahall")
    return BY_NAME[name]


def ask(
    verb: str,
    given: Mapping[str, Raw] | None = None,
    *,
    document: Document | None = None,
    catalog: Catalog | None = None,
    bare: bool = False,
    spell: Speller = keyword,
) -> Reply:
    """The answer to a verb with some inputs by name, or with a file and inputs in place of what the file says.

    Inputs that a text speaks of are spelled as `spell` does; those of a file as keys, but for what was said beside it.
    """
    form = form_of(verb)
    said = {name for name, raw in (given or {}).items() if raw is not None}
    border = spell if document is None else _mixed(form.key, spell, said)
    shelf = catalog or load()
    try:
        scenario = (
            read_names(form, given or {}, shelf, bare=bare)
            if document is None
            else read_document(form, document, shelf, given, bare=bare, spell=spell)
        )
        return answered(scenario, border)
    except DatahallError as error:
        error.at_border(spell if error.field in said and not error.where else border)
        raise


def views(
    verb: str,
    given: Mapping[str, Raw] | None = None,
    *,
    catalog: Catalog | None = None,
    spell: Speller = keyword,
) -> Iterator[Answer]:
    """One answer after another to a verb that has `views`, without an end."""
    try:
        scenario = read_names(form_of(verb), given or {}, catalog or load(), bare=False)
        scenario.check()
        for answer in _viewing(verb_named(verb).views)(scenario):
            yield _spelled(answer, spell)
    except DatahallError as error:
        error.at_border(spell)
        raise


def _mixed(key: Speller, spell: Speller, said: Collection[str]) -> Speller:
    """Inputs of a file as keys, and those that were said beside it as they were said."""
    return lambda name, value: (spell if name in said else key)(name, value)


def ask_document(content: Mapping[str, Raw], *, catalog: Catalog | None = None) -> Answer:
    """The answer to a question in plain types, as a JSON body or `Answer.question` has it: its `ask` says the verb.

    Numbers without a unit are in SI, as in a keyword of the function of the verb.
    """
    if not isinstance(content, Mapping):
        raise ScenarioError(
            f"a question is a table of inputs, not {type(content).__name__}",
            hint='e.g. {"ask": "show chip", …}',
        )
    if not isinstance(content.get("ask"), str):
        raise ScenarioError(
            "the question does not say what it asks", field="ask", hint='e.g. "ask": "show fit"'
        )
    try:
        plain = msgspec.to_builtins({"version": VERSION, **content}, enc_hook=builtin)
    except TypeError as error:
        raise ScenarioError(
            f"the question is not in plain types: {error}", hint="text, numbers, lists, tables"
        ) from error
    found = Document("", plain)
    return answer_of(ask(str(plain["ask"]), document=found, catalog=catalog, bare=True))


def builtin(value: Any) -> Any:
    """A path, or a value of an array library such as `np.int64(4)` or a column, as plain Python has it."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not plain")


def answered(scenario: Scenario, spell: Speller = keyword) -> Reply:
    """Call the function that answers; add what was asked, and what stood in place of what."""
    reply = _called(verb_named(scenario.verb).answer, scenario)
    answer = _spelled(answer_of(reply), spell)
    of_one = {
        field.attribute for field in scenario.form.fields.values() if _is_several(scenario, field.section)
    }
    found = {name: value for name, value in answer.inputs.items() if name not in of_one}
    inputs = {**inputs_of(scenario), **found}
    said, taken = said_by(scenario), taken_by(scenario)
    declared = {field.attribute for field in scenario.form.fields.values()}
    whole = msgspec.structs.replace(
        answer,
        inputs=inputs,
        defaults=tuple(key for key in inputs if key not in said and key in declared),
        question=question_of(scenario),
        figure=attributed(answer.figure, said, taken) if answer.figure is not None else None,
        beside=tuple(attributed(one, said, taken) for one in answer.beside),
        notes=(*answer.notes, *_replaced(scenario)),
    )
    if isinstance(reply, Traced):
        return Traced(whole, reply.trace)
    if isinstance(reply, Deployable):
        return Deployable(whole, partial(_made, reply.artefact, spell))
    return Scored(whole, reply.json) if isinstance(reply, Scored) else whole


def _made(artefact: Callable[[str], str], spell: Speller, name: str) -> str:
    """A file that is asked for after the answer; what it cannot say is spelled as the question was."""
    try:
        return artefact(name)
    except DatahallError as error:
        error.at_border(spell)
        raise


def _spelled(answer: Answer, spell: Speller) -> Answer:
    """The answer with the inputs that it speaks of spelled as a border does."""

    def cell(value: Cell) -> Cell:
        return spelled(value, spell) if isinstance(value, str) else value

    tables = tuple(
        msgspec.structs.replace(
            table, note=spelled(table.note, spell), rows=tuple(tuple(map(cell, row)) for row in table.rows)
        )
        for table in answer.tables
    )
    return msgspec.structs.replace(
        answer,
        headline=spelled(answer.headline, spell),
        binding=spelled(answer.binding, spell),
        notes=tuple(spelled(note, spell) for note in answer.notes),
        tables=tables,
    )


def prepare(scenario: Scenario) -> None:
    """Refuse what asking refuses, for `check`: a question that takes long is made and not answered."""
    verb = verb_named(scenario.verb)
    _called(verb.prepare or verb.answer, scenario)


def _called(place: str, scenario: Scenario) -> Reply:
    """What a function of the table says; an error about an input of a file has its place there."""
    check = verb_named(scenario.verb).check
    try:
        scenario.check()
        if check:
            _function(check)(scenario)
        return _function(f"answers.{place}")(scenario)
    except DatahallError as error:
        if scenario.document is not None and error.field and not error.where:
            error.where = scenario.where(error.field)
        raise


def _function(place: str) -> Answering:
    found: Answering = _at(place)
    return found


def _viewing(place: str) -> Viewing:
    found: Viewing = _at(f"answers.{place}")
    return found


@cache
def _at(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"datahall.{module}"), name)


def question_of(scenario: Scenario) -> dict[str, object]:
    """What was asked in plain types, as a file would have it."""
    asked: dict[str, object] = {"version": VERSION, "ask": scenario.verb}
    manners = {(one.section, one.key) for one in scenario.form.fields.values() if one.kind.manner}
    for section, said in scenario.said.items():
        tables = [
            {key: value for key, value in table.items() if (section, key) not in manners} for table in said
        ]
        if not section:
            asked |= tables[0] if tables else {}
        elif any(tables):
            asked[section] = tables if len(tables) > 1 else tables[0]
    return asked


def inputs_of(scenario: Scenario) -> dict[str, Cell]:
    """Every input that was given or has a default that says something, under names that end in their unit.

    Of a section that a file has several times, such as two deployments, its tables stand whole under its name.
    """
    found: dict[str, Cell] = {}
    said_only = verb_named(scenario.verb).asks_others
    for field in scenario.form.fields.values():
        if said_only and not scenario.given(field.name):
            continue
        sections = scenario.sections[field.section]
        values = [_acting(scenario, field, section) for section in sections]
        value = values[0] if values else None
        if value is None or field.kind.manner or _says_nothing(scenario, field):
            continue
        if _is_several(scenario, field.section) and (
            any(one != value for one in values)
            or any(field.key in table for table in scenario.said[field.section])
        ):
            continue
        if not isinstance(value, str | int | float | bool):
            value = _text(field.kind.write(value))
        found[field.attribute] = value
    for concept in scenario.form.concepts:
        if not (concept.inline or _is_several(scenario, concept.name)):
            continue
        tables = [str(_text(dict(table))) for table in scenario.said.get(concept.name, ()) if table]
        if tables:
            found[concept.name] = "; ".join(tables)
    if scenario.path:
        found = {"scenario": scenario.path, **found}
    return found


def _is_several(scenario: Scenario, section: str) -> bool:
    """Whether a file has a section more than once, so that no value of one of them is that of the question."""
    return len(scenario.said.get(section, ())) > 1


def _acting(scenario: Scenario, field: Field, section: Section) -> object:
    """What was said, be it 0; else what is usual, or a default that is not empty."""
    value: object = getattr(section, field.attribute)
    return value if scenario.given(field.name) else section.usual().get(field.attribute, value or None)


def _says_nothing(scenario: Scenario, field: Field) -> bool:
    """Whether a default stands beside nothing that it is about: the rank of adapters where there are none."""
    needs = taken_needs(scenario.form, field)
    return (
        bool(needs) and not scenario.given(field.name) and not any(_stands(scenario, need) for need in needs)
    )


def _stands(scenario: Scenario, need: str) -> bool:
    """Whether what an input needs was said, or is so where nobody says it."""
    name, _, wanted = need.partition("=")
    field = scenario.form.fields.get(name)
    if field is None or not wanted:
        return scenario.given(name) or any(scenario.said.get(name, ()))
    return any(getattr(one, field.attribute) == wanted for one in scenario.sections[field.section])


def _text(value: Plain) -> str | int | float | bool:
    if isinstance(value, list):
        return ", ".join(str(_text(one)) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(one)}" for key, one in value.items())
    return value


def _replaced(scenario: Scenario) -> tuple[str, ...]:
    return tuple(f"in place of what {scenario.path} says: {what}" for what in scenario.replaced)


def scenario_file(path: str) -> Document | None:
    """The scenario that a path names, or None where it is something else: a model's name or its config.json."""
    if path.endswith(".toml"):
        return document.read(Path(path))
    if not path.endswith(".json"):
        return None
    from datahall.catalog import json_document

    found = json_document.read(Path(path))
    return found if is_scenario(found) else None
