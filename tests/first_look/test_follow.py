"""Commands under "next" can be typed as they stand, and keep what was said: engine, limits, layout, lengths, paths."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from tests.first_look.conftest import Run

CONFIG = Path(__file__).parents[1] / "catalog" / "configs" / "deepseek-v3.json"
KEPT = (
    (
        "plan serve llama-3.1-8b --rate 5 --chips h200 --engine sglang --ttft 2s --tpot 80ms --isl 300 --osl 50 --tp 2",
        "simulate serve",
        ("--engine sglang", "--ttft 2s", "--tpot 80ms", "--isl 300", "--osl 50", "--tp 2", "--rate 5"),
    ),
    (
        "simulate serve llama-3.1-8b --engine sglang --tp 2 --ttft 2s --tpot 80ms --rate 3 --requests 100 --isl 300",
        "plan serve",
        ("--engine sglang", "--ttft 2s", "--tpot 80ms", "--isl 300", "--rate 3"),
    ),
    (
        "show techniques llama-3.1-8b --rate 5 --engine sglang --tp 2 --ttft 2s",
        "plan serve",
        ("--engine sglang", "--ttft 2s", "--tp 2", "--rate 5"),
    ),
    (
        "plan train llama-3.1-8b --tokens 1T --chips 64 --seq 4096 --global-batch 256 --on fat-tree",
        "simulate train",
        ("--seq 4096", "--global-batch 256", "--on fat-tree", "--chips 64"),
    ),
    (
        "show roofline h200 --model llama-3.1-8b --tp 2 --batch 8 --context 4096",
        "show roofline",
        ("--tp 2", "--batch 8", "--context 4096"),
    ),
)  # fmt: skip


def next_of(datahall: Run, line: str) -> list[str]:
    done = datahall(*shlex.split(line), "--json")
    assert done.code in (0, 1), done.err
    return list(json.loads(done.out)["next_commands"])


@pytest.mark.parametrize(("line", "verb", "kept"), KEPT, ids=[line[:30] for line, _, _ in KEPT])
def test_the_next_command_keeps_what_was_said(
    line: str, verb: str, kept: tuple[str, ...], datahall: Run
) -> None:
    command = next(one for one in next_of(datahall, line) if one.startswith(f"datahall {verb} "))
    for option in kept:
        assert f" {option}" in command, command


@pytest.mark.parametrize("requests", [4, 60])
def test_the_lengths_of_a_trace_are_kept(requests: int, datahall: Run, tmp_path: Path) -> None:
    """Whatever of it is warm-up: what all requests are, the mean of them is."""
    trace = tmp_path / "trace.csv"
    rows = [f"{index * 0.5},700,40" for index in range(requests)]
    trace.write_text("\n".join(["arrived_at,num_prefill_tokens,num_decode_tokens", *rows]))
    commands = [
        one for one in next_of(datahall, f"simulate serve llama-3.1-8b --trace {trace}") if "llama" in one
    ]
    assert commands
    for command in commands:
        assert "--isl 700 --osl 40" in command or f"--trace {trace}" in command, command


@pytest.mark.parametrize("name", ["my models", "it's $HOME"])
def test_a_path_with_odd_letters_stays_a_path(name: str, datahall: Run, tmp_path: Path) -> None:
    """The whole path, quoted: not the name of its folder."""
    folder = tmp_path / name
    folder.mkdir()
    shutil.copy(CONFIG, folder / "config.json")
    path = str(folder / "config.json")
    commands = next_of(
        datahall, shlex.join(["show", "fit", path, "--chip", "h200", "--tp", "8", "--precision", "fp8"])
    )
    mine = [one for one in commands if "validate" not in one]
    assert mine
    for command in mine:
        words = shlex.split(command)
        assert path in words, command
        assert datahall(*words[1:], "--quiet", "--format", "json").code in (0, 1)


def test_a_plan_and_its_next_command_agree(datahall: Run) -> None:
    """As many chips, and the limits kept."""
    done = datahall(*shlex.split("plan serve llama-3.1-8b --rate 40 --chips h100-sxm --json"))
    plan = json.loads(done.out)
    followed = datahall(*shlex.split(plan["next_commands"][0])[1:], "--json")
    assert followed.code == 0
    run = json.loads(followed.out)
    assert run["results"]["keeps_limits"] is True
    assert run["results"]["num_chips"] == plan["results"]["num_chips"]
