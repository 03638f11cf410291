"""Follow-up commands keep the files and folders that were named, and run from the folder that was asked in."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from datahall.answers.ask import form_of
from datahall.answers.follow import follow
from datahall.catalog import Catalog, document
from datahall.cli.main import run
from datahall.scenario.read import read_document, read_names

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip
TRACE = "arrival_s,prompt,output\n" + "".join(f"{0.2 * row},200,20\n" for row in range(30))
LAYOUT = (
    "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --seq-length 2048 --micro-batch-size 1\n"
)
MODEL = """[model.mine]
title = "Mine"
family = "llama"
year = 2026
num_layers = 4
hidden = 1024
num_heads = 8
ffn = 4096
vocab = 128256
max_context = 131072
published_parameters = "330M"
source = { title = "my notes", date = "2026-03" }
"""
SERVICE = 'version = 1\nmodel = "config.json"\n[traffic]\ntrace = "requests.csv"\n'
ASKED = (
    ("show model models/llama", "models/llama/config.json"),
    ("show model models/llama/config.json --chips h100-sxm", "models/llama/config.json"),
    ("show fit './my models/config.json'", "my models/config.json"),
    ("show fit ./-x.json", "./-x.json"),
    ("show memory models/llama --layout runs/train.sh --chips 16", "runs/train.sh"),
    ("simulate train llama-3.1-8b --layout ./runs/train.sh --chips 16 --global-batch 16", "runs/train.sh"),
    ("simulate serve models/llama --trace 'my models/requests.csv'", "models/llama/config.json"),
    ("simulate serve 'my models/service.toml'", "my models/config.json"),
    ("show model mine --catalog own", "--catalog own"),
    ("show fit mine --catalog 'own'", "--catalog own"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "models/llama/config.json": json.dumps(LLAMA),
        "my models/config.json": json.dumps(LLAMA),
        "my models/requests.csv": TRACE,
        "my models/service.toml": SERVICE,
        "-x.json": json.dumps(LLAMA),
        "runs/train.sh": LAYOUT,
        "own/model.toml": MODEL,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("line", "kept"), ASKED)
def test_a_follow_up_runs_where_the_question_was_asked(
    line: str, kept: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*shlex.split(line), "--json"]) in (0, 1)
    commands = json.loads(capsys.readouterr().out)["next_commands"]
    about = [one for one in commands if not one.startswith("datahall validate")]
    assert about
    assert any(kept in one for one in about), about
    for one in about:
        assert run([*shlex.split(one)[1:], "--quiet"]) in (0, 1), one


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "line",
    [
        "plan serve mine --rate 1 --chips h200",
        "show collective all-reduce --on nvl72 --chips 72 --size 1GB",
        "show fabric fat-tree --chips 64",
        "show roofline h200 --model mine",
        "simulate serve mine --chip h200 --rate 2 --requests 20",
        "simulate train mine --chips 8 --global-batch 8",
    ],
)
def test_every_follow_up_keeps_the_catalogue(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*shlex.split(line), "--catalog", "own", "--json"]) == 0
    commands = json.loads(capsys.readouterr().out)["next_commands"]
    assert commands
    assert [one for one in commands if "--catalog own" not in one] == []


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("simulate serve", {"model": "models/llama", "trace": "./my models/requests.csv"}),
        ("simulate serve", {"model": "./-x.json", "trace": "my models/../my models/requests.csv"}),
        ("show memory", {"model": "-x.json", "layout": "runs/train.sh", "chips": 16}),
    ],
)
def test_a_question_asked_again_reads_the_same_files(verb: str, said: dict[str, Any], shelf: Catalog) -> None:
    scenario = read_names(form_of(verb), said, shelf)
    words = shlex.split(follow(scenario))[1:]
    assert run([*words, "--quiet"]) in (0, 1)


@pytest.mark.usefixtures("folder")
def test_files_of_a_scenario_are_counted_from_where_the_command_is_typed(shelf: Catalog) -> None:
    file = document.read(Path("my models/service.toml"))
    again = follow(read_document(form_of("simulate serve"), file, shelf))
    assert '"my models/config.json"' in again
    assert '--trace "my models/requests.csv"' in again
