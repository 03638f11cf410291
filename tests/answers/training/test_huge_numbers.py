"""Numbers beyond any run: refused with their bound, or answered with words that are still true."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.answers.claims import garbled
from tests.results import number

from datahall.answer import Answer
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.training.layout.layout import Layout
from datahall.training.layout.legality import MOST_MICRO
from datahall.training.layout.space import Options, layout_space
from datahall.training.step.step import Job

SHELF = Catalog(user=False)
LLAMA = SHELF.model("llama-3.1-8b")
SMALL: dict[str, Any] = {"model": "llama-3.2-1b", "chips": 8, "seq": 2048, "global_batch": 64}
PLAN: dict[str, Any] = {**SMALL, "tokens": "1T"}


def asked(verb: str, said: dict[str, Any]) -> Answer:
    return answer_of(ask(verb, said, catalog=SHELF))


@pytest.mark.parametrize(
    ("verb", "said", "field"),
    [
        ("plan train", PLAN | {"tokens": "1e40"}, "tokens"),
        ("plan train", {**PLAN, "chips": None, "deadline": "1e30d"}, "deadline"),
        ("plan train", PLAN | {"global_batch": 2**30}, "global_batch"),
        ("simulate train", SMALL | {"global_batch": 2**30}, "global_batch"),
        ("show memory", SMALL | {"global_batch": 2**30}, "global_batch"),
    ],
)
def test_what_no_run_has_is_refused_with_its_bound(verb: str, said: dict[str, Any], field: str) -> None:
    with pytest.raises(ScenarioError, match=r"too large|more than") as caught:
        asked(verb, {name: value for name, value in said.items() if value is not None})
    assert caught.value.field == field


def test_a_million_tokens_for_each_that_any_run_has_used_are_answered() -> None:
    found = asked("plan train", PLAN | {"tokens": "1e18"})
    assert not garbled(found.headline + found.binding)
    assert number(found, "duration_s") == number(found, "num_steps") * number(found, "step_s")


def test_one_token_is_one_step() -> None:
    found = asked("plan train", PLAN | {"tokens": 1})
    assert not garbled(found.headline)
    assert found.results["num_steps"] == 1


def test_as_many_micro_batches_as_a_schedule_is_made_of_and_no_more() -> None:
    layout = Layout(dp=8, micro_batch=2)
    assert layout.is_legal(LLAMA, 8, MOST_MICRO * 16)
    assert not layout.is_legal(LLAMA, 8, (MOST_MICRO + 1) * 16)


@pytest.mark.parametrize("batch", [MOST_MICRO * 8, MOST_MICRO * 16])
def test_a_space_has_the_layouts_of_the_bound_and_none_beyond(batch: int) -> None:
    job = Job(model=LLAMA, seq=2048, global_batch=batch)
    space = layout_space(job, 8, Options(zero=(1,), recompute=("none",)))
    found = space.num_micro(batch)
    assert found.max() == MOST_MICRO
    assert all(space.row(place).is_legal(LLAMA, 8, batch) for place in range(len(space)))


def test_the_batch_that_a_plan_is_pointed_to_has_layouts() -> None:
    with pytest.raises(ScenarioError) as caught:
        asked("plan train", PLAN | {"global_batch": 2**30})
    (most,) = re.findall(r"global_batch=(\d+)", str(caught.value))
    job = Job(model=LLAMA, seq=2048, global_batch=int(most))
    assert len(layout_space(job, 8)) > 0


@pytest.mark.parametrize("nic", ["400 Gb/s", "1 Mb/s", "8 kb/s"])
def test_what_kernels_are_said_to_take_is_what_they_take(nic: str) -> None:
    found = asked("simulate train", {**SMALL, "chips": 16, "nic": nic})
    (said,) = re.findall(r"Kernels take ([\d.]+) %", found.binding)
    (rest,) = re.findall(r"most of the rest goes to [a-z ]+\(([\d.]+) %\)", found.binding)
    assert float(said) + float(rest) <= 100.5
    rows = {row[0]: row[2] for row in found.tables[0].rows}
    assert float(said) / 100 == pytest.approx(rows.get("kernels", 0.0), rel=0.01, abs=1e-12)
