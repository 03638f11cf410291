"""The files that run a plan, asked for by the name of a file or by a format."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Run

SERVE = ("plan", "serve", "llama-3.1-8b", "--rate", "5", "--chips", "h100-sxm")
TRAIN = ("plan", "train", "llama-3.1-8b", "--tokens", "1T", "--chips", "64")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("-o", "vllm.sh"), "vllm.sh"),
        (("-o", "llama.vllm.sh"), "llama.vllm.sh"),
        (("--format", "vllm", "-o", "serve.sh"), "serve.sh"),
    ],
)
def test_a_name_or_a_format_asks_for_a_file(words: tuple[str, ...], file: str, datahall: Run) -> None:
    outcome = datahall(*SERVE, *words)
    assert outcome.code == 0
    assert outcome.out == ""
    assert outcome.err.startswith(f"datahall: wrote {file}: 5 requests/s of Llama 3.1 8B need 1")
    assert Path(file).read_text().startswith("#!/usr/bin/env bash\n# made by datahall")


def test_without_a_file_it_goes_to_the_terminal(datahall: Run) -> None:
    outcome = datahall(*TRAIN, "--format", "slurm")
    assert outcome.code == 0
    assert outcome.out.startswith("#!/usr/bin/env bash\n#SBATCH --job-name=llama-3.1-8b\n")
    assert not list(Path().iterdir())


def test_other_names_ask_for_the_answer_as_before(datahall: Run) -> None:
    assert datahall(*TRAIN, "-o", "deepspeed-answer.json").code == 0
    assert '"kind": "training plan"' in Path("deepspeed-answer.json").read_text()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ((*SERVE, "-o", "run.sh"), "no format goes with .sh"),
        ((*SERVE, "-o", "run.sh"), "vllm.sh, sglang.sh, trtllm.yaml, kubernetes.yaml, ray-serve.yaml"),
        ((*SERVE, "-o", "megatron.sh"), "no format goes with .sh"),  # that is of a run
        ((*SERVE, "--format", "megatron"), "megatron"),
        ((*SERVE, "--format", "sglang", "-o", "vllm.sh"), "say one of them"),
        ((*SERVE, "--json", "-o", "vllm.sh"), "say one of them"),
        ((*SERVE, "-o", "nodir/vllm.sh"), "there is no folder nodir"),
        ((*SERVE, "-o", "sglang.sh"), "--engine sglang"),
        ((*TRAIN, "--chips", "12", "-o", "vllm.sh"), "--chips"),
        (("simulate", "serve", "llama-3.1-8b", "--rate", "5", "-o", "vllm.sh"), "no format goes with .sh"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_bad_input_and_writes_nothing(
    line: tuple[str, ...], said: str, datahall: Run
) -> None:
    outcome = datahall(*line)
    assert outcome.code == 2
    assert said in outcome.err
    assert not [path for path in Path().rglob("*") if path.is_file()]


@pytest.mark.parametrize("words", [("-o", "megatron.sh"), ("--format", "megatron")])
def test_a_plan_that_is_a_no_runs_nothing(words: tuple[str, ...], datahall: Run) -> None:
    """A run of nodes that fail every day and take 300 to come back never ends: exit code 1, said, and no file."""
    outcome = datahall(*TRAIN, "--restart", "300d", "--failure-rate", "1/day", *words)
    assert outcome.code == 1
    assert outcome.out == ""
    assert "1T tokens through" in outcome.err
    assert not list(Path().iterdir())


def test_an_infeasible_plan_runs_nothing(datahall: Run) -> None:
    assert datahall(*SERVE, "--tpot", "1ms", "-o", "vllm.sh").code == 1
    assert not list(Path().iterdir())


def test_a_plan_offers_its_file(datahall: Run) -> None:
    assert "plan serve llama-3.1-8b --rate 5 --chips h100-sxm -o vllm.sh" in datahall(*SERVE).out
    assert "-o sglang.sh" in datahall(*SERVE, "--engine", "sglang").out
    assert ".sh" not in datahall(*SERVE, "--engine", "trtllm").out  # there is none of it
    assert "plan train llama-3.1-8b --tokens 1T --chips 64 -o megatron.sh" in datahall(*TRAIN).out


def test_a_file_that_a_tool_cannot_be_told_is_not_offered(datahall: Run) -> None:
    """Megatron-LM's arguments have no word for the windows and sinks of gpt-oss."""
    outcome = datahall("plan", "train", "gpt-oss-20b", "--tokens", "1T", "--chips", "64")
    assert outcome.code == 0
    assert ".sh" not in outcome.out


def test_help_names_the_files(datahall: Run) -> None:
    text = " ".join(datahall("plan", "train", "--help").out.split())
    assert "megatron.sh, torchtitan.toml, deepspeed.json, slurm.sh" in text
