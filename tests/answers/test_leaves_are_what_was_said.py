"""A leaf that says it is an input has that input's value, and one that is called a default can be said."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from datahall.answer import Answer
from datahall.answers import ask as asking
from datahall.answers.ask import ask, form_of, verb_named
from datahall.answers.origin import USUAL
from datahall.answers.reply import answer_of
from datahall.breakdown import Breakdown
from datahall.catalog import Catalog
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario

SHELF = Catalog(user=False)
QUESTIONS = (
    ("plan train", {"model": "llama-3.1-8b", "chips": 64, "tokens": "1T"}),
    ("plan train", {"model": "llama-3.1-8b", "chips": 64, "tokens": "1T", "reschedule": "34min", "pue": 1.4}),
    ("simulate run", {"model": "llama-3.1-8b", "chips": 64, "days": 10, "runs": 20}),
    (
        "simulate run",
        {"model": "llama-3.1-8b", "chips": 64, "days": 10, "runs": 20, "detect": "7min", "restart": None},
    ),
    ("simulate run", {"model": "llama-3.1-8b", "chips": 64, "days": 10, "runs": 20, "restart": "7min"}),
    ("show checkpoint", {"model": "llama-3.1-8b", "chips": 64, "warm_up": "9min"}),
    ("show power", {"model": "llama-3.1-8b", "chips": 64, "storage_share": "7 %", "time_constant": "50ms"}),
    ("plan serve", {"model": "llama-3.1-8b", "rate": 4, "chips": ["h100-sxm"]}),
    ("show cost", {"priced": "llama-3.1-8b", "tokens": "1T", "chips": 64, "own": True}),
    ("show datapath", {"workload": "resnet50", "chips": 64, "storage": ["nvme"]}),
)


def nodes(figure: Breakdown) -> Iterator[Breakdown]:
    yield figure
    for part in figure.parts:
        yield from nodes(part)


def read(verb: str, said: dict[str, object]) -> Scenario:
    return read_names(
        form_of(verb), {name: value for name, value in said.items() if value is not None}, SHELF
    )


@pytest.mark.parametrize(("verb", "said"), QUESTIONS)
def test_a_leaf_that_names_one_input_has_its_value(verb: str, said: dict[str, object]) -> None:
    scenario = read(verb, said)
    answer = answer_of(asking._called(verb_named(verb).answer, scenario))
    seen = 0
    for figure in (*([answer.figure] if answer.figure else []), *answer.beside):
        for leaf in nodes(figure):
            known = [
                one for one in scenario.form.fields.values() if leaf.fields in ((one.name,), (one.attribute,))
            ]
            if leaf.origin != "input" or len(known) != 1:
                continue
            value = getattr(scenario.sections[known[0].section][0], known[0].attribute)
            if isinstance(value, int | float):
                assert leaf.value == pytest.approx(float(value), rel=1e-12), leaf.name
                seen += 1
    assert seen


@pytest.mark.parametrize(("verb", "said"), QUESTIONS)
def test_what_is_called_a_default_is_an_input_of_the_verb(verb: str, said: dict[str, object]) -> None:
    scenario = read(verb, said)
    raw: Answer = answer_of(asking._called(verb_named(verb).answer, scenario))
    shown = answer_of(
        ask(verb, {name: value for name, value in said.items() if value is not None}, catalog=SHELF)
    )
    taken = {name for one in scenario.form.fields.values() for name in (one.name, one.attribute)}
    for before, after in zip(raw.beside, shown.beside, strict=True):
        for mine, said_so in zip(nodes(before), nodes(after), strict=True):
            if mine.origin == "input" and mine.fields and said_so.origin == "assumption":
                can_be_said = any(name in taken for name in mine.fields)
                assert said_so.note.startswith("default" if can_be_said else USUAL), mine.name


def test_a_plan_does_not_call_a_default_what_only_power_is_asked_with() -> None:
    plan, power = (
        answer_of(ask(verb, said, catalog=SHELF))
        for verb, said in (QUESTIONS[0], ("show power", QUESTIONS[0][1]))
    )
    notes = {leaf.name: leaf.note for one in plan.beside for leaf in nodes(one)}
    assert notes["time constant"] == notes["storage over servers"] == USUAL
    assert power.inputs["time_constant_s"] == 0.01
