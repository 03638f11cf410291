"""What a request may take at most: held against a budget before it is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.serve.gateway.question import (
    MOST_KEYS,
    MOST_PARTS,
    MOST_PROMPTS,
    OTHER_LENGTHS,
    USUAL_TOKENS,
    Question,
    read_question,
)
from datahall.serve.gateway.refusing import Refused
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


@pytest.mark.parametrize(
    ("kind", "said", "told"),
    [
        ("messages", {"messages": [], "max_completion_tokens": 7}, {"max_tokens": 7}),
        ("completions", {"prompt": "x", "max_completion_tokens": 7}, {"max_tokens": 7}),
        ("chat", {"messages": [], "n_predict": 7}, {"max_completion_tokens": 7}),
        ("chat", {"messages": [], "max_tokens": 7, "n_predict": 90_000}, {"max_tokens": 7}),
        ("messages", {"messages": [], "max_tokens": 7, "max_completion_tokens": 9}, {"max_tokens": 7}),
    ],
)
def test_the_length_that_is_held_is_the_one_that_the_upstream_reads(
    kind: Any, said: dict[str, Any], told: dict[str, int]
) -> None:
    question = read(kind, json.dumps({"model": "m", **said}).encode())
    assert question.estimate.completion == 7
    sent = json.loads(question.for_model("m"))
    assert {name: sent[name] for name in sent if name in OTHER_LENGTHS} == told


@pytest.mark.parametrize("name", ["functions", "documents", "response_format", "suffix"])
def test_all_of_a_body_is_held_as_a_prompt(name: str) -> None:
    assert held("chat", messages=[], **{name: "x" * 9000}).prompt > 3000


def test_what_an_upstream_says_is_bounded_but_never_below_what_came() -> None:
    question = read("chat", b'{"model":"m","messages":[],"max_tokens":1}')
    assert question.believed(Usage(5, 0, 3000), delivered=9000).completion == 3000
    assert question.believed(Usage(5, 0, 3000), delivered=0).completion == 1
    assert question.believed(Usage(-500, 10**9, -700), delivered=9) == Usage()
    assert question.believed(Usage(5, 10**9, 1), delivered=9) == Usage(5, 5, 1)


@pytest.mark.parametrize(("kind", "name"), [("completions", "prompt"), ("embeddings", "input")])
def test_numbers_of_tokens_are_counted_one_by_one(kind: str, name: str) -> None:
    assert held(kind, **{name: [1] * 9000}).prompt >= 9000
    assert held(kind, **{name: [[1] * 4000, [2] * 5000]}).prompt >= 9000


def read(kind: Any, data: bytes) -> Question:
    return read_question(kind, data, lambda _: "", "acme")


def keys(number: int) -> bytes:
    return b",".join(b'"k%d":0' % place for place in range(number))


def test_a_body_of_more_keys_than_anybody_means_is_refused_before_they_are_made() -> None:
    asked = b'{"model":"m","messages":[%b],%b}'
    with pytest.raises(Refused, match="more than 50000 keys"):
        read("chat", asked % (b"{}", keys(MOST_KEYS + 1)))
    inside = asked % (b"{%b}" % keys(MOST_KEYS + 1), b'"n":1')
    assert read("chat", inside).body.keys() == {"model", "messages", "n"}


@given(st.lists(st.text(), min_size=1, max_size=20))
def test_prompts_are_counted_whatever_stands_in_them(prompts: list[str]) -> None:
    assert held("completions", prompt=prompts, max_tokens=7).completion == 7 * len(prompts)
    assert held("completions", prompt=[*prompts, [1]], max_tokens=7).completion == 7 * (len(prompts) + 1)


@pytest.mark.parametrize("part", [b'""', b"[]", b'"\\\\"', b'"a,b"'])
def test_more_prompts_than_anybody_means_are_refused(part: bytes) -> None:
    asked = b'{"model":"m","prompt":[%b]}'
    assert read("completions", asked % b",".join([part] * MOST_PROMPTS)).estimate.completion
    with pytest.raises(Refused, match="more than 16384 parts"):
        read("completions", asked % b",".join([part] * (MOST_PROMPTS + 1)))


def test_a_list_of_this_and_that_is_no_way_around_the_count() -> None:
    mixed = b'{"model":"m","prompt":["x",%b]}' % b",".join([b"[]"] * (MOST_PARTS + 1))
    with pytest.raises(Refused, match="Expected `str`"):
        read("completions", mixed)


def test_what_would_take_long_to_say_in_another_language_is_refused() -> None:
    question = read("chat", b'{"model":"m","messages":[%b]}' % b",".join([b"{}"] * MOST_PARTS))
    assert question.for_model("there")
    with pytest.raises(Refused, match="parts"):
        question.for_model("there", lambda body: body)
