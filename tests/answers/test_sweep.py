"""A sweep has at each point what the question alone has; its best is the best; what cannot be swept is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.answers.claims import unfounded

import datahall as dh
from datahall.answer import Answer, LineChart
from datahall.catalog import Catalog
from datahall.errors import DatahallError
from datahall.report.output import render

FIT = 'version = 1\nask = "show fit"\nmodel = "qwen3-8b"\n[deployment]\nchip = "l40s"\n'


@pytest.fixture
def fit(tmp_path: Path) -> str:
    path = tmp_path / "fit.toml"
    path.write_text(FIT)
    return str(path)


def records(answer: Answer) -> list[dict[str, object]]:
    return list(answer.tables[0].records())  # type: ignore[arg-type]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tp=st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=3, unique=True).filter(
        lambda tp: tp != [3]
    ),
    batch=st.lists(st.integers(1, 400), min_size=1, max_size=3, unique=True),
)
def test_a_row_is_what_the_question_alone_has(
    fit: str, shelf: Catalog, tp: list[int], batch: list[int]
) -> None:
    found = dh.sweep(fit, over={"tp": tp, "batch": batch}, catalog=shelf)
    rows = records(found)
    assert [(row["tp"], row["batch"]) for row in rows] == [(one, other) for one in tp for other in batch]
    row = random.Random(str((tp, batch))).choice(rows)
    try:
        alone = dh.show_fit("qwen3-8b", chip="l40s", tp=row["tp"], batch=row["batch"], catalog=shelf)  # type: ignore[arg-type]
    except DatahallError:
        assert row["verdict"] == "refused"
        return
    assert (row["verdict"], row["says"]) == (alone.verdict, alone.headline)
    for key, value in alone.results.items():
        assert row.get(key) == value


def test_the_order_of_values_changes_the_order_of_rows_alone(fit: str, shelf: Catalog) -> None:
    there = dh.sweep(fit, over="tp=1,2,4,batch=1,64", catalog=shelf)
    back = dh.sweep(fit, over="batch=64,1,tp=4,2,1", catalog=shelf)

    def plain(answer: Answer) -> list[str]:
        kept = [{key: value for key, value in row.items() if key != "point"} for row in records(answer)]
        return sorted(json.dumps(one, sort_keys=True) for one in kept)

    assert plain(there) == plain(back)


def test_how_it_is_answered_is_no_part_of_the_answer(fit: str, shelf: Catalog, tmp_path: Path) -> None:
    kept = {"journal": str(tmp_path / "a.points")}
    ways = [{}, {"workers": "1"}, {"workers": "3"}, kept, kept]
    texts = {dh.sweep(fit, over="tp=1,2,4,batch=1..9:2", catalog=shelf, **way).to_json() for way in ways}
    assert len(texts) == 1


def test_the_best_is_by_what_the_verb_leads_with_or_what_is_asked(fit: str, shelf: Catalog) -> None:
    over = {"tp": [1, 2, 4]}
    usual = dh.sweep(fit, over=over, catalog=shelf)
    asked = dh.sweep(fit, over=over, best="most num_sequences", catalog=shelf)
    assert (usual.results["judged_by"], usual.results["best_input_tp"]) == ("least num_chips", 1)
    assert (asked.results["judged_by"], asked.results["best_input_tp"]) == ("most num_sequences", 4)
    most = max(row["num_sequences"] for row in records(asked))  # type: ignore[type-var]
    assert asked.results["best_num_sequences"] == most
    assert asked.tables[1].marked == 2
    assert all(len(table.columns) <= 7 for table in asked.shown_tables)
    assert unfounded(usual) == unfounded(asked) == []


def test_points_without_an_answer_are_rows_with_their_reason(fit: str, shelf: Catalog) -> None:
    found = dh.sweep(fit, over={"tp": [1, 3], "batch": [1, 100_000]}, catalog=shelf)
    assert [row["verdict"] for row in records(found)] == ["yes", "no", "refused", "refused"]
    assert "heads divide by" in str(records(found)[2]["says"])
    (why,) = [table for table in found.tables if table.title == "points without an answer"]
    assert [row[1] for row in why.rows] == [1, 2]
    assert (found.verdict, found.results["num_answered"]) == ("yes", 1)
    assert "fit" in render(found, "table")


def test_where_no_point_has_an_answer_the_answer_is_no(fit: str, shelf: Catalog) -> None:
    found = dh.sweep(fit, over={"tp": 1, "batch": [100_000, 200_000]}, catalog=shelf)
    assert found.verdict == "no"
    assert found.headline.startswith("None of 2 points has an answer")


def test_results_are_chosen_and_drawn(fit: str, shelf: Catalog) -> None:
    found = dh.sweep(
        fit,
        over="batch=1..64:x2,tp=1,2",
        show="weight_bytes,num_blocks",
        best="most num_sequences",
        catalog=shelf,
    )
    assert [column.key for column in found.tables[1].columns] == [
        "batch", "tp", "num_sequences", "weight_bytes", "num_blocks",
    ]  # fmt: skip
    (chart,) = found.charts
    assert isinstance(chart, LineChart)
    assert [line.name for line in chart.series] == ["tp 1", "tp 2"]
    assert chart.x.log
    assert "<svg" in render(found, "html")


def test_an_input_may_be_named_as_a_file_names_it(fit: str, shelf: Catalog) -> None:
    short, long = (dh.sweep(fit, over={name: [1, 2]}, catalog=shelf) for name in ("tp", "deployment.tp"))
    assert records(short) == records(long)


@pytest.mark.parametrize(
    ("over", "more", "words"),
    [
        ({"tpp": [1]}, {}, "show fit takes no tpp"),
        ({"tp": "1..8:0"}, {}, "makes no step"),
        ({"tp": "8..1:1"}, {}, "is empty"),
        ({"tp": ""}, {}, "has no values"),
        ({}, {}, "nothing is named"),
        ({"tp": [1], "deployment.tp": [2]}, {}, "tp is swept twice"),
        ({"chip": ["h9000"]}, {}, "h9000"),
        ({"tp": ["many"]}, {}, "many"),
        ({"tp": [3]}, {}, "no point can be asked"),
        ({"tp": [1]}, {"best": "least nothing"}, "no point has a result nothing"),
        ({"tp": [1]}, {"best": "num_blocks"}, "whether less or more"),
        ({"tp": [1]}, {"show": "nothing"}, "no point has a result nothing"),
        ({"tp": [1]}, {"workers": "0"}, "neither how many"),
        ({"tp": [1]}, {"workers": "ray://head"}, "neither how many"),
    ],
)
def test_what_cannot_be_swept_is_refused(
    fit: str, shelf: Catalog, over: dict[str, object], more: dict[str, str], words: str
) -> None:
    with pytest.raises(DatahallError, match=words):
        dh.sweep(fit, over=over, catalog=shelf, **more)


def test_more_points_than_anybody_waits_for_are_counted_and_timed_first(fit: str, shelf: Catalog) -> None:
    with pytest.raises(
        DatahallError, match=r"1,000,000,000,000 points would take about .*: the first takes"
    ) as caught:
        dh.sweep(fit, over="batch=1..1000000:1,context=1..1000000:1", catalog=shelf)
    assert "at most 100,000" in caught.value.hint


def test_a_file_that_asks_nothing_is_refused(tmp_path: Path, shelf: Catalog) -> None:
    path = tmp_path / "chip.toml"
    path.write_text("[chip.mine]\n")
    with pytest.raises(DatahallError, match="is not a scenario"):
        dh.sweep(str(path), over="tp=1", catalog=shelf)
