"""A plan beside the layout that somebody has: `plan train --layout FILE`."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.results import number

import datahall as dh

ASKED = {"model": "llama-3.1-8b", "tokens": "100B"}
SLOW = (
    "--tensor-model-parallel-size 8 --micro-batch-size 1 --seq-length 4096 --global-batch-size 64 "
    "--use-distributed-optimizer"
)


@pytest.fixture
def slow(tmp_path: Path) -> str:
    file = tmp_path / "run.sh"
    file.write_text(SLOW)
    return str(file)


def test_the_layout_of_a_file_stands_beside_the_best(slow: str) -> None:
    plan = dh.plan_train(**ASKED, chips=64, layout=slow)
    step = dh.simulate_train("llama-3.1-8b", chips=64, layout=slow)
    assert number(plan, "present_step_s") == pytest.approx(number(step, "step_s"))
    slower = number(plan, "present_step_s") / number(plan, "step_s") - 1.0
    assert number(plan, "present_slower_fraction") == pytest.approx(slower)
    assert slower > 0.05
    best = next(table for table in plan.tables if table.title == "best layouts")
    assert str(best.rows[-1][-1]).startswith("yours: ")
    assert "run.sh" in plan.headline
    assert "as the layout file says" in plan.headline


def test_what_a_file_says_of_the_job_holds_for_the_plan_and_its_commands(slow: str) -> None:
    plan = dh.plan_train(**ASKED, chips=64, layout=slow)
    said = dh.plan_train(**ASKED, chips=64, seq=4096, global_batch=64)
    for name in ("step_s", "duration_s", "elapsed_s", "site_w"):
        assert number(plan, name) == pytest.approx(number(said, name)), name
    assert plan.inputs["seq"] == 4096
    for line in plan.next_commands:
        words = shlex.split(line)
        if "-o" in words:  # the same question once more, and its file
            assert words[words.index("--layout") + 1] == slow
            continue
        assert "--layout" not in words, line
        assert words[words.index("--seq") + 1] == "4096", line


def test_a_file_that_says_its_replicas_says_how_many_chips(tmp_path: Path) -> None:
    file = tmp_path / "train.toml"
    file.write_text(
        "[training]\nseq_len = 4096\nlocal_batch_size = 1\nglobal_batch_size = 64\n[parallelism]\n"
        "data_parallel_shard_degree = 16\ntensor_parallel_degree = 2\n"
    )
    plan = dh.plan_train(**ASKED, layout=str(file))
    assert number(plan, "num_chips") + number(plan, "num_idle_chips") == 32


def test_a_layout_that_does_not_fit_is_said_to(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text("--tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 64")
    plan = dh.plan_train(**ASKED, chips=64, layout=str(file))
    assert plan.results["present_fits"] is False
    assert plan.results["present_slower_fraction"] is None
    assert "does not fit by" in plan.headline
    assert number(plan, "headroom_bytes") > 0


def test_a_layout_and_a_deadline_are_refused_together(slow: str) -> None:
    with pytest.raises(dh.DatahallError, match="is of so many chips"):
        dh.plan_train(**ASKED, deadline="10d", layout=slow)


def test_a_layout_that_cannot_run_is_refused_as_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text("--tensor-model-parallel-size 7")
    with pytest.raises(dh.DatahallError, match="tp"):
        dh.plan_train(**ASKED, chips=56, layout=str(file))
