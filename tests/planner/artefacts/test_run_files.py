"""Files of a training run: read back they are the plan's layout, and they run as they stand."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.planner.artefacts.conftest import COMMENT, TRAIN, TRAINED, asked, called, command_of, flags

from datahall.catalog import load
from datahall.catalog.entries.tool import tool
from datahall.errors import DatahallError
from datahall.planner.artefacts.training.torchtitan import flavour_of
from datahall.training.layout.file import read_layout

BIG = {"model": "llama-3.1-405b", "tokens": "1T", "chips": "2048", "global_batch": "2048"}
EXPERTS = {
    "model": "deepseek-v3",
    "tokens": "1T",
    "chips": "1024",
    "chip": "h800-sxm",
    "precision": "fp8",
    "seq": "4096",
}
OFFLOADED = {"model": "llama-3.1-70b", "tokens": "1B", "chips": "8", "offload": "optimizer"}
DEGREES = ("tp", "pp", "cp", "ep", "dp", "zero", "micro_batch", "recompute", "context_exchange")
SAID = {"MEGATRON": "/m", "DATA_PATH": "/d", "CHECKPOINTS": "/c", "LR": "3e-4"}


@pytest.mark.parametrize(
    "given", [TRAINED, BIG, EXPERTS, OFFLOADED], ids=["dense", "stages", "experts", "offload"]
)
def test_megatron_s_arguments_are_the_plan_s_layout(
    given: dict[str, str], tmp_path: Path, syntax: Callable[[str], None]
) -> None:
    made = asked(TRAIN, given)
    results, text = made.answer.results, made.file("megatron.sh")
    path = tmp_path / "megatron.sh"
    path.write_text(text)
    file = read_layout(path)
    layout = file.on(int(results["num_chips"]))  # type: ignore[arg-type]
    assert {name: getattr(layout, name) for name in DEGREES} == {name: results[name] for name in DEGREES}
    assert " ".join(layout.offload) == results["offload"]
    assert file.seq == int(given.get("seq", 8192))
    assert file.precision == given.get("precision", "bf16")
    words = command_of(text)
    assert int(words["--global-batch-size"]) == int(given.get("global_batch", 1024))
    assert int(words["--train-iters"]) == results["num_steps"]
    syntax(text)


def chunks(text: str) -> list[int]:
    """Layers of each chunk of a layout of a pipeline, unrolled as its help says: E, t, L; (…)*n; t*n; bars between."""
    text = re.sub(r"\(([^)]*)\)\*(\d+)", lambda found: found[1] * int(found[2]), text)
    text = re.sub(r"t\*(\d+)", lambda found: "t" * int(found[1]), text)
    assert text[0] == "E"
    assert text[-1] == "L"
    return [part.count("t") for part in text[1:-1].split("|")]


def test_uneven_stages_hold_every_layer_once() -> None:
    """126 layers in 16 stages of 8 chunks: 128 places, of which the first and the last hold the tables alone."""
    made = asked(TRAIN, BIG)
    results = made.answer.results
    found = chunks(command_of(made.file("megatron.sh"))["--pipeline-model-parallel-layout"])
    assert sum(found) == 126
    assert len(found) == results["pp"] * results["vpp"]  # type: ignore[operator]
    assert "--num-virtual-stages-per-pipeline-rank" not in command_of(made.file("megatron.sh"))


def test_a_model_is_described_as_its_makers_do() -> None:
    """DeepSeek-V3, technical report, section 4.2."""
    words = command_of(asked(TRAIN, EXPERTS).file("megatron.sh"))
    expected = {
        "--num-layers": "61", "--hidden-size": "7168", "--num-attention-heads": "128", "--q-lora-rank": "1536",
        "--kv-lora-rank": "512", "--qk-head-dim": "128", "--qk-pos-emb-head-dim": "64", "--v-head-dim": "128",
        "--num-experts": "256", "--moe-router-topk": "8", "--moe-ffn-hidden-size": "2048",
        "--moe-layer-freq": "([0]*3+[1]*58)", "--moe-shared-expert-intermediate-size": "2048",
        "--moe-router-num-groups": "8", "--moe-router-group-topk": "4", "--fp8-format": "hybrid",
    }  # fmt: skip
    assert {name: words[name] for name in expected} == expected
    assert "--multi-latent-attention" in words


@pytest.mark.parametrize(("given", "one_queue"), [(TRAINED, ""), (BIG, "1")])
def test_every_node_starts_its_part(given: dict[str, str], one_queue: str, tmp_path: Path) -> None:
    """Megatron checks CUDA_DEVICE_MAX_CONNECTIONS: 1 with tensor or context parallelism, not 1 with its FSDP."""
    made = asked(TRAIN, given)
    (row,) = called(
        made.file("megatron.sh"), tmp_path, ("torchrun",), NODE_RANK="3", MASTER_ADDR="node0", **SAID
    )
    words = flags(row)
    assert int(words["--nnodes"]) * int(words["--nproc-per-node"]) == made.answer.results["num_chips"]
    assert words["--node-rank"] == "3"
    assert "/m/pretrain_gpt.py" in " ".join(row)
    assert words["--lr"] == "3e-4"
    assert row[-1] == f"CUDA={one_queue}"


def test_what_the_plan_does_not_know_must_be_said(tmp_path: Path) -> None:
    text = asked(TRAIN, TRAINED).file("megatron.sh")
    with pytest.raises(AssertionError, match="LR: highest rate of learning"):
        called(text, tmp_path, ("torchrun",), NODE_RANK="0", MASTER_ADDR="x", **(SAID | {"LR": ""}))


def test_copies_are_written_as_often_as_the_plan_says() -> None:
    """Every so many steps of the interval that the answer has."""
    made = asked(TRAIN, TRAINED)
    steps = int(command_of(made.file("megatron.sh"))["--save-interval"])
    interval_s = made.answer.results["checkpoint_interval_s"]
    step_s = made.answer.results["step_s"]
    assert steps == pytest.approx(interval_s / step_s, rel=0.02)  # type: ignore[operator]


def test_a_job_asks_for_the_nodes_of_the_plan(tmp_path: Path, syntax: Callable[[str], None]) -> None:
    made = asked(TRAIN, TRAINED)
    text = made.file("slurm.sh")
    asks = dict(re.findall(r"^#SBATCH (--[\w-]+)=?(.*)$", text, re.M))
    assert int(asks["--nodes"]) * int(asks["--gpus-per-node"]) == made.answer.results["num_chips"]
    assert asks["--ntasks-per-node"] == "1"
    assert text.index("#SBATCH") < text.index("set -euo")  # sbatch stops reading at the first command
    assert all(line.startswith("#") for line in text[: text.index("set -euo")].splitlines() if line)
    syntax(text)
    queue = {"SLURM_NNODES": "8", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[0-7]"}
    rows = called(text, tmp_path, ("srun", "scontrol"), **queue, **SAID)
    row = next(row for row in rows if row[0] == "srun")
    assert row[1] == "torchrun"
    words = flags(row)
    assert words["--nnodes"] == "8"
    assert words["--rdzv-id"] == "7"
    launched = command_of(made.file("megatron.sh"))
    assert words["--train-iters"] == launched["--train-iters"]


def test_torchtitan_s_file_is_the_plan_s_layout(tmp_path: Path) -> None:
    made = asked(TRAIN, TRAINED)
    results, text = made.answer.results, made.file("torchtitan.toml")
    path = tmp_path / "torchtitan.toml"
    path.write_text(text)
    file = read_layout(path)
    layout = file.on(64)
    names = ("tp", "pp", "cp", "dp", "zero", "micro_batch", "recompute")
    assert {name: getattr(layout, name) for name in names} == {name: results[name] for name in names}
    assert (file.seq, file.global_batch) == (8192, 1024)
    found = tomllib.loads(text)
    assert found["model"] == {"name": "llama3", "flavor": "8B"}
    assert found["training"]["steps"] == results["num_steps"]


def test_deepspeed_s_file_is_the_plan_s_layout(tmp_path: Path) -> None:
    made = asked(TRAIN, TRAINED)
    results, text = made.answer.results, made.file("deepspeed.json")
    path = tmp_path / "deepspeed.json"
    path.write_text(text)
    file = read_layout(path)
    names = ("tp", "pp", "cp", "dp", "zero", "micro_batch", "recompute")
    assert {name: getattr(file.layout, name) for name in names} == {name: results[name] for name in names}
    found = json.loads(text)
    micro, steps = found["train_micro_batch_size_per_gpu"], found["gradient_accumulation_steps"]
    assert found["train_batch_size"] == micro * steps * results["dp"] == 1024
    assert "sequences of 8,192 tokens" in found["datahall"][-1]


@pytest.mark.parametrize("name", ["megatron.sh", "slurm.sh", "torchtitan.toml"])
def test_a_file_says_which_question_and_version_made_it(name: str) -> None:
    text = asked(TRAIN, TRAINED).file(name)
    assert COMMENT.findall(text) == ["datahall plan train llama-3.1-8b --tokens 1T --chips 64"]
    assert "options as in" in text


@pytest.mark.parametrize(
    ("given", "name", "said"),
    [
        (BIG, "torchtitan.toml", "ZeRO 1 among"),
        (BIG, "deepspeed.json", "pp=16"),
        (EXPERTS, "deepspeed.json", "the format fp8"),
        (OFFLOADED, "torchtitan.toml", "offload of optimizer alone"),
        (TRAINED | {"model": "gpt-oss-20b"}, "megatron.sh", "attention sinks"),
        (TRAINED | {"model": "mixtral-8x7b"}, "torchtitan.toml", "4,096 wide"),
        (TRAINED | {"chips": "12"}, "slurm.sh", "12 chips, no whole nodes of 8"),
        (TRAINED | {"chip": "tpu-v5p"}, "megatron.sh", "chips of Google"),
    ],
)  # fmt: skip
def test_what_a_tool_cannot_be_told_is_refused_by_name(given: dict[str, str], name: str, said: str) -> None:
    made = asked(TRAIN, given)
    with pytest.raises(DatahallError) as error:
        made.file(name)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("name", "flavour"),
    [
        ("llama-3.1-70b", "llama3/70B"), ("llama-3.1-405b", "llama3/405B"), ("llama-4-scout", "llama4/17bx16e"),
        ("llama-4-maverick", "llama4/17bx128e"), ("qwen3-14b", "qwen3/14B"), ("qwen3-30b-a3b", "qwen3/30B-A3B"),
        ("deepseek-v3", "deepseek_v3/671B"), ("deepseek-v2", "deepseek_v3/236B"),
    ],
)  # fmt: skip
def test_torchtitan_has_a_model_by_its_sizes(name: str, flavour: str) -> None:
    assert flavour_of(load().model(name), tool("torchtitan")) == flavour


@pytest.mark.parametrize(
    "name",
    ["llama-2-70b", "qwen2.5-14b", "qwen2.5-32b", "qwen3-next-80b-a3b", "llama-3.2-3b", "gpt-oss-120b"],
)
def test_torchtitan_has_no_model_that_is_merely_as_wide(name: str) -> None:
    with pytest.raises(DatahallError, match=f"like {name}"):
        flavour_of(load().model(name), tool("torchtitan"))


@pytest.mark.parametrize("quantised", ["true", "false"])
@pytest.mark.parametrize("name", ["megatron.sh", "torchtitan.toml", "deepspeed.json", "slurm.sh"])
def test_adapters_are_no_full_fine_tune(name: str, quantised: str) -> None:
    tuned = {"model": "llama-3.1-8b", "tokens": "50M", "lora": "16", "quantised": quantised}
    made = asked(TRAIN, tuned)
    with pytest.raises(DatahallError, match="no word for what the plan chose"):
        made.file(name)
    assert not any(" -o " in command for command in made.answer.next_commands)


def test_the_formats_of_the_state_are_told_or_refused() -> None:
    narrow = {"model": "llama-3.1-8b", "tokens": "1G", "chips": "64", "seq": "4096", "state": "pure-bf16"}
    made = asked(TRAIN, narrow)
    assert tomllib.loads(made.file("torchtitan.toml"))["training"]["dtype"] == "bfloat16"
    for name in ("megatron.sh", "deepspeed.json"):
        with pytest.raises(DatahallError, match="a state of 8 bytes a parameter"):
            made.file(name)
    aware = asked(TRAIN, {**narrow, "state": "precision-aware"})
    assert "--exp-avg-dtype" in aware.file("megatron.sh")
    for name in ("torchtitan.toml", "deepspeed.json"):
        with pytest.raises(DatahallError, match="a state of 14 bytes a parameter"):
            aware.file(name)
    assert "dtype" not in tomllib.loads(asked(TRAIN, TRAINED).file("torchtitan.toml"))["training"]


def test_the_first_file_that_can_say_it_is_offered() -> None:
    """Megatron-LM has no word for parameters on the host; torchtitan, the next, has."""
    tight = {
        "model": "llama-3.1-8b",
        "tokens": "1B",
        "chips": "1",
        "chip": "h100-sxm",
        "offload": "optimizer,parameters",
    }
    made = asked(TRAIN, tight)
    with pytest.raises(DatahallError):
        made.file("megatron.sh")
    (command,) = (one for one in made.answer.next_commands if " -o " in one)
    assert made.file(command.rpartition(" -o ")[2])
