"""One question has one answer, however it is asked: by flags, by a TOML file, from Python, as JSON."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.answers.claims import garbled, unfounded
from tests.answers.drawing import REFUSED, Asked, all_questions, asked_verbs, inputs, question, said_in

import datahall as dh
from datahall.answer import Answer
from datahall.answers.ask import form_of
from datahall.answers.verbs import BY_NAME
from datahall.cli.main import root
from datahall.errors import DatahallError, DocumentError
from datahall.report.output import render
from datahall.scenario.kinds import Flag

SEED = 20261115
LEAST = 9  # questions of a verb
QUESTIONS = all_questions(SEED, LEAST)


def as_words(asked: Asked) -> list[str]:
    """The question as it is typed."""
    form = form_of(asked.verb)
    words = asked.verb.split()
    for name in form.arguments:
        value = asked.said.get(name, [])
        words += [str(one) for one in value] if isinstance(value, list) else [str(value)]
    for name, value in asked.said.items():
        flag = f"--{name.replace('_', '-')}"
        if name in form.arguments:
            continue
        if isinstance(form.fields[name].kind, Flag):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            words += [flag, as_word(value)]
    for name, rows in asked.tables.items():
        for row in rows:
            words += [f"--{name.replace('_', '-')}", as_word(row)]
    return words


def as_word(value: Any) -> str:
    if isinstance(value, dict) and any(isinstance(one, dict | list) for one in value.values()):
        return toml(value)
    if isinstance(value, dict):
        return ",".join(f"{key}={as_word(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ",".join(map(as_word, value))
    return toml(value) if isinstance(value, bool) else str(value)


def as_question(asked: Asked) -> dict[str, Any]:
    """The question in plain types, under the keys of a file."""
    form = form_of(asked.verb)
    body: dict[str, Any] = {"version": 1, "ask": asked.verb}
    for name, value in asked.said.items():
        field = form.fields[name]
        (body.setdefault(field.section, {}) if field.section else body)[field.key] = value
    return body | {name: rows if len(rows) > 1 else rows[0] for name, rows in asked.tables.items()}


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def as_toml(body: dict[str, Any]) -> str:
    heads = {key: value for key, value in body.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in body.items() if isinstance(value, dict)}
    lines = [f"{key} = {toml(value)}" for key, value in heads.items()]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def unspelled(note: str, verb: str) -> str:
    """A note with its inputs by their names alone: --on, fabric.topology and on are one, and so is each denied."""
    for name, field in form_of(verb).fields.items():
        flag = name.replace("_", "-")
        note = re.sub(
            rf"--no-{flag}\b|\b{field.section}\.{field.key} = false|\b{name}=False", f"no {name}", note
        )
        note = re.sub(rf"(\b{field.section}\.{field.key}|--{name.replace('_', '-')})(?![\w-])", name, note)
    return re.sub(
        r"\[\[(\w+)\]\]|--(failure|job|stall|background|cache|region)\b|--(cluster)-(job)\b", _table, note
    )


def _table(found: re.Match[str]) -> str:
    return found[1] or found[2] or f"{found[3]}_{found[4]}"


def heart(answer: dict[str, Any]) -> dict[str, Any]:
    """What must be the same: all but the file that asked, and texts in which a border spells inputs its own way."""
    spelled = ("next", "next_commands", *(("binding",) if answer["verdict"] == "no" else ()))
    kept = {key: value for key, value in answer.items() if key not in spelled}
    kept["notes"] = [unspelled(note, str(answer["question"]["ask"])) for note in answer["notes"]]
    kept["inputs"] = {key: value for key, value in answer["inputs"].items() if key != "scenario"}
    return kept


def refusal(error: DatahallError) -> dict[str, Any]:
    """What must be the same of an error: its kind and its sentences, before a border spells the inputs in them."""
    return {"exit code": error.exit_code, "problems": sentences(error)}


def sentences(error: DatahallError) -> list[tuple[str, str]]:
    """What is wrong, before a border spells the inputs it speaks of."""
    if isinstance(error, DocumentError):
        return sorted((problem.message, problem.hint) for problem in error.problems)
    return [error.marked or (error.message, error.hint)]


@cache
def answered(number: int) -> Answer | DatahallError:
    """What a question in plain types is answered or refused with."""
    return answer_to(QUESTIONS[number])


def answer_to(asked: Asked) -> Answer | DatahallError:
    try:
        return dh.ask(as_question(asked))
    except DatahallError as error:
        return error


@pytest.mark.parametrize(
    "number", range(len(QUESTIONS)), ids=[f"{n}-{one.verb}" for n, one in enumerate(QUESTIONS)]
)
def test_one_question_has_one_answer(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whichever way it is asked; and the answer claims what follows from what is under it, in words that read well."""

    def printed(words: list[str]) -> dict[str, Any]:
        try:
            root.main([*words, "--json", "--quiet"], standalone_mode=False, obj={"words": ["--json"]})
        except DatahallError as error:
            return refusal(error)
        return heart(json.loads(capsys.readouterr().out))

    def returned(answer: Callable[[], Answer | DatahallError]) -> dict[str, Any]:
        try:
            found = answer()
        except DatahallError as error:
            found = error
        return refusal(found) if isinstance(found, DatahallError) else heart(json.loads(found.to_json()))

    asked = QUESTIONS[number]
    file = tmp_path / "question.toml"
    file.write_text(as_toml(as_question(asked)), encoding="utf-8")
    function = getattr(dh, BY_NAME[asked.verb].function)
    flags = printed(as_words(asked))
    assert printed([*asked.verb.split(), str(file)]) == flags
    assert returned(lambda: function(**asked.said, **asked.tables)) == flags
    assert returned(lambda: answered(number)) == flags
    found = answered(number)
    assert garbled(str(found) if isinstance(found, DatahallError) else render(found, "explain")) == []
    assert isinstance(found, DatahallError) or unfounded(found) == []


def test_an_answer_can_be_asked_again() -> None:
    first = dh.simulate_serve(
        "llama-3.1-8b", rate=3, requests=200, isl=300, osl=30, failure="replicas=0,start=1s,duration=2s"
    )
    again = dh.ask(first.question)
    assert heart(json.loads(again.to_json())) == heart(json.loads(first.to_json()))


def test_as_many_questions_as_promised_are_answered() -> None:
    """A refusal at every border is no answer: enough of them have one, and every input stands in one that has."""
    good = [one for n, one in enumerate(QUESTIONS) if isinstance(answered(n), Answer)]
    assert len(good) >= 200
    said = {(one.verb, name) for one in good for name in said_in(one)}
    declared = {(verb, name) for verb in asked_verbs() for name in inputs(form_of(verb))}
    refused = {one for one in declared - said if one in REFUSED or not is_answered_alone(*one)}
    assert refused == set(REFUSED)


def is_answered_alone(verb: str, name: str) -> bool:
    """Whether an input that random company was refused with is answered without it, in one of a few values."""
    drawn = (question(form_of(verb), [name], random.Random(f"{name} {seed}")) for seed in range(4))
    return any(name in said_in(one) and isinstance(answer_to(one), Answer) for one in drawn)
