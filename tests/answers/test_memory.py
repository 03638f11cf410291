"""`show memory --train`: by part, stage and tensor; a layout file under the options; a clear no."""

from pathlib import Path

import pytest

import datahall as dh
from datahall.answer import StackChart
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.report.output import render


def test_the_parts_of_a_layout_that_fits(shelf: Catalog) -> None:
    answer = dh.show_memory(
        "deepseek-v3", train=True, chip="h800-sxm", chips=2048, pp=16, ep=64, zero=1, recompute="full",
        catalog=shelf,
    )  # fmt: skip
    assert answer.verdict == "yes"
    by_part, by_stage, by_tensor = answer.tables
    total = sum(row[1] for row in by_part.rows)
    assert total == pytest.approx(answer.results["limit_bytes"])
    assert [row[0] for row in by_stage.rows] == ["0", "1–13", "14", "15"]
    assert sum(row[3] for row in by_tensor.rows) == pytest.approx(answer.results["activation_bytes"])
    chart = answer.charts[0]
    assert isinstance(chart, StackChart)
    assert len(chart.rows) == 4
    assert "<svg" in render(answer, "html")


def test_where_it_does_not_fit_the_cheapest_change_leads(shelf: Catalog) -> None:
    answer = dh.show_memory(
        "llama-3.1-70b",
        train=True,
        chips=64,
        tp=8,
        seq=8192,
        global_batch=256,
        catalog=shelf,
    )
    assert answer.verdict == "no"
    assert "does not fit" in answer.headline
    assert "Cheapest change: " in answer.binding
    assert answer.tables[-1].marked == 0


def test_chips_follow_from_the_degrees(shelf: Catalog) -> None:
    answer = dh.show_memory("deepseek-v3", train=True, pp=16, ep=64, recompute="full", catalog=shelf)
    assert answer.inputs["num_chips"] == 1024


def test_context_parallel_tensors_add_up(shelf: Catalog) -> None:
    answer = dh.show_memory("llama-3.1-8b", train=True, cp=8, seq=65536, catalog=shelf)
    rows = answer.tables[2].rows
    assert any(row[0] == "attention output before exchange" for row in rows)
    assert sum(row[3] for row in rows) == pytest.approx(answer.results["activation_bytes"])


def test_options_stand_over_the_file(shelf: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text("--tensor-model-parallel-size 8\n--micro-batch-size 2\n--seq-length 2048\n--lr 1e-4\n")
    answer = dh.show_memory(
        "llama-3.1-8b", train=True, chips=16, layout=str(file), micro_batch=1, catalog=shelf
    )
    assert answer.inputs["layout"] == "tp 8, dp 2, zero 0, mb 1"
    assert answer.inputs["seq"] == 2048
    assert any("ignored" in note and "lr" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"train": False}, "say --train"),
        ({"tp": 3, "chips": 6}, "tp 3 does not divide"),
        ({"pp": 64}, "64 stages"),
        ({"ep": 4}, "no experts"),
        ({"zero": 4}, "--zero is 4"),
        ({"schedule": "2f2b"}, "--schedule"),
        ({"recompute": "some"}, "--recompute"),
        ({"chips": 12, "tp": 8}, "is 8 chips, not 12"),
    ],
)
def test_bad_questions(shelf: Catalog, options: dict[str, object], said: str) -> None:
    asked: dict[str, object] = {"train": True} | options
    with pytest.raises(ScenarioError, match=said):
        dh.show_memory("llama-3.1-8b", **asked, catalog=shelf)
