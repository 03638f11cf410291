"""What a request may take at most: held against a budget before it is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datahall.serve.gateway.question import USUAL_TOKENS, read_question
from datahall.serve.ledger.money import Usage


def held(kind: Any, **said: Any) -> Usage:
    return read_question(
        kind, json.dumps({"model": "m", **said}, separators=(",", ":")).encode(), lambda _: "", "acme"
    ).estimate


def test_every_prompt_of_a_completion_is_answered() -> None:
    assert held("completions", prompt="x", max_tokens=1000).completion == 1000
    assert held("completions", prompt=["x"] * 1000, max_tokens=1000).completion == 1_000_000
    assert held("completions", prompt=[[1, 2], [3]], max_tokens=10, n=2).completion == 40
    assert held("completions", prompt=[1, 2, 3], max_tokens=10).completion == 10


@pytest.mark.parametrize("first", [1, None])
def test_the_longest_answer_that_is_said_counts(first: int | None) -> None:
    found = held("completions", prompt="x", max_completion_tokens=first, max_tokens=90_000)
    assert found.completion == 90_000
    assert held("completions", prompt="x", max_completion_tokens=None).completion == USUAL_TOKENS


@pytest.mark.parametrize(("kind", "name"), [("completions", "prompt"), ("embeddings", "input")])
def test_numbers_of_tokens_are_counted_one_by_one(kind: str, name: str) -> None:
    assert held(kind, **{name: [1] * 9000}).prompt >= 9000
    assert held(kind, **{name: [[1] * 4000, [2] * 5000]}).prompt >= 9000
