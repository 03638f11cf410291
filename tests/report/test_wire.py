"""JSON out and back, and a shape that does not change under a reader's feet."""

import json

import msgspec
import pytest

import datahall
from datahall.answer import Answer
from datahall.breakdown import Breakdown
from datahall.errors import DocumentError
from datahall.report.wire import SCHEMA, VERSION, decode, encode

WHERE_THERE = {"beside"}  # what only some answers have
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
    "notes",
    "citations",
    "next_commands",
]


def test_round_trip(answer: Answer) -> None:
    assert encode(decode(encode(answer))) == encode(answer)
    assert decode(encode(answer)).figure == answer.figure


def test_keys_of_a_version_do_not_change(answer: Answer) -> None:
    written = json.loads(encode(answer))
    assert list(written) == KEYS
    assert (written["schema"], written["version"]) == (SCHEMA, VERSION) == ("datahall/answer", 2)
    assert list(written["tables"][0]) == ["title", "columns", "rows", "marked", "note"]
    assert set(datahall.answer_schema()["$defs"]["_Wire"]["properties"]) == {*KEYS, *WHERE_THERE}  # type: ignore[index]


def test_json_and_python_have_one_word_for_a_thing(answer: Answer) -> None:
    """`sources` are those that its maker names; the citations are these and the figure's."""
    written = json.loads(encode(answer))
    assert set(written) - {"schema", "version", "citations"} == set(Answer.__struct_fields__) - {
        "sources",
        *WHERE_THERE,
    }
    assert [one["source"]["title"] for one in written["citations"]] == [
        one.title for one in answer.citations()
    ]
    (table, column), (sheet, heading) = (
        (answer.tables[0], answer.tables[0].columns[0]),
        (written["tables"][0], written["tables"][0]["columns"][0]),
    )
    for ours, theirs, own_shape in (
        (answer, written, {"schema", "version", "citations", "tables", "figure", "charts", "results"}),
        (table, sheet, {"columns", "rows"}),
        (column, heading, set()),
    ):
        plain = json.loads(msgspec.json.encode(ours))
        for key in theirs.keys() - own_shape:
            assert theirs[key] == plain.get(key, "")
    assert written["figure"].keys() - {"formula"} <= set(Breakdown.__struct_fields__)
    assert hasattr(answer.figure, "formula")


def test_an_answer_of_another_version_says_which(answer: Answer) -> None:
    old = (
        encode(answer).replace(f'"version": {VERSION}', '"version": 1', 1).replace('"notes"', '"assumptions"')
    )
    with pytest.raises(DocumentError, match="is datahall/answer version 1"):
        decode(old)


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
