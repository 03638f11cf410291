"""JSON out and back, and a shape that does not change under a reader's feet."""

import json

import msgspec
import pytest

import datahall
from datahall.answer import Answer
from datahall.errors import DocumentError
from datahall.report.wire import SCHEMA, VERSION, decode, encode

KEYS = [
    "schema",
    "version",
    "kind",
    "inputs",
    "defaults",
    "question",
    "verdict",
    "headline",
    "binding",
    "results",
    "tables",
    "figure",
    "charts",
    "assumptions",
    "citations",
    "next_commands",
]


def test_round_trip(answer: Answer) -> None:
    assert encode(decode(encode(answer))) == encode(answer)
    assert decode(encode(answer)).figure == answer.figure


def test_keys_of_version_1_do_not_change(answer: Answer) -> None:
    written = json.loads(encode(answer))
    assert list(written) == KEYS
    assert (written["schema"], written["version"]) == (SCHEMA, VERSION) == ("datahall/answer", 1)
    assert list(written["tables"][0]) == ["title", "columns", "rows", "marked", "note"]
    assert set(datahall.answer_schema()["$defs"]["_Wire"]["properties"]) == set(KEYS)  # type: ignore[index]


def test_every_figure_says_how_it_follows_and_what_it_is(answer: Answer) -> None:
    figure = json.loads(encode(answer))["figure"]
    assert (figure["operation"], figure["formula"]) == ("quotient", "weights / bandwidth")
    leaves = [leaf for part in figure["parts"] for leaf in part["parts"]]
    assert [leaf["origin"] for leaf in leaves] == ["input", "assumption", "fact", "fitted"]
    assert all("parts" not in leaf for leaf in leaves)


def test_the_question_can_be_asked_again(answer: Answer) -> None:
    asked = msgspec.structs.replace(
        answer, question={"version": 1, "ask": "show chip", "claim": {"chip": "h200"}}
    )
    assert decode(encode(asked)).question == asked.question


def test_numbers_are_si_under_keys_with_units(answer: Answer) -> None:
    row = json.loads(encode(answer))["tables"][0]["rows"][0]
    assert row["memory_bytes"] == 80e9
    assert row["value"] == {"value": 52428800, "unit": "bytes"}
    assert json.loads(encode(answer))["tables"][0]["rows"][1]["memory_bytes"] is None


def test_citations_are_numbered_as_the_tables_count_them(answer: Answer) -> None:
    written = json.loads(encode(answer))
    numbers = {citation["number"]: citation["source"]["title"] for citation in written["citations"]}
    assert numbers[written["tables"][0]["rows"][1]["source"]] == "Somebody's benchmark"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"schema": "datahall/answer"}'],
    ids=["empty", "cut off", "a list", "null", "keys missing"],
)
def test_what_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="is not an answer of datahall"):
        decode(text, "x.json")


def test_another_version_is_refused(answer: Answer) -> None:
    text = encode(answer).replace('"version": 1', '"version": 2')
    with pytest.raises(DocumentError, match="version 2"):
        decode(text)
