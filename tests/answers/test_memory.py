"""`show memory`: by part, stage and tensor; a layout file under the options; a clear no."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import StackChart
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.cli.main import root
from datahall.errors import ScenarioError
from datahall.report.output import render


def test_the_parts_of_a_layout_that_fits(shelf: Catalog) -> None:
    answer = dh.show_memory(
        "deepseek-v3", chip="h800-sxm", chips=2048, pp=16, ep=64, zero=1, recompute="full",
        catalog=shelf,
    )  # fmt: skip
    assert answer.verdict == "yes"
    by_part, by_stage, by_tensor = answer.tables
    total = sum(row[1] for row in by_part.rows)
    assert total == pytest.approx(answer.results["limit_bytes"])
    assert [row[0] for row in by_stage.rows] == ["0", "1–14", "15"]
    assert sum(row[3] for row in by_tensor.rows) == pytest.approx(answer.results["activation_bytes"])
    chart = answer.charts[0]
    assert isinstance(chart, StackChart)
    assert len(chart.rows) == 3
    assert "<svg" in render(answer, "html")


def test_where_it_does_not_fit_the_cheapest_change_leads(shelf: Catalog) -> None:
    answer = dh.show_memory(
        "llama-3.1-70b",
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
    answer = dh.show_memory("deepseek-v3", pp=16, ep=64, recompute="full", catalog=shelf)
    assert answer.results["num_chips"] == 1024


def test_context_parallel_tensors_add_up(shelf: Catalog) -> None:
    answer = dh.show_memory("llama-3.1-8b", cp=8, seq=65536, catalog=shelf)
    rows = answer.tables[2].rows
    assert any(row[0] == "attention output before exchange" for row in rows)
    assert sum(row[3] for row in rows) == pytest.approx(answer.results["activation_bytes"])


def test_options_stand_over_the_file(shelf: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text("--tensor-model-parallel-size 8\n--micro-batch-size 2\n--seq-length 2048\n--lr 1e-4\n")
    answer = dh.show_memory("llama-3.1-8b", chips=16, layout=str(file), micro_batch=1, catalog=shelf)
    assert answer.results["layout"] == "tp 8, dp 2, zero 0, mb 1"
    assert answer.results["seq_tokens"] == 2048
    assert any("ignored" in note and "lr" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("options", "field", "said"),
    [
        ({"tp": 3, "chips": 6}, "tp", "tp=3 breaks the rule"),
        ({"pp": 64}, "pp", "64 stages"),
        ({"ep": 4}, "ep", "no experts"),
        ({"zero": 4}, "zero", "at most 3"),
        ({"schedule": "2f2b"}, "schedule", "one of gpipe, 1f1b"),
        ({"schedule": "gpipe", "pp": 4, "vpp": 2}, "schedule", "one chunk, not 2"),
        ({"recompute": "some"}, "recompute", "one of none, selective, full"),
        ({"chips": 12, "tp": 8}, "chips", "is 8 chips, not 12"),
        ({"chips": 8, "global_batch": 12}, "global_batch", "does not divide 12"),
        ({"pp": 4, "split": "8,x"}, "split", "is no number of layers"),
        ({"modules": "moe"}, "modules", "has no experts"),
        ({"offload": "optimiser"}, "offload", "did you mean optimizer"),
        ({"layout": "nowhere.sh"}, "layout", "is not a file"),
    ],
)
def test_bad_questions_name_the_input(shelf: Catalog, options: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said) as caught:
        dh.show_memory("llama-3.1-8b", **options, catalog=shelf)
    assert caught.value.field == field


def test_what_does_not_fit_under_one_schedule_may_under_another(shelf: Catalog) -> None:
    """GPipe holds every micro-batch at once: the verdict, the headline and the changes are those of that schedule."""
    asked = {"chips": 16, "tp": 2, "pp": 4, "seq": 4096, "global_batch": 64, "state": "pure-bf16"}
    usual = dh.show_memory("llama-3.1-8b", **asked, catalog=shelf)
    all_at_once = dh.show_memory("llama-3.1-8b", **asked, schedule="gpipe", catalog=shelf)
    assert (usual.verdict, all_at_once.verdict) == ("yes", "no")
    assert "does not fit" in all_at_once.headline
    assert number(all_at_once, "headroom_bytes") < 0 < number(usual, "headroom_bytes")


def test_what_is_not_said_is_the_same_as_for_a_plan(shelf: Catalog) -> None:
    answer = dh.show_memory("llama-3.1-8b", chips=24, catalog=shelf)
    assert answer.results["seq_tokens"] == 8192
    assert answer.results["global_batch"] == 1032  # the first from 1024 on that 24 replicas divide


@pytest.mark.parametrize(
    ("said", "offered"),
    [
        ({"model": "bloom-176b", "chip": "gb200", "chips": 8, "tp": 2, "pp": 4}, False),  # in no way
        (
            {"model": "llama-3.1-8b", "chip": "h200", "chips": 2, "zero": 0},
            True,
        ),  # with something off the chips
        ({"model": "llama-3.1-8b", "chip": "h200", "chips": 16, "tp": 4}, True),  # as it is
    ],
)
def test_a_plan_is_offered_where_something_fits(shelf: Catalog, said: dict[str, Any], offered: bool) -> None:
    asked = {"seq": 2048, "global_batch": 16, **said}
    found = answer_of(ask("show memory", asked, catalog=shelf))
    plans = [one for one in found.next_commands if one.startswith("datahall plan train")]
    assert bool(plans) == offered
    for words in (shlex.split(one)[1:] for one in plans):
        root.main([*words, "--quiet"], standalone_mode=False, obj={"words": []})
