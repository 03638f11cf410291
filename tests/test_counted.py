"""One of a thing is said in the singular, wherever an answer, its explanation or a refusal counts something."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from tests.house import HOUSE, each_module, parsed

import datahall as dh
from datahall.answers.reply import answer_of
from datahall.counted import counted
from datahall.errors import DatahallError

NOUNS = (
    "chips", "stages", "replicas", "hosts", "ranks", "requests", "tokens", "sequences", "layers", "micro-batches",
    "domains", "switches", "tiers", "users", "steps", "servers", "links", "cables", "prices", "models", "problems",
    "blocks", "experts", "ports", "layouts", "slices", "chunks", "pools", "regions", "ways", "rounds", "flows",
)  # fmt: skip
ONE_OF_MANY = re.compile(
    rf"(?<![\w.,:/×^%-])(?<!× )1 (?:more )?(?:{'|'.join(NOUNS)})\b(?!/)"
)  # a rate has a unit

LLAMA: dict[str, Any] = {"model": "llama-3.1-8b"}
SMALL: dict[str, Any] = {"model": "qwen3-0.6b", "chip": "h200", "seq": 512}
QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("show_memory", {**SMALL, "global_batch": 1}),
    ("show_memory", {**LLAMA, "chip": "h100", "chips": 1}),
    ("simulate_train", {**SMALL, "chips": 1, "global_batch": 1}),
    ("simulate_train", {**SMALL, "chips": 1, "global_batch": 1, "jitter": 0.02}),
    ("simulate_train", {**SMALL, "chips": 1, "global_batch": 1, "slow_hosts": 1.0}),
    ("simulate_train", {**SMALL, "chips": 2, "pp": 2, "global_batch": 2}),
    ("plan_train", {**SMALL, "chips": 1, "global_batch": 1, "tokens": 1}),
    ("plan_train", {**SMALL, "tokens": 1, "deadline": 1e6}),
    ("plan_serve", {**LLAMA, "chips": "h200", "users": 1}),
    ("simulate_serve", {**LLAMA, "chip": "h200", "rate": 1, "requests": 1, "isl": 1, "osl": 1}),
    ("show_fit", {**LLAMA, "chip": "h200", "batch": 1, "context": 1}),
    ("show_model", {**LLAMA, "batch": 1, "context": 1}),
    ("show_roofline", {**LLAMA, "chip": "h200", "batch": 1, "context": 1}),
    ("show_techniques", {**LLAMA, "chip": "h200", "rate": 1}),
    ("show_collective", {"collective": "all-reduce", "chips": 2, "size": 1}),
    ("show_fabric", {"topologies": ["fat-tree"], "chips": 1, "domain": 1}),
    ("show_fabric", {"topologies": ["tree"], "chips": 1, "domain": 1}),
    ("show_hierarchy", {"chip": "h200", "working_set": 1e9}),
    ("catalog_models", {"family": "gpt-oss"}),
)  # fmt: skip
REFUSED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("simulate_train", {**LLAMA, "chips": 1, "tp": 2}),
    ("simulate_train", {**LLAMA, "chips": 2, "tp": 1, "pp": 1, "dp": 1}),
    ("simulate_train", {**LLAMA, "chips": 33, "pp": 33}),
    ("simulate_train", {**LLAMA, "chips": 1, "global_batch": 2**30}),
    ("simulate_train", {**LLAMA, "chips": 1, "split": [1]}),
    ("simulate_train", {**LLAMA, "chips": 2, "pp": 2, "vpp": 2, "global_batch": 1}),
    ("simulate_train", {**LLAMA, "chips": 2, "pp": 2, "schedule": "dualpipe", "global_batch": 1}),
    ("plan_train", {**LLAMA, "chips": 1, "global_batch": 2**30, "tokens": 1e9}),
    ("plan_train", {**LLAMA, "chips": 1, "tokens": 1e9}),
    ("plan_train", {**SMALL, "global_batch": 1, "tokens": 1e15, "deadline": 1e6}),
    ("plan_serve", {**LLAMA, "users": 1, "ttft": 1e-9}),
    ("show_collective", {"collective": "all-to-all", "experts": 3, "tokens": 1, "topk": 1, "hidden": 1, "chips": 1}),
    ("show_collective", {"collective": "all-reduce", "on": "meta-24k-roce", "chips": 1, "size": 1e6}),
    ("show_fabric", {"topologies": ["meta-24k-roce"], "chips": 1}),
    ("show_collective", {"collective": "all-reduce", "chips": 1, "size": 1}),
    ("show_collective", {"collective": "all-to-all", "on": "fat-tree", "chips": 1, "size": 1e6}),
    ("show_fabric", {"topologies": ["fat-tree"], "chips": 1}),
    ("show_fabric", {"topologies": ["tree"], "chips": 1}),
    ("show_fabric", {"topologies": ["rail"], "chips": 1}),
    ("show_fabric", {"topologies": ["torus"], "chips": 1, "sides": [2, 2]}),
    ("simulate_serve", {**LLAMA, "chip": "h200", "rate": 1, "ep": 2}),
)  # fmt: skip


def wrong(text: str) -> list[str]:
    return [text[max(0, one.start() - 30) : one.end() + 30] for one in ONE_OF_MANY.finditer(text)]


@pytest.mark.parametrize(("verb", "asked"), QUESTIONS)
def test_one_is_singular_in_an_answer(verb: str, asked: dict[str, Any]) -> None:
    answer = answer_of(getattr(dh, verb)(**asked))
    assert not wrong(" ".join(answer.to_json().split()))


@pytest.mark.parametrize(("verb", "asked"), REFUSED)
def test_one_is_singular_in_a_refusal(verb: str, asked: dict[str, Any]) -> None:
    with pytest.raises(DatahallError) as caught:
        getattr(dh, verb)(**asked)
    assert not wrong("\n".join(caught.value.lines()))


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("on 1 chips", True), ("1 more chips", True), ("1 micro-batches", True),
        ("1 chip", False), ("21 chips", False), ("0.1 tokens", False), ("at 1 requests/s", False),
        ("tp 1 × 1 chips of it", False),
    ],
)  # fmt: skip
def test_a_wrong_plural_is_known_when_seen(text: str, is_wrong: bool) -> None:
    assert bool(wrong(text)) is is_wrong


def endings(path: Path) -> list[int]:
    """Lines that choose between a noun and its plural."""
    found = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.IfExp):
            sides = [side.value for side in (node.body, node.orelse) if isinstance(side, ast.Constant)]
            if len(sides) == 2 and "" in sides and ("s" in sides or "es" in sides):
                found.append(node.lineno)
    return found


@each_module
def test_a_plural_is_made_in_one_place(path: Path) -> None:
    """`counted` writes a number and its noun; what has no number beside it is a word of its own."""
    if path != HOUSE / "counted.py":
        assert not endings(path)


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "chip", "0 chips"), (1, "chip", "1 chip"), (16384, "chip", "16,384 chips"), (2, "switch", "2 switches"),
        (1, "micro-batch", "1 micro-batch"), (3, "micro-batch", "3 micro-batches"), (2, "way", "2 ways"),
    ],
)  # fmt: skip
def test_a_number_of_things(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text
