"""`datahall plan train` and `show memory` as commands: exit codes and the order of an answer."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from datahall.catalog import load
from datahall.cli.main import run


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DATAHALL_CATALOG", raising=False)
    load.cache_clear()
    yield
    load.cache_clear()


def test_a_plan_says_decision_binding_table_breakdown_and_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "train", "llama-3.1-8b", "--tokens", "1T", "--chips", "128"]) == 0
    out = capsys.readouterr().out
    words = ("1T tokens through", "of the step of", "best layouts", "▸", "how it adds up", "notes", "next")
    places = [out.index(word) for word in words]
    assert places == sorted(places)


def test_a_deadline_is_read_with_its_unit(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "train", "llama-3.1-8b", "--tokens", "1T", "--deadline", "30d", "--json"]
    assert run(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["results"]["elapsed_s"] <= 30 * 86400
    assert found["results"]["num_chips"] % 8 == 0


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("plan train llama-3.1-405b --tokens 1T --chips 64", 1, "or --chips 128"),
        ("plan train llama-3.1-8b --tokens 15T --deadline 1h", 1, "no number of chips"),
        ("plan train llama-3.1-8b --tokens 1T", 2, "either how many chips"),
        ("plan train llama-3.1-9b --tokens 1T --chips 8", 2, "did you mean: llama-3.1-8b"),
        ("show memory llama-3.1-8b --tp 3 --chips 6", 2, "--tp 2 or --tp 4"),
        ("show memory llama-3.1-8b --layout nowhere.sh", 2, "is not a file"),
        ("plan train llama-3.1-8b --tokens 1T --chips 8 --offload optimiser", 2, "did you mean optimizer"),
        ("show memory qwen3-30b-a3b --ep 8 --etp 3 --dp 16", 2, "nearest: --etp 2"),
        ("show memory llama-3.1-8b --dp 12 --zero 3 --shard 5", 2, "nearest: --shard 4 or --shard 6"),
        ("show memory llama-3.1-8b --pp 4 --split 8,8,8", 2, "the split names 3 stages"),
        ("show memory llama-3.1-8b --pp 4 --split 8,x", 2, "is no number of layers"),
        ("show memory llama-3.1-8b --modules moe", 2, "has no experts"),
        ("show memory llama-3.1-8b --compress zip", 2, "one of none, bf16, fp8"),
        ("show memory llama-3.1-8b --context-exchange spiral", 2, "one of ring, all-to-all"),
        ("plan trane llama-3.1-8b", 2, "is not a command"),
    ],
)
def test_a_no_and_bad_input_have_their_exit_codes(
    capsys: pytest.CaptureFixture[str], line: str, code: int, said: str
) -> None:
    assert run(line.split()) == code
    assert said in capsys.readouterr().err


def test_a_step_with_everything_beside_the_degrees(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "simulate train qwen3-30b-a3b --chips 64 --chip h100-sxm --tp 4 --pp 2 --ep 8 --etp 2 --zero 1 --shard 4 "
        "--global-batch 64 --seq 4096 --split 23,25 --modules layernorm,moe_act --offload optimizer "
        "--compress fp8 --json"
    )
    assert run(words.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"]["split"] == "23 25"
    assert found["inputs"]["offload"] == "optimizer"
    assert any(table["title"] == "outside the chip" for table in found["tables"])
    assert found["inputs"]["compression"] == "fp8"
    assert run([*words.split()[:-1]]) == 0
    assert "convergence is not modelled" in " ".join(capsys.readouterr().out.split())


def test_what_does_not_fit_is_shown_and_ends_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "memory", "llama-3.1-70b", "--chips", "8", "--tp", "8", "--seq", "8192"]) == 1
    out = capsys.readouterr().out
    assert "does not fit" in out
    assert "single changes on the same chips" in out
