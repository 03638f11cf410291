"""Layouts from Megatron-LM arguments, torchtitan TOML and DeepSpeed JSON."""

from pathlib import Path

import msgspec
import pytest

from datahall.catalog import Catalog
from datahall.errors import DocumentError, ScenarioError
from datahall.training.layout.asked import INPUTS
from datahall.training.layout.file import LayoutFile, read_layout
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
    assert (layout.etp, layout.context_exchange, layout.offload) == (1, "all-to-all", ("optimizer",))
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
    ("a.toml", "[parallelism]\ndata_parallel_shard_degree = -2\n", ["a.toml:2:", "at least -1"]),
    ("a.toml", "[training]\nglobal_batch_size = -2\n", ["a.toml:2:", "at least -1"]),
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


def megatron(folder: Path, text: str) -> Layout:
    return read_layout(written(folder, "one.sh", f"--seq-length 512 {text}")).layout


BARE = Layout(zero=0, sequence_parallel=False)


def unattributed(file: LayoutFile) -> LayoutFile:
    """The file without which of its inputs it says."""
    return msgspec.structs.replace(file, states=frozenset())


ARGUMENTS = pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        ("--tensor-model-parallel-size 2", {"tp": 2}),
        ("--pipeline-model-parallel-size 3", {"pp": 3}),
        ("--context-parallel-size 4", {"cp": 4}),
        ("--expert-model-parallel-size 4", {"ep": 4, "etp": 1}),
        ("--num-experts 8 --tensor-model-parallel-size 2", {"tp": 2, "etp": 2}),
        ("--micro-batch-size 5", {"micro_batch": 5}),
        ("--sequence-parallel", {"sequence_parallel": True}),
        ("--use-distributed-optimizer", {"zero": 1}),
        ("--use-megatron-fsdp", {"zero": 3}),
        ("--use-torch-fsdp2", {"zero": 3}),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", {"zero": 2}),
        ("--use-distributed-optimizer --data-parallel-sharding-strategy no_shard", {"zero": 0}),
        ("--recompute-activations", {"recompute": "selective"}),
        ("--recompute-granularity full", {"recompute": "full"}),
        ("--recompute-activations --recompute-granularity full", {"recompute": "full"}),
        ("--recompute-granularity selective --recompute-modules core_attn",
         {"recompute": "selective", "modules": ("core_attn",)}),
        ("--recompute-granularity full --recompute-modules core_attn", {"recompute": "full"}),
        ("--cp-comm-type a2a", {"context_exchange": "all-to-all"}),
        ("--cp-comm-type p2p", {"context_exchange": "ring"}),
        ("--optimizer-cpu-offload", {"offload": ("optimizer",)}),
        ("--optimizer-offload-fraction 1.0", {}),
        ("--num-virtual-stages-per-pipeline-rank 3 --num-layers 40", {"vpp": 3}),
        ("--num-layers 48 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3",
         {"pp": 4, "vpp": 4}),
        ("--num-layers 48", {}),
    ],
)  # fmt: skip


@ARGUMENTS
def test_each_argument_of_megatron_is_stated(tmp_path: Path, text: str, fields: dict[str, object]) -> None:
    """What a word says is said, be it what is usual; how experts are cut follows where no word says it."""
    path = written(tmp_path, "one.sh", f"--seq-length 512 {text}")
    changed = {name for name in fields if name in INPUTS}
    assert changed - read_layout(path).states <= ({"etp"} if "expert-tensor" not in text else set())


@ARGUMENTS
def test_each_argument_of_megatron_alone(tmp_path: Path, text: str, fields: dict[str, object]) -> None:
    assert megatron(tmp_path, text) == msgspec.structs.replace(BARE, **fields)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        ("--global-batch-size 7", {"global_batch": 7}),
        ("--bf16", {"precision": "bf16"}),
        ("--bf16 --fp8-format hybrid", {"precision": "fp8"}),
        ("--num-distributed-optimizer-instances 3", {"num_copies": 3}),
        ("--num-layers-in-first-pipeline-stage 3", {"first_layers": 3}),
        ("--decoder-last-pipeline-num-layers 2", {"last_layers": 2}),
        ("--account-for-embedding-in-pipeline-split", {"counts_embedding": True}),
        ("--account-for-loss-in-pipeline-split", {"counts_loss": True}),
    ],
)
def test_what_goes_with_a_megatron_layout(tmp_path: Path, text: str, fields: dict[str, object]) -> None:
    path = written(tmp_path, "one.sh", f"--seq-length 512 {text}")
    plain = LayoutFile(path=str(path), kind="megatron", layout=BARE, seq=512)
    assert unattributed(read_layout(path)) == msgspec.structs.replace(plain, **fields)


def test_data_parallelism_takes_the_chips_left() -> None:
    found = LayoutFile(path="", kind="megatron", layout=Layout(tp=2, pp=3, cp=2))
    assert found.on(48).dp == 4
    assert found.on(50).dp == 4
    assert found.on(5).dp == 1
    stated = msgspec.structs.replace(found, layout=Layout(tp=2, dp=7), states_dp=True)
    assert stated.on(48).dp == 7


def test_a_layout_is_finished_once() -> None:
    model = SHELF.model("llama-3.1-70b")
    plain = LayoutFile(path="", kind="megatron", layout=Layout())
    on_chips = Layout(pp=4, dp=8)
    assert plain.finished(on_chips, model) == on_chips
    copies = msgspec.structs.replace(plain, num_copies=4)
    assert copies.finished(on_chips, model).shard == 2
    assert copies.finished(Layout(dp=2), model).shard == 1
    assert msgspec.structs.replace(plain, num_copies=2).finished(on_chips, model).shard == 4
    assert copies.finished(Layout(dp=8, shard=4), model).shard == 4
    for fields, split in (
        ({"first_layers": 17}, (17, 21, 21, 21)),
        ({"last_layers": 17}, (21, 21, 21, 17)),
        ({"counts_embedding": True, "counts_loss": True}, None),
    ):
        file = msgspec.structs.replace(plain, **fields)
        if split is None:
            with pytest.raises(ScenarioError, match="do not divide"):
                file.finished(on_chips, model)
        else:
            assert file.finished(on_chips, model).split == split
            assert file.finished(Layout(pp=4, dp=8, split=(20,) * 4), model).split == (20,) * 4


@pytest.mark.parametrize(
    ("text", "fields", "goes_with"),
    [
        ("", {}, {}),
        ("tensor_parallel_degree = 2", {"tp": 2}, {}),
        ("context_parallel_degree = 2", {"cp": 2}, {}),
        ("expert_parallel_degree = 2", {"ep": 2}, {}),
        ("expert_tensor_parallel_degree = 2", {"etp": 2}, {}),
        ("data_parallel_shard_degree = 4", {"dp": 4}, {"states_dp": True}),
        ("data_parallel_shard_degree = 1", {"zero": 0}, {"states_dp": True}),
        ("data_parallel_shard_degree = 4\ndata_parallel_replicate_degree = 3", {"dp": 12},
         {"states_dp": True, "num_copies": 3}),
        ("data_parallel_shard_degree = -1\ndata_parallel_replicate_degree = 3", {"dp": 3}, {"num_copies": 3}),
        ("pipeline_parallel_degree = 2", {"pp": 2, "zero": 2}, {"accumulation": 1}),
        ("pipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 2\n[training]\nlocal_batch_size = 8",
         {"pp": 2, "zero": 2, "micro_batch": 2}, {"accumulation": 4}),
        ("pipeline_parallel_degree = 2\nfsdp_reshard_after_forward = 'always'", {"pp": 2}, {"accumulation": 1}),
        ("fsdp_reshard_after_forward = 'never'", {"zero": 2}, {}),
        ("pipeline_parallel_schedule = 'Interleaved1F1B'", {"vpp": 2}, {}),
        ("[training]\nlocal_batch_size = 3", {"micro_batch": 3}, {}),
        ("[training]\nbatch_size = 3", {"micro_batch": 3}, {}),
        ("[training]\nglobal_batch_size = 30", {}, {"global_batch": 30}),
        ("[training]\nglobal_batch_size = -1", {}, {"global_batch": 0}),
        ("[training]\nenable_cpu_offload = true", {"offload": ("optimizer", "parameters")}, {}),
        ("[activation_checkpoint]\nmode = 'none'", {"recompute": "none"}, {}),
        ("[activation_checkpoint]\nmode = 'memory_budget'", {}, {}),
        ("[model]\nconverters = ['mx']", {}, {"precision": "mxfp8"}),
        ("[model]\nconverters = ['float8']", {}, {"precision": "fp8"}),
    ],
)  # fmt: skip
def test_each_field_of_torchtitan_alone(
    tmp_path: Path, text: str, fields: dict[str, object], goes_with: dict[str, object]
) -> None:
    path = written(
        tmp_path, "one.toml", f"[extra]\nx = 1\n[parallelism]\npipeline_parallel_split_points = []\n{text}\n"
    )
    if not text:
        path = written(tmp_path, "one.toml", "[training]\nseq_len = 512\n")
    plain = LayoutFile(
        path=str(path), kind="torchtitan", layout=Layout(zero=3, recompute="selective"), precision="bf16",
        seq=0 if text else 512,
    )  # fmt: skip
    found = msgspec.structs.replace(unattributed(read_layout(path)), ignored=())
    assert (set(fields) & set(INPUTS)) <= read_layout(path).states | {"dp", "zero"}
    layout = msgspec.structs.replace(plain.layout, **fields)
    assert found == msgspec.structs.replace(plain, layout=layout, **goes_with)


@pytest.mark.parametrize(
    ("text", "fields", "goes_with"),
    [
        ('"zero_optimization": {"stage": 0}', {}, {}),
        ('"zero_optimization": {"stage": 2}', {"zero": 2}, {}),
        ('"tensor_parallel": {"autotp_size": 2}', {"tp": 2}, {}),
        ('"pipeline": {"stages": 2}', {"pp": 2}, {}),
        ('"sequence_parallel_size": 2', {"cp": 2, "context_exchange": "all-to-all"}, {}),
        ('"sequence_parallel_size": 1', {}, {}),
        ('"train_micro_batch_size_per_gpu": 3', {"micro_batch": 3}, {}),
        ('"gradient_accumulation_steps": 3', {}, {"accumulation": 3}),
        ('"train_batch_size": 12', {}, {"global_batch": 12}),
        ('"train_batch_size": 12, "train_micro_batch_size_per_gpu": 3', {"micro_batch": 3}, {"global_batch": 12}),
        ('"train_batch_size": 12, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 2',
         {"micro_batch": 3, "dp": 2}, {"global_batch": 12, "accumulation": 2, "states_dp": True}),
        ('"train_batch_size": 6, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 2',
         {"micro_batch": 3}, {"global_batch": 6, "accumulation": 2}),
        ('"activation_checkpointing": {"partition_activations": true}', {"recompute": "full"}, {}),
        ('"zero_optimization": {"mics_shard_size": 4}', {"shard": 4}, {}),
        ('"zero_optimization": {"mics_shard_size": -1}', {}, {}),
        ('"zero_optimization": {"cpu_offload": true}', {"offload": ("optimizer",)}, {}),
        ('"zero_optimization": {"cpu_offload_params": true}', {"offload": ("parameters",)}, {}),
        ('"zero_optimization": {"cpu_offload": true, "offload_optimizer": {"device": "nvme"}}',
         {"offload": ("optimizer:nvme",)}, {}),
        ('"zero_optimization": {"offload_optimizer": {"device": "none"}}', {}, {}),
        ('"bf16": {"enabled": true}', {}, {"precision": "bf16"}),
        ('"fp16": {"enabled": true}', {}, {"precision": "fp16"}),
        ('"fp16": {"enabled": false}', {}, {}),
        ('"optimizer": {"type": "ZeroOneAdam"}', {"compression": "1-bit"}, {}),
        ('"optimizer": {"type": "Adam"}', {}, {}),
        ('"communication_data_type": "fp32"', {}, {}),
        ('"communication_data_type": "bf16"', {"compression": "bf16"}, {}),
    ],
)  # fmt: skip
def test_each_field_of_deepspeed_alone(
    tmp_path: Path, text: str, fields: dict[str, object], goes_with: dict[str, object]
) -> None:
    path = written(tmp_path, "one.json", "{" + text + "}")
    plain = LayoutFile(path=str(path), kind="deepspeed", layout=BARE, precision="fp32")
    found = unattributed(read_layout(path))
    assert (set(fields) & set(INPUTS)) <= read_layout(path).states | {"context_exchange"}
    layout = msgspec.structs.replace(BARE, **fields)
    assert found == msgspec.structs.replace(plain, layout=layout, **goes_with)


def test_an_option_of_one_letter_is_said_to_be_ignored_and_two_dashes_alone_are_none(tmp_path: Path) -> None:
    found = read_layout(
        written(tmp_path, "run.sh", "python train.py -- --tensor-model-parallel-size 8 --v 3\n")
    )
    assert found.ignored == ("v",)
    assert found.layout.tp == 8
