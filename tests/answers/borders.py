"""One question asked at every border: flags, keywords, a TOML file and a JSON body."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec
import pytest

from datahall.answer import Answer
from datahall.answers.ask import ask, ask_document, form_of, question_of
from datahall.answers.functions import function_of
from datahall.answers.reply import answer_of
from datahall.answers.verbs import BY_NAME
from datahall.catalog import Catalog
from datahall.catalog.document import parse
from datahall.cli.main import run
from datahall.scenario.kinds import Plain
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario


def asked_everywhere(verb: str, given: dict[str, str], shelf: Catalog) -> Answer:
    """The answer, after all borders have given the same one."""
    flags = answer_of(ask(verb, given, catalog=shelf))
    python = function_of(BY_NAME[verb])(**given, catalog=shelf)
    question = question_of(read_names(form_of(verb), given, shelf))
    plain = msgspec.json.decode(msgspec.json.encode(question))
    posted = ask_document(plain, catalog=shelf)
    text = as_toml(plain)
    filed = answer_of(ask(verb, document=parse(text, "asked.toml"), catalog=shelf))
    for other in (python, posted, filed):
        assert other.headline == flags.headline
        assert other.binding == flags.binding
        assert other.results == flags.results
        assert other.figure == flags.figure
    return flags


def as_toml(content: dict[str, Any]) -> str:
    """A question as a file: keys of the head, then its tables."""
    lines = [f"{key} = {value(one)}" for key, one in content.items() if not isinstance(one, dict | list)]
    for name, tables in content.items():
        for table in tables if isinstance(tables, list) else [tables]:
            if isinstance(table, dict):
                lines += [f"[[{name}]]" if isinstance(tables, list) else f"[{name}]"]
                lines += [f"{key} = {value(one)}" for key, one in table.items()]
    return "\n".join(lines) + "\n"


def value(one: object) -> str:
    return msgspec.json.encode(one).decode()


def runs(command: str) -> bool:
    """Whether a follow-up command can be typed as it stands: 1 is a no, and an infeasible question as well."""
    words = shlex.split(command)
    assert words[0] == "datahall"
    return run([*words[1:], "--quiet", "--format", "json"]) == 0


def followed(command: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The results of a follow-up command, which runs; of one that writes a file, of the question that it asks."""
    words = shlex.split(command)
    assert words[0] == "datahall"
    if "-o" in words:
        words = words[: words.index("-o")]
    capsys.readouterr()
    ended = run([*words[1:], "--quiet", "--format", "json"])
    printed = capsys.readouterr()
    assert ended == 0, (command, printed.err)
    results: dict[str, Any] = msgspec.json.decode(printed.out)["results"]
    return results


def said_by_name(scenario: Scenario) -> dict[str, Plain]:
    """What was given of the first section of each kind, under the names of flags and keywords."""
    return {
        field.name: scenario.said[field.section][0][field.key]
        for field in scenario.form.fields.values()
        if scenario.said.get(field.section) and field.key in scenario.said[field.section][0]
    }
