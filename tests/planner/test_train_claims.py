"""A training plan says what follows from what it searched: each number by another way than it was computed."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from math import ceil
from typing import Any

import msgspec
import pytest
from tests.answers.claims import garbled, unfounded
from tests.results import number

from datahall.answer import Answer, Table
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.errors import InfeasibleError

SHELF = Catalog(user=False)
QUESTIONS: dict[str, dict[str, Any]] = {
    "chips": {"model": "llama-3.1-8b", "tokens": "300B", "chips": 64, "chip": "h200", "global_batch": 256},
    "deadline": {
        "model": "llama-3.1-8b",
        "tokens": "300B",
        "deadline": "20d",
        "chip": "b200",
        "objective": "chips",
    },
    "cheapest": {
        "model": "llama-3.1-8b",
        "tokens": "300B",
        "deadline": "20d",
        "chip": "b200",
        "budget": "90k",
    },
    "too dear": {"model": "llama-3.1-8b", "tokens": "300B", "chips": 32, "chip": "h200", "budget": "5k"},
    "too few": {
        "model": "llama-3.1-70b",
        "tokens": "10B",
        "deadline": "90d",
        "chip": "h200",
        "objective": "chips",
    },
    "mixture": {"model": "qwen3-30b-a3b", "tokens": "1T", "chips": 32, "seq": 4096, "global_batch": 128},
    "narrow": {"model": "llama-3.1-8b", "tokens": "1T", "chips": 512, "on": "tree", "global_batch": 512},
    "offloaded": {"model": "llama-3.1-70b", "tokens": "10B", "chips": 16, "offload": "optimizer"},
    "pods": {"model": "llama-3.1-8b", "tokens": "1T", "chips": 64, "on": "tpu-pod", "global_batch": 128},
}
MEANT = {"seq": 8192, "global_batch": 1024}  # where a question does not say


@cache
def answered(name: str) -> Answer:
    return answer_of(ask("plan train", QUESTIONS[name], catalog=SHELF))


def table(found: Answer, title: str) -> Table:
    return next(one for one in found.tables if one.title == title)


def rows(of: Table) -> list[dict[str, Any]]:
    return [{column.name: cell for column, cell in zip(of.columns, row, strict=True)} for row in of.rows]


every_question = pytest.mark.parametrize("name", QUESTIONS)


@every_question
def test_what_a_plan_claims_follows_from_what_is_under_it(name: str) -> None:
    found = answered(name)
    assert unfounded(found) == []
    assert [text for text in (found.headline, found.binding, *found.notes) if garbled(text)] == []


@every_question
def test_steps_tokens_and_time_go_together(name: str) -> None:
    found, said = answered(name), MEANT | QUESTIONS[name]
    of = {key: value for key, value in found.results.items() if isinstance(value, int | float)}
    step_tokens = said["seq"] * said["global_batch"]
    assert of["num_steps"] == ceil(found.inputs["num_tokens"] / step_tokens)  # type: ignore[operator]
    assert of["duration_s"] == pytest.approx(of["num_steps"] * of["step_s"], rel=1e-12)
    assert of["tokens_per_s"] == pytest.approx(step_tokens / of["step_s"], rel=1e-12)
    assert of["duration_low_s"] < of["duration_s"] < of["duration_high_s"]
    assert of["elapsed_s"] > of["duration_s"]
    assert of["tp"] * of["pp"] * of["cp"] * of["dp"] == of["num_chips"]
    if "deadline" in said:
        assert of["duration_s"] < of["done_s"] <= found.inputs["deadline_s"]  # type: ignore[operator]
    else:
        assert of["num_chips"] == said["chips"]


@every_question
def test_the_chosen_layout_is_the_fastest_that_was_simulated(name: str) -> None:
    found = answered(name)
    best = rows(table(found, "best layouts"))
    chosen, others = best[0], best[1:]
    assert chosen["simulated"] == found.results["step_s"]
    assert chosen["closed form"] == found.results["closed_step_s"]
    assert chosen["free"] == found.results["headroom_bytes"]
    for one in best:
        if one["simulated"] is not None:
            assert one["simulated"] >= chosen["simulated"]
            assert one["differs"] == pytest.approx(one["closed form"] / one["simulated"] - 1, abs=1e-12)
            assert one["time"] == pytest.approx(found.results["num_steps"] * one["simulated"])
    assert all(one["why it lost"] for one in others)
    assert chosen["why it lost"] == ""


@pytest.mark.parametrize("title", ["chips against time", "chips for the deadline"])
def test_chip_hours_are_chips_for_hours(title: str) -> None:
    name = "deadline" if title == "chips for the deadline" else "chips"
    lasts = "elapsed" if name == "deadline" else "time"  # what is paid counts interruptions
    found = rows(table(answered(name), title))
    for one in found:
        assert one["chip-hours"] == pytest.approx(one["chips"] * one[lasts] / 3600, rel=1e-12)
    counts = [one["chips"] for one in found]
    assert counts == sorted(set(counts))


def test_fewer_chips_that_are_as_fast_beat_more() -> None:
    for name in ("chips", "mixture", "narrow"):
        found = rows(table(answered(name), "chips against time"))
        for place, one in enumerate(found):
            assert bool(one[""]) == any(other["time"] <= one["time"] for other in found[:place]), name


def test_the_marked_number_of_chips_is_the_fewest_in_time() -> None:
    found = table(answered("deadline"), "chips for the deadline")
    verdicts = [one["verdict"] for one in rows(found)]
    assert found.marked == verdicts.index("in time")
    assert rows(found)[found.marked]["chips"] == answered("deadline").results["num_chips"]
    (tried,) = re.findall(r"chips tried(?:, in whole servers)?: (.*)$", found.note)
    assert {f"{one['chips']:,}" for one in rows(found)} <= set(tried.split(", "))


@pytest.mark.parametrize(
    ("deadline", "batch", "shown", "said"),
    [
        ("26d", 840, [24, 30, 40, 48], "chips tried, in whole servers: 24, 30 of 32, 40, 48"),
        ("900d", 1024, [2], "chips tried: 1, 2"),  # fewer than a server has, and none fits on one
    ],
)
def test_what_was_tried_says_what_of_it_each_row_shows(
    deadline: str, batch: int, shown: list[int], said: str
) -> None:
    asked = {
        "model": "llama-3.1-8b", "tokens": "1T", "deadline": deadline, "global_batch": batch, "objective": "chips",
    }  # fmt: skip
    found = table(answer_of(ask("plan train", asked, catalog=SHELF)), "chips for the deadline")
    assert [one["chips"] for one in rows(found)] == shown
    assert found.note.endswith(said)


def test_a_deadline_says_why_no_fewer_chips_would_do() -> None:
    found = answered("too few")
    note = table(found, "chips for the deadline").note
    (fewer,) = re.findall(r"(?:^|; )not on (\d+) chips?: ", note)
    assert int(fewer) < number(found, "num_chips")
    said = {key: value for key, value in QUESTIONS["too few"].items() if key not in ("deadline", "objective")}
    with pytest.raises(InfeasibleError) as caught:
        ask("plan train", said | {"chips": int(fewer)}, catalog=SHELF)
    assert caught.value.message in note
    assert "not on" not in table(answered("deadline"), "chips for the deadline").note


def other_results(**changed: float) -> Callable[[Answer], Answer]:
    return lambda found: msgspec.structs.replace(found, results=found.results | changed)


def other_headline(before: str, after: str) -> Callable[[Answer], Answer]:
    def change(found: Answer) -> Answer:
        assert before in found.headline
        return msgspec.structs.replace(found, headline=found.headline.replace(before, after))

    return change


def other_inputs(**changed: float) -> Callable[[Answer], Answer]:
    return lambda found: msgspec.structs.replace(found, inputs=found.inputs | changed)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("chips", other_results(duration_high_s=1.0), "the band of duration_s is not"),
        ("chips", other_results(elapsed_low_s=1.0, elapsed_high_s=1e9), "the band of elapsed_s is not"),
        ("chips", other_headline("64 × ", "65 × "), '"65" of the headline'),
        ("chips", other_headline(" MFU", "7 % MFU"), "of the headline stands nowhere else"),
        ("deadline", other_results(done_s=1.0), "of the headline stands nowhere else"),
        ("deadline", other_inputs(deadline_s=1.0), "of the headline stands nowhere else"),
        ("mixture", other_inputs(seq=1), "said to be an input"),
        ("chips", other_inputs(global_batch=32), "was said to be"),
        ("chips", other_inputs(chips=63), "was said to be"),
    ],
)
def test_a_plan_that_claims_something_else_is_found(
    name: str, change: Callable[[Answer], Answer], words: str
) -> None:
    lines = unfounded(change(answered(name)))
    assert any(words in line for line in lines), lines
