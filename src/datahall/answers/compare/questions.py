"""Scenario files, their variants, and answers that were saved, as sides of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from datahall.answer import SCHEMA, VERSION, Cell
from datahall.answers.ask import answered, form_of, question_of
from datahall.answers.compare.idle import refuse_idle
from datahall.answers.compare.side import Side, side_of
from datahall.answers.file import verb_of
from datahall.answers.follow import follow
from datahall.answers.reply import answer_of
from datahall.answers.sweep.point import read
from datahall.answers.verbs import VERBS
from datahall.breakdown import Source
from datahall.catalog import Catalog
from datahall.catalog.document import Document, text_of
from datahall.errors import DatahallError, DocumentError, Problem, ScenarioError, option
from datahall.scenario.idle import is_idle_note
from datahall.scenario.kinds import Raw
from datahall.scenario.read import is_scenario, read_document

ENDINGS = (".toml", ".json")


class _Citation(msgspec.Struct):
    number: int
    source: Source


class _Saved(msgspec.Struct):
    """What a comparison reads of an answer that was saved."""

    headline: str
    inputs: dict[str, Cell]
    results: dict[str, Cell]
    citations: list[_Citation]
    question: dict[str, object] = {}


def sides_of_files(
    paths: Sequence[str], variants: Sequence[Mapping[str, Raw]], given: Mapping[str, Raw], catalog: Catalog
) -> list[Side]:
    """Each file as a side, and each variant of the one file that there is.

    Of an input, what is `given` for all of them stands over a variant, and a variant over the file.
    """
    files = [read(path, text_of(Path(path))) for path in paths]
    if variants and len(files) > 1:
        raise ScenarioError(
            f"{option('set')} makes variants of one file, and {len(files)} are named",
            field="set",
            hint="name one file",
        )
    sides: list[Side] = []
    for file in files:
        if file.content.get("schema") == SCHEMA:
            if variants or given:
                name = "set" if variants else next(iter(given))
                refuse_idle({name}, f"{file.path} is an answer, and is not asked again")
            sides.append(_saved(file))
            continue
        if not is_scenario(file):
            raise ScenarioError(
                f"{file.path} is neither a scenario nor a saved answer", field="things",
                hint="a .toml or .json file with version = 1, or what -o answer.json has written",
            )  # fmt: skip
        sides += [_asked(file, one, given, catalog) for one in ({}, *variants)]
    _check_one_question(sides)
    return sides


def _asked(file: Document, variant: Mapping[str, Raw], given: Mapping[str, Raw], catalog: Catalog) -> Side:
    """The question of a file, answered."""
    verb = verb_of(file, [verb for verb in VERBS if verb.by_file])
    form = form_of(verb.name)
    refuse_idle(set(given).difference(form.fields), f"{verb.name}, which {file.path} asks, has no such input")
    try:
        inputs = {form.named(name).name: value for name, value in variant.items()} | dict(given)
        scenario = read_document(form, file, catalog, inputs, bare=True)
        answer = answer_of(answered(scenario, form.key))
    except DatahallError as error:
        error.at_border(form.key)
        error.where = error.where if file.path in error.where else f"{file.path} {error.where}".strip()
        raise
    said = ", ".join(f"{name}={value}" for name, value in variant.items())
    side = side_of(f"{file.path}, {said}" if said else file.path, answer, follow(scenario))
    notes = tuple(note for note in answer.notes if is_idle_note(note))
    return msgspec.structs.replace(
        side, inputs={**side.inputs, **_tables(question_of(scenario))}, notes=notes
    )


def _tables(question: Mapping[str, object]) -> dict[str, Cell]:
    """Inputs of sections that a file has several times, which the inputs of an answer have as text."""
    return {name: str(value) for name, value in question.items() if isinstance(value, list)}


def _saved(file: Document) -> Side:
    if file.content.get("version") != VERSION:
        seen, hint = (
            f"is {SCHEMA} version {file.content.get('version')}",
            f"this datahall reads version {VERSION}",
        )
        raise DocumentError(file.path, [Problem(file.path, seen, hint)])
    try:
        answer = msgspec.convert(file.content, _Saved)
    except msgspec.ValidationError as error:
        raise DocumentError(
            file.path, [Problem(file.path, f"is not an answer of datahall: {error}")]
        ) from error
    return Side(
        name=file.path,
        asks=str(answer.question.get("ask", "")),
        inputs={key: value for key, value in answer.inputs.items() if key != "scenario"},
        results=answer.results,
        says=answer.headline,
        sources=tuple(one.source for one in answer.citations),
    )


def _check_one_question(sides: Sequence[Side]) -> None:
    """Refuse answers to questions that have no results in common."""
    first = sides[0]
    for one in sides:
        if one.asks != first.asks:
            raise ScenarioError(
                f"{first.name} asks {first.asks}, {one.name} asks {one.asks}: questions of one kind can be compared",
                field="things", hint='say the same ask = "…" in both',
            )  # fmt: skip
