"""A follow-up command says again all that was given: read back, it is the same question."""

from __future__ import annotations

import re
import shlex
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
from tests.answers.drawing import Asked, all_questions, asked_verbs

import datahall as dh
from datahall.answers.ask import answered, ask, form_of
from datahall.answers.follow import explained, follow
from datahall.answers.reply import answer_of
from datahall.answers.verbs import BY_NAME
from datahall.catalog import Catalog, load
from datahall.catalog.document import parse
from datahall.cli.groups import command
from datahall.errors import DatahallError
from datahall.scenario.kinds import Flag
from datahall.scenario.read import read_document, read_names
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.traffic import Traffic

QUESTIONS = [asked for seed in (7, 11) for asked in all_questions(seed, 10)]
Said = dict[str, tuple[dict[str, Any], ...]]


def typed(line: str, verb: str, shelf: Catalog) -> Scenario:
    """The question that a command asks."""
    words = shlex.split(line)
    head = ["datahall", *verb.split()]
    assert words[: len(head)] == head
    question, form = command(BY_NAME[verb]), form_of(verb)
    context = question.make_context(verb, words[len(head) :])
    names = {*form.fields, *(concept.name for concept in form.tables)}
    given = {name: value for name, value in question._given(context, context.params).items() if name in names}  # type: ignore[attr-defined]
    return read_names(form, given, shelf)


def said(scenario: Scenario) -> Said:
    return {section: rows for section, rows in scenario.said.items() if any(rows)}


def scenario_of(asked: Asked, shelf: Catalog) -> Scenario | None:
    """The question read; None where it is refused."""
    try:
        return read_names(form_of(asked.verb), {**asked.said, **asked.tables}, shelf)
    except DatahallError:
        return None


@pytest.mark.parametrize("verb", asked_verbs())
def test_a_question_asked_again_says_all_that_was_given(verb: str, shelf: Catalog) -> None:
    read = [scenario_of(asked, shelf) for asked in QUESTIONS if asked.verb == verb]
    scenarios = [one for one in read if one is not None]
    assert len(scenarios) >= len(read) / 2  # most can be asked
    for scenario in scenarios:
        line = follow(scenario)
        assert said(typed(line, verb, shelf)) == said(scenario), line


@pytest.mark.parametrize("verb", asked_verbs())
def test_every_flag_is_said_as_it_was(verb: str, shelf: Catalog) -> None:
    """Given as true or as false, whatever it is if nobody says; false where that is so anyway needs no words."""
    form = form_of(verb)
    needed = {name: one for asked in QUESTIONS if asked.verb == verb for name, one in asked.said.items()}
    for name, field in form.fields.items():
        if not isinstance(field.kind, Flag):
            continue
        for value in (True, False):
            given = {one: needed[one] for one in (*form.required, *field.kind.needs[:1]) if one in needed}
            scenario = read_names(form, {**given, name: value}, shelf)
            again = typed(follow(scenario), verb, shelf)
            assert getattr(again.sections[field.section][0], field.attribute) is value
            assert again.given(name) or value is field.default is False


def test_another_verb_keeps_what_it_takes(shelf: Catalog) -> None:
    given = {"model": "llama-3.1-8b", "rate": 2, "chip": "h200", "tp": 2, "prefix_caching": False, "isl": 300}
    scenario = read_names(form_of("simulate serve"), given, shelf)
    other = typed(follow(scenario, "show techniques"), "show techniques", shelf)
    assert said(other)["deployment"] == said(scenario)["deployment"]
    assert said(other)["traffic"] == said(scenario)["traffic"]
    fit = typed(follow(scenario, "show fit", {"tp": 4, "chip": None}), "show fit", shelf)
    assert fit.said["deployment"] == ({"tp": 4},)  # changed, left out, and what it does not take fell away


def test_another_verb_is_not_given_what_it_refuses(shelf: Catalog) -> None:
    given = {"model": "llama-3.1-8b", "rate": "inf", "requests": 20, "isl": 100, "osl": 20}
    scenario = read_names(form_of("simulate serve"), given, shelf)
    assert "rate" not in said(typed(follow(scenario, "plan serve"), "plan serve", shelf))["traffic"][0]


def test_what_follows_a_run_of_requests_that_come_at_once_can_be_asked(shelf: Catalog) -> None:
    given = {"model": "llama-3.1-8b", "rate": "inf", "requests": 20, "isl": 100, "osl": 20}
    for line in answer_of(ask("simulate serve", given, catalog=shelf)).next_commands:
        if line.startswith("datahall plan serve"):
            asked = typed(line, "plan serve", shelf).one(Traffic).rate_per_s
            assert asked is not None
            assert isfinite(asked)
            break
    else:
        pytest.fail("no plan follows")


FILE = """
version = 1
model = "llama-3.1-8b"
[[deployment]]
chip = "h100-sxm"
[[deployment]]
chip = "h200"
[traffic]
rate = 3
[cache]
process = 5
"""


def test_a_file_that_flags_cannot_say_is_asked_again_with_what_stood_beside_it(shelf: Catalog) -> None:
    form = form_of("simulate serve")
    beside = {"rate": 4, "failure": "replicas=0,start=1s"}
    scenario = read_document(form, parse(FILE, "my service.toml"), shelf, beside)
    assert shlex.split(follow(scenario, changes={"seed": 3})) == [
        "datahall", "simulate", "serve", "my service.toml", "--failure", "replicas=0,start=1s", "--seed", "3",
        "--rate", "4",
    ]  # fmt: skip


def test_a_file_that_flags_can_say_is_written_out(shelf: Catalog) -> None:
    narrow = FILE.replace('[[deployment]]\nchip = "h200"\n', "")
    scenario = read_document(form_of("simulate serve"), parse(narrow, "s.toml"), shelf)
    line = follow(scenario)
    assert "s.toml" not in line
    assert said(typed(line, "simulate serve", shelf)) == said(scenario)


def test_a_path_with_blanks_is_one_word(shelf: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "my requests.jsonl"
    file.write_text("{}", encoding="utf-8")
    given = {"model": "llama-3.1-8b", "trace": str(file)}
    scenario = read_names(form_of("simulate serve"), given, shelf)
    assert str(file) in shlex.split(follow(scenario))


def test_the_chain_behind_an_answer_is_asked_for_once() -> None:
    assert explained("datahall show chip datahall") == "datahall explain show chip datahall"


@pytest.mark.parametrize(
    ("failures", "kept"),
    [
        ([{"nics": "97"}], []),
        ([{"nics": "3,97"}], ["--failure nics=3"]),
        ([{"nics": "97"}, {"nics": "2", "left": 0.5}], ["--failure nics=2,left=50%"]),
        ([{"nics": "5-6"}], ["--failure nics=5-6"]),
    ],
)
def test_a_plan_that_leaves_chips_idle_follows_with_what_failed_of_the_others(
    failures: list[dict[str, object]], kept: list[str]
) -> None:
    """64 of 100 chips take part: the failure of another is none of the machine that the next command asks for."""
    planned = dh.plan_train(
        "llama-3.1-8b",
        tokens="1T",
        chips=100,
        chip="h100-sxm",
        global_batch=64,
        on="fat-tree",
        failure=failures,
    )
    (line,) = [one for one in planned.next_commands if one.startswith("datahall simulate train")]
    assert re.findall(r"--failure \S+", line.replace('"', "")) == kept
    assert "--chips 64" in line
    assert answer_of(answered(typed(line, "simulate train", load()))).headline
