"""Layouts from Megatron-LM arguments, torchtitan TOML and DeepSpeed JSON."""

from pathlib import Path

import pytest

from datahall.catalog import Catalog
from datahall.errors import DocumentError, ScenarioError
from datahall.training.layout.file import read_layout
from datahall.training.layout.layout import Layout

SHELF = Catalog(user=False)
MEGATRON = """#!/bin/bash
# Runs the "175B" parameter model
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP=8
PP=${PIPELINE:-4}
CHECKPOINT_PATH=$1 #<Specify path>

DISTRIBUTED_ARGS=(
    --nproc_per_node 8
    --nnodes 16
)
GPT_MODEL_ARGS=(
    --num-layers 96
    --seq-length 2048   # tokens
)
TRAINING_ARGS="
    --micro-batch-size 1 \\
    --global-batch-size=1536 \\
    --fp16 --lr 6.0e-5
"
MODEL_PARALLEL_ARGS=(--tensor-model-parallel-size ${TP} --pipeline-model-parallel-size $PP)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py ${GPT_MODEL_ARGS[@]} \\
    --sequence-parallel --use-distributed-optimizer \\
    --num-layers-per-virtual-pipeline-stage 4 \\
    --recompute-granularity selective \\
    --data-path $DATA_PATH
"""

TITAN = """
[model]
flavor = "70B"
converters = ["float8"]

[training]
local_batch_size = 16
seq_len = 8192

[parallelism]
data_parallel_shard_degree = 32
tensor_parallel_degree = 8
enable_async_tensor_parallel = true

[activation_checkpoint]
mode = "full"
"""

DEEPSPEED = """{
  "train_batch_size": 256,
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 8,
  "zero_optimization": {"stage": 3, "overlap_comm": true},
  "bf16": {"enabled": true},
  "wall_clock_breakdown": false
}
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_megatron_arguments(tmp_path: Path) -> None:
    found = read_layout(written(tmp_path, "run.sh", MEGATRON))
    assert found.layout == Layout(tp=8, pp=4, vpp=6, zero=1, micro_batch=1, recompute="selective")
    assert (found.seq, found.global_batch, found.precision) == (2048, 1536, "fp16")
    assert found.on(128) == Layout(tp=8, pp=4, vpp=6, dp=4, recompute="selective")
    assert set(found.ignored) == {"nproc-per-node", "nnodes", "lr", "data-path"}


MIXTURE = """
torchrun pretrain_gpt.py --num-layers 61 --num-experts 256 \\
    --tensor-model-parallel-size 2 --pipeline-model-parallel-size 16 --expert-model-parallel-size 64 \\
    --expert-tensor-parallel-size 1 --decoder-first-pipeline-num-layers 3 --decoder-last-pipeline-num-layers 2 \\
    --recompute-granularity selective --recompute-modules mla_up_proj moe_act layernorm \\
    --context-parallel-size 2 --cp-comm-type a2a --use-distributed-optimizer --optimizer-cpu-offload \\
    --num-distributed-optimizer-instances 4 --micro-batch-size 1 --overlap-grad-reduce
"""


def test_megatron_arguments_of_a_mixture(tmp_path: Path) -> None:
    found = read_layout(written(tmp_path, "run.sh", MIXTURE))
    layout = found.finished(found.on(2048), SHELF.model("deepseek-v3"))
    assert (layout.etp, layout.context, layout.offload) == (1, "all-to-all", ("optimizer",))
    assert layout.modules == ("layernorm", "mla_up_proj", "moe_act")
    assert layout.split == (3, *(4,) * 14, 2)
    assert (layout.dp, layout.shard) == (32, 8)
    assert found.ignored == ("overlap-grad-reduce",)
    layout.check(SHELF.model("deepseek-v3"), 2048, 64)


def test_megatron_cuts_experts_as_the_rest_unless_told(tmp_path: Path) -> None:
    text = "--tensor-model-parallel-size 4 --expert-model-parallel-size 8"
    assert read_layout(written(tmp_path, "a.sh", text)).layout.etp == 4
    assert read_layout(written(tmp_path, "b.sh", "--tensor-model-parallel-size 4")).layout.etp == 0


def test_embedding_and_loss_take_the_place_of_layers(tmp_path: Path) -> None:
    text = (
        "--pipeline-model-parallel-size 16 --account-for-embedding-in-pipeline-split\n"
        "--account-for-loss-in-pipeline-split\n"
    )
    found = read_layout(written(tmp_path, "a.sh", text))
    assert found.finished(found.layout, SHELF.model("llama-3.1-405b")).split == (7, *(8,) * 14, 7)
    with pytest.raises(ScenarioError, match="do not divide by pp 16"):
        found.finished(found.layout, SHELF.model("llama-3.1-70b"))


def test_torchtitan_replicates_what_groups_share(tmp_path: Path) -> None:
    text = (
        "[parallelism]\ndata_parallel_shard_degree = 8\ndata_parallel_replicate_degree = 4\n"
        "expert_parallel_degree = 8\nexpert_tensor_parallel_degree = 1\n[training]\nenable_cpu_offload = true\n"
    )
    found = read_layout(written(tmp_path, "hsdp.toml", text))
    layout = found.finished(found.layout, SHELF.model("qwen3-30b-a3b"))
    assert (layout.dp, layout.shard, layout.zero, layout.etp) == (32, 8, 3, 1)
    assert layout.offload == ("optimizer", "parameters")
    rest = read_layout(written(tmp_path, "rest.toml", "[parallelism]\ndata_parallel_replicate_degree = 4\n"))
    assert rest.finished(rest.on(64), SHELF.model("llama-3.1-8b")).shard == 16
    plain = read_layout(written(tmp_path, "ddp.toml", text.replace("shard_degree = 8", "shard_degree = 1")))
    assert (plain.layout.zero, plain.layout.dp, plain.num_copies) == (0, 4, 1)


def test_deepspeed_offload_groups_and_compression(tmp_path: Path) -> None:
    text = """{"zero_optimization": {"stage": 3, "mics_shard_size": 8, "zero_hpz_partition_size": 8,
      "offload_optimizer": {"device": "nvme", "nvme_path": "/x"}, "offload_param": {"device": "cpu"}},
      "communication_data_type": "fp16"}"""
    found = read_layout(written(tmp_path, "ds.json", text))
    assert found.layout.offload == ("optimizer:nvme", "parameters")
    assert (found.layout.shard, found.layout.compression) == (8, "bf16")
    assert set(found.ignored) == {
        "zero_optimization.zero_hpz_partition_size", "zero_optimization.offload_optimizer.nvme_path",
    }  # fmt: skip
    signs = '{"optimizer": {"type": "OneBitAdam"}, "train_micro_batch_size_per_gpu": 1}'
    assert read_layout(written(tmp_path, "signs.json", signs)).layout.compression == "1-bit"


def test_torchtitan(tmp_path: Path) -> None:
    found = read_layout(written(tmp_path, "llama3_70b.toml", TITAN))
    assert found.layout == Layout(tp=8, dp=32, zero=3, micro_batch=16, recompute="full")
    assert (found.seq, found.precision, found.states_dp) == (8192, "fp8", True)
    assert set(found.ignored) == {"model.flavor", "parallelism.enable_async_tensor_parallel"}


def test_torchtitan_keeps_gathered_weights_under_a_pipeline(tmp_path: Path) -> None:
    text = (
        "[parallelism]\npipeline_parallel_degree = 8\npipeline_parallel_schedule = 'Interleaved1F1B'\n"
        "[training]\nlocal_batch_size = 8\n"
    )
    found = read_layout(written(tmp_path, "pp.toml", text))
    assert (found.layout.zero, found.layout.vpp, found.layout.micro_batch) == (2, 2, 1)
    assert found.accumulation == 8


def test_deepspeed(tmp_path: Path) -> None:
    found = read_layout(written(tmp_path, "ds_config.json", DEEPSPEED))
    assert found.layout == Layout(dp=8, zero=3, micro_batch=4, sequence_parallel=False)
    assert (found.global_batch, found.accumulation, found.precision) == (256, 8, "bf16")
    assert set(found.ignored) == {"zero_optimization.overlap_comm", "wall_clock_breakdown"}


def test_auto_is_left_to_the_trainer(tmp_path: Path) -> None:
    text = '{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}'
    found = read_layout(written(tmp_path, "ds.json", text))
    assert (found.layout.micro_batch, found.layout.zero) == (1, 2)


BAD = [
    (
        "run.sh",
        "--tensor-model-parallel-size eight\n--micro-batch-size 0\n--recompute-granularity sometimes\n",
        ["run.sh:1: tensor-model-parallel-size is \"eight\"; a whole number", "run.sh:2:", "run.sh:3:"],
    ),
    (
        "a.toml",
        "[parallelism]\ntensor_parallel_degree = -2\n[activation_checkpoint]\nmode = 'ful'\n",
        ["a.toml:2:", "at least 1", "a.toml:4:", "did you mean full?"],
    ),
    (
        "a.json",
        '{\n"train_batch_size": 100,\n"train_micro_batch_size_per_gpu": 3,\n"gradient_accumulation_steps": 8,\n'
        '"zero_optimization": {"stage": 5}}',
        ["a.json:2:", "micro-batch 3 × accumulation 8", "a.json:5:", "at most 3"],
    ),
    ("a.json", "{", ["the file is cut off here"]),
    ("a.toml", "x = ", ["a.toml:1"]),
    ("notes.txt", "nothing here", ["holds nothing that lays out"]),
    (
        "run.sh",
        "--num-layers 30\n--pipeline-model-parallel-size 4\n--num-layers-per-virtual-pipeline-stage 4",
        ["run.sh:3:", "30 layers do not divide"],
    ),
    ("run.sh", "--num-layers-per-virtual-pipeline-stage 4", ["needs --num-layers"]),
    (
        "run.sh",
        "--recompute-granularity selective\n--recompute-modules moe_acts\n--cp-comm-type spiral\n"
        "--optimizer-cpu-offload --optimizer-offload-fraction 0.5",
        ['run.sh:2: recompute-modules names "moe_acts"', "did you mean moe_act?", "run.sh:3:", "one of p2p, a2a",
         "run.sh:4:"],
    ),
    ("a.json", '{"zero_optimization": {"offload_param": {"device": "gpu"}}}', ["one of none, cpu, nvme"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "said"), BAD)
def test_all_problems_come_at_once_with_their_lines(
    tmp_path: Path, name: str, text: str, said: list[str]
) -> None:
    with pytest.raises(DocumentError) as caught:
        read_layout(written(tmp_path, name, text))
    for words in said:
        assert words in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for name in ("x.sh", "x.toml", "x.json"):
        with pytest.raises(DocumentError, match="cannot be read"):
            read_layout(tmp_path / name)
    (tmp_path / "binary.sh").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DocumentError, match="not UTF-8"):
        read_layout(tmp_path / "binary.sh")
