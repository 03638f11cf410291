"""What a first look asked for that is to come: each check names what it waits for, and says when it is there."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.first_look.conftest import Run
from tests.first_look.figures import waits_for

import datahall as dh
from datahall.catalog import Catalog

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("plan serve llama-3.1-8b --trace requests.csv", "a plan from a trace"),
        ("plan serve llama-3.1-8b --rate 5 --spare 1", "N+1 in plan serve"),
        ("plan serve llama-3.1-8b --rate 5 --disaggregated", "disaggregation in plan serve"),
        (
            "plan train llama-3.1-8b --tokens 1T --chips 64 --on tree,torus",
            "the fabric as an axis of plan train",
        ),
    ],
)
def test_a_question_of_a_first_look_can_be_asked(
    line: str, what: str, datahall: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{index},700,40" for index in range(20)]
    (tmp_path / "requests.csv").write_text(
        "\n".join(["arrived_at,num_prefill_tokens,num_decode_tokens", *rows])
    )
    assert datahall(*shlex.split(line)).code in (0, 1), what


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("plan serve llama-3.1-8b --rate 5 -o vllm.sh", "--tensor-parallel-size 1"),
        (
            "plan train llama-3.1-8b --tokens 1T --chips 64 -o megatron.sh",
            "--data-parallel-sharding-strategy optim",
        ),
    ],
)
def test_a_plan_can_be_deployed(
    line: str, said: str, datahall: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launch commands with the launcher's own words."""
    monkeypatch.chdir(tmp_path)
    assert datahall(*shlex.split(line)).code == 0
    (written,) = tmp_path.glob("*.sh")
    assert said in written.read_text()


def test_think_time_makes_fewer_chips(shelf: Catalog) -> None:
    """Who reads for 30 s asks less often; that much can be asked today."""
    always, reading = (
        dh.plan_serve("llama-3.1-8b", users=10_000, chips="h100-sxm", **more, catalog=shelf).results[
            "num_chips"
        ]
        for more in ({}, {"think": "30 s"})
    )
    assert reading < always  # type: ignore[operator]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("compare h100 h200 b200", ["leads in"]),
        (
            "compare aws gcp azure lambda coreweave --chip h100-sxm",
            ["lambda is better in on demand price", "not priced: gcp, azure, coreweave"],
        ),
    ],
)
def test_chips_and_clouds_are_compared(line: str, said: list[str], datahall: Run) -> None:
    outcome = datahall(*line.split())
    assert outcome.code == 0
    assert [words for words in said if words in outcome.out] == said


def test_adapters_are_trained_on_fewer_chips_with_less_to_keep() -> None:
    """Rank 16 beside every linear layer of 8B: 16 · 32 · (28,672 + 34,816 + 16,384 …) values; QLoRA on one chip."""
    step = dh.simulate_train("llama-3.1-8b", chips=8, lora=16, global_batch=64)
    whole = dh.simulate_train("llama-3.1-8b", chips=8, global_batch=64)
    assert step.results["step_s"] < whole.results["step_s"]  # type: ignore[operator]
    assert step.results["memory_bytes"] < whole.results["memory_bytes"]  # type: ignore[operator]
    plan = dh.plan_train("llama-3.1-70b", lora=16, quantised=True, tokens="50M")
    assert plan.verdict == "yes"
    assert plan.results["num_chips"] == 1
    assert plan.results["memory_bytes"] < 80e9  # type: ignore[operator]


def test_a_plan_says_what_think_time_would_change(shelf: Catalog) -> None:
    plan = dh.plan_serve("llama-3.1-8b", users=10_000, chips="h100-sxm", catalog=shelf)
    assert any("think" in table.title for table in plan.tables)


def test_a_run_shows_its_queue_over_time(shelf: Catalog) -> None:
    found = dh.simulate_serve("llama-3.1-8b", rate=5, requests=100, catalog=shelf)
    assert any("time" in chart.title and "queue" in chart.title for chart in found.charts)


@waits_for("a reader of measurements from sources that nobody described, with stated assumptions")
def test_a_strangers_file_is_scored(datahall: Run, tmp_path: Path) -> None:
    path = tmp_path / "stranger.csv"
    path.write_text(
        "model,chip,engine,tp,batch,isl,osl,tpot_ms\nllama-3.1-8b,h100-sxm,vllm,1,8,512,128,7.9\n"
    )
    assert datahall("validate", "inference", "--data", str(path)).code == 0


@waits_for("bands that hold for sources never seen, from effects of source, size and basis")
def test_the_ledger_says_how_bands_hold_for_sources_never_seen() -> None:
    """Beside the coverage of further rows of known ones, which flatters."""
    assert "sources never seen" in (DOCS / "validation.md").read_text()
