"""What is wrong with a training run is looked for in one place, before anything heavy is loaded, and once."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.house import HOUSE, inside, parsed

from datahall.answers.ask import ask
from datahall.catalog import Catalog
from datahall.errors import DatahallError, spelled

SHELF = Catalog(user=False)
ROOMS = tuple(str(HOUSE / room) for room in ("training", "planner"))
OWN = {"check_counts"}  # what a schedule asks of whoever makes one, by hand too
SMALL = {"model": "qwen3-0.6b", "seq": 512, "global_batch": 8, "chips": 8}
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("show memory", SMALL),
    ("simulate train", {**SMALL, "pp": 2}),
    ("simulate train", {**SMALL, "on": "fat-tree", "chip": "h100-sxm"}),
    ("plan train", {**SMALL, "tokens": 1e9}),
)


def checks_of(verb: str, said: dict[str, Any]) -> Counter[str]:
    """How often each function that checks something was called."""
    found: Counter[str] = Counter()

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name.startswith("check_") and code.co_filename.startswith(ROOMS):
            found[code.co_name] += 1

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        ask(verb, said, catalog=SHELF)
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize(("verb", "said"), ASKED)
def test_each_check_runs_once(verb: str, said: dict[str, Any]) -> None:
    found = checks_of(verb, said)
    assert found["check_job"] == found["check_machine"] == 1
    assert {name: count for name, count in found.items() if count > 1 and name not in OWN} == {}


def test_a_check_has_a_name_of_its_own() -> None:
    homes: dict[str, list[Path]] = {}
    for path in inside("training", "planner"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("check_"):
                homes.setdefault(node.name, []).append(path)
    assert homes
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


NO_EXPERTS = {"model": "llama-3.1-8b", "chips": 8}


@pytest.mark.parametrize("verb", ["show memory", "simulate train"])
@pytest.mark.parametrize("name", ["ep", "etp"])
def test_degrees_of_experts_are_refused_where_there_is_none(verb: str, name: str) -> None:
    with pytest.raises(DatahallError) as caught:
        ask(verb, {**NO_EXPERTS, name: 2}, catalog=SHELF)
    assert caught.value.field == name
    assert spelled(caught.value.message) == f"{name} is 2, but Llama 3.1 8B has no experts"
    ask(verb, {**NO_EXPERTS, name: 1}, catalog=SHELF)


def test_the_value_that_an_option_has_anyway_is_neither_refused_nor_noted() -> None:
    plain, said = (ask("show memory", {**NO_EXPERTS, **more}, catalog=SHELF) for more in ({}, {"ep": 1}))
    assert plain.notes == said.notes  # type: ignore[union-attr]


def test_an_imbalance_that_was_said_is_not_proposed_again() -> None:
    said = {"model": "qwen3-30b-a3b", "chips": 64, "ep": 8, "chip": "h200"}
    plain, even = (
        " ".join(ask("simulate train", {**said, **more}, catalog=SHELF).answer.notes)  # type: ignore[union-attr]
        for more in ({}, {"imbalance": 1.2})
    )
    assert "try an imbalance of 1.2" in plain
    assert "try" not in even


@pytest.mark.parametrize(
    "more",
    [
        {"chip": "v100-sxm2-32gb"},
        {"chip": "h100-sxm", "precision": "nvfp4"},
        {"on": "tpu-v4-pod", "precision": "fp8"},
    ],
)
def test_a_format_that_the_chip_does_not_compute_in_is_refused_early(more: dict[str, Any]) -> None:
    with pytest.raises(DatahallError) as caught:
        ask("simulate train", {"model": "qwen3-0.6b", "chips": 64, **more}, catalog=SHELF)
    assert caught.value.field == "precision"
