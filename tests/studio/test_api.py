"""The studio's API: what it answers is what the verbs answer, and what it refuses it refuses as they do."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.studio.served import asked

from datahall.answers.ask import ask, form_of
from datahall.answers.reply import answer_of
from datahall.answers.verbs import BY_NAME
from datahall.scenario.field import CONCEPTS
from datahall.studio.forms import ASKED

FIT = {"model": "llama-3.1-8b", "chip": "l40s"}


def reply(path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    status, _, said = asyncio.run(asked(path, body, **headers))
    return status, msgspec.json.decode(said)


def test_an_answer_is_that_of_the_verb_with_the_texts_of_all_formats() -> None:
    status, said = reply("/api/ask", {"verb": "show fit", "given": FIT})

    answer = answer_of(ask("show fit", FIT))
    assert status == 200
    assert said["headline"] == answer.headline
    assert said["question"] == answer.question
    assert [table["title"] for table in said["tables"]] == [one.title for one in answer.shown_tables]
    assert all(
        len(texts) == len(table["columns"]) == len(table["numeric"])
        for table in said["tables"]
        for texts in table["texts"]
    )
    assert said["figures"][0]["text"] == answer.figures[0].shown


def test_events_end_with_the_answer() -> None:
    _, headers, said = asyncio.run(
        asked("/api/ask", {"verb": "show fit", "given": FIT}, accept="text/event-stream")
    )

    assert headers["content-type"] == "text/event-stream"
    assert said.startswith(b'event: answer\ndata: {"kind":')
    assert said.endswith(b"\n\n")


@pytest.mark.parametrize(
    ("shape", "first"), [("json", b"{\n"), ("html", b"<!doctype html>"), ("md", b"**"), ("csv", b"")]
)
def test_an_answer_is_had_in_every_format(shape: str, first: bytes) -> None:
    status, _, said = asyncio.run(asked("/api/ask", {"verb": "show fit", "given": FIT, "shape": shape}))

    assert status == 200
    assert said.startswith(first)


def test_a_file_that_runs_a_plan_is_had_by_its_name() -> None:
    given = {"model": "llama-3.1-8b", "rate": "1", "chips": "l40s"}

    status, _, said = asyncio.run(
        asked("/api/ask", {"verb": "plan serve", "given": given, "shape": "artefact", "name": "vllm.sh"})
    )

    assert status == 200
    assert b"vllm serve" in said


def test_all_that_is_wrong_is_said_at_once_with_its_input() -> None:
    given = {"model": "llama-3.1-8b", "users": "-3", "ttft": "1", "chips": "h10"}

    status, said = reply("/api/ask", {"verb": "plan serve", "given": given})

    assert status == 422
    assert [one["where"] for one in said["error"]["problems"]] == ["users", "ttft", "chips"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[1]", 400),
        ({"verb": "show fit", "given": [1]}, 400),
        ({"verb": "show fit", "gven": {}}, 400),
        ({"verb": "show fit", "given": FIT, "shape": "gif"}, 400),
        ({"verb": "show ft", "given": {}}, 404),
        ({"verb": "gateway keys create", "given": {"name": "a"}}, 404),
        ({"verb": "check", "given": {}}, 404),
        ({"verb": "show fit", "given": {"model": {"a": 1}}}, 422),
        ({"verb": "show fit", "given": {"nothing": "1"}}, 422),
        ({"verb": "show fit", "given": FIT, "shape": "trace"}, 422),
        ({"verb": "plan serve", "given": {**FIT, "x": None}, "shape": "artefact"}, 422),
    ],
)
def test_what_is_no_question_is_refused_with_the_reason(body: Any, status: int) -> None:
    found, said = reply("/api/ask", body)

    assert found == status
    assert said["error"]["message"]


def test_the_forms_are_the_declarations() -> None:
    _, found = reply("/api/forms")

    assert sorted(found["verbs"]) == sorted(ASKED)
    assert {name for group in found["groups"] for name in group["verbs"]} == {*ASKED}
    for name in ASKED:
        _, form = reply(f"/api/forms/{name}")
        inputs = {one["name"] for part in form["parts"] if not part["is_inline"] for one in part["inputs"]}
        assert inputs == {*form_of(name).fields}
        assert [part["name"] for part in form["parts"]] == [one.name for one in form_of(name).concepts]


def test_what_writes_or_asks_a_server_is_not_asked_by_a_page() -> None:
    left_out = {*BY_NAME} - {*ASKED}

    assert {name.partition(" ")[0] for name in left_out} == {
        "compare",
        "sweep",
        "explain",
        "check",
        "catalog",
        "gateway",
    }
    assert [name for name in left_out if name.startswith("catalog")] == ["catalog add"]


def test_names_to_choose_from_are_those_of_the_catalogue() -> None:
    _, chips = reply("/api/forms/plan%20serve/chips")
    status, _ = reply("/api/forms/plan%20serve/users")

    assert "h100-sxm" in chips
    assert status == 404


@pytest.mark.parametrize(
    "path", ["/api/forms/nothing", "/api/nothing", "/assets/../../pyproject.toml", "/x.js"]
)
def test_what_is_not_there_is_not_found(path: str) -> None:
    status, said = reply(path)

    assert status == 404
    assert said["error"]["message"]


def test_the_page_asks_nothing_of_others() -> None:
    _, headers, page = asyncio.run(asked("/"))
    same = asyncio.run(asked("/anything/that/the/page/reads"))[2]
    kept, *_ = asyncio.run(asked("/", **{"if-none-match": headers["etag"]}))

    assert "default-src 'self'" in headers["content-security-policy"]
    assert b"://" not in page
    assert page == same
    assert kept == 304


def test_every_section_of_a_form_says_what_it_is_about() -> None:
    for name in ASKED:
        for concept in form_of(name).concepts:
            assert (CONCEPTS[concept.name].struct().__doc__ or "").strip()
