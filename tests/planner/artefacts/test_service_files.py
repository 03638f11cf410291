"""Files of a service: they run as they stand, and their numbers are those of the plan."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.planner.artefacts.conftest import COMMENT, DENSE, SERVE, SMALL, asked, called, command_of, flags

from datahall.errors import DatahallError

DEEPSEEK = {"model": "deepseek-v3", "users": "500", "precision": "fp8"}
TUNED = {
    **SMALL, "draft": "ngram", "num_draft": "4", "adapters": "20", "adapter_rank": "24", "resident_adapters": "8",
    "max_context": "16000", "token_budget": "4096", "max_sequences": "64", "prefix_caching": "false", "graphs": "false",
    "memory_fraction": "0.85",
}  # fmt: skip
SGLANG = {"engine": "sglang"}


@pytest.mark.parametrize(
    "given", [DENSE, SMALL, DEEPSEEK | {"chips": "h200"}], ids=["dense", "small", "experts"]
)
def test_degrees_and_formats_are_those_of_the_plan(
    given: dict[str, str], syntax: Callable[[str], None]
) -> None:
    made = asked(SERVE, given)
    found, results = made.answer.results, command_of(made.file("vllm.sh"))
    assert results["--tensor-parallel-size"] == str(found["tp"])
    assert results["--pipeline-parallel-size"] == str(found["pp"])
    assert results["--data-parallel-size"] == str(found["dp"])
    assert ("--enable-expert-parallel" in results) == (found["ep"] != 1)
    assert results["--dtype"] == "bfloat16"
    assert f"REPLICAS={found['num_replicas']}\n" in made.file("vllm.sh")
    syntax(made.file("vllm.sh"))


def test_sglang_counts_the_chips_of_a_replica() -> None:
    made = asked(SERVE, DEEPSEEK | SGLANG | {"chips": "h200"})
    found, words = made.answer.results, command_of(made.file("sglang.sh"))
    assert words["--tp-size"] == str(found["tp"] * found["dp"])  # type: ignore[operator]
    assert words["--attn-dp-size"] == str(found["dp"])
    assert words["--ep-size"] == str(found["ep"])
    assert words["--pp-size"] == str(found["pp"])


def test_what_somebody_says_of_the_engine_is_told_it() -> None:
    words = command_of(asked(SERVE, TUNED).file("vllm.sh"))
    assert words["--max-num-batched-tokens"] == "4096"
    assert words["--max-num-seqs"] == "64"
    assert words["--max-model-len"] == "16000"
    assert words["--gpu-memory-utilization"] == "0.85"
    assert "--no-enable-prefix-caching" in words
    assert "--enable-chunked-prefill" in words
    assert "--enforce-eager" in words
    assert json.loads(words["--speculative-config"]) == {"method": "ngram", "num_speculative_tokens": 4}
    assert words["--max-loras"] == "8"
    assert words["--max-cpu-loras"] == "20"
    assert words["--max-lora-rank"] == "32"  # of the ranks that the parser takes, the least that holds 24
    assert words["--lora-modules"] == "$ADAPTERS"


def test_the_same_in_the_words_of_sglang() -> None:
    words = command_of(asked(SERVE, TUNED | SGLANG).file("sglang.sh"))
    assert words["--chunked-prefill-size"] == "4096"
    assert words["--max-running-requests"] == "64"
    assert words["--context-length"] == "16000"
    assert words["--mem-fraction-static"] == "0.85"
    assert "--disable-radix-cache" in words
    assert words.keys() >= {"--disable-decode-cuda-graph", "--disable-prefill-cuda-graph"}
    assert words["--speculative-algorithm"] == "NGRAM"
    assert words["--speculative-num-draft-tokens"] == "4"
    assert words["--max-lora-rank"] == "24"


def test_the_nodes_start_as_many_replicas_as_the_plan_has(tmp_path: Path) -> None:
    """7 nodes of 8 chips hold 13 replicas of 4: two on each, one on the last."""
    made = asked(SERVE, DENSE)
    text, found = made.file("vllm.sh"), made.answer.results
    assert "exec" not in text
    num_nodes = int(re.search(r"^NODES=(\d+)", text, re.M)[1])  # type: ignore[index]
    assert num_nodes == -(-int(found["num_chips"]) // 8)  # type: ignore[arg-type]
    started = [
        row for rank in range(num_nodes) for row in called(text, tmp_path, ("vllm",), NODE_RANK=str(rank))
    ]
    assert len(started) == found["num_replicas"]
    one = flags(started[0][1:])
    assert started[0][1:3] == ["serve", "meta-llama/Llama-3.1-70B"]
    devices, ports = zip(
        *((flags(row)["--device-ids"], flags(row)["--port"]) for row in called(text, tmp_path, ("vllm",))),
        strict=True,
    )
    assert sorted(devices) == ["0,1,2,3", "4,5,6,7"]
    assert sorted(ports) == ["8000", "8001"]
    assert len(one["--device-ids"].split(",")) == found["tp"]


def test_more_nodes_than_the_plan_has_start_nothing_more(tmp_path: Path) -> None:
    """A node past the last has no replica to start."""
    text = asked(SERVE, DENSE).file("vllm.sh")
    assert called(text, tmp_path, ("vllm",), NODE_RANK="7") == []


def test_a_replica_over_two_nodes_is_started_on_both(tmp_path: Path) -> None:
    made = asked(SERVE, DEEPSEEK | {"chips": "h100-sxm"})
    text, found = made.file("vllm.sh"), made.answer.results
    assert (found["tp"], found["pp"]) == (8, 2)
    assert f"NODES={found['num_replicas'] * 2}\n" in text  # type: ignore[operator]
    (first,) = called(text, tmp_path, ("vllm",), NODE_RANK="4", MASTER_ADDR="node4")
    (second,) = called(text, tmp_path, ("vllm",), NODE_RANK="5", MASTER_ADDR="node4")
    assert flags(first)["--node-rank"] == "0"
    assert "--headless" not in flags(first)
    assert flags(second)["--node-rank"] == "1"
    assert "--headless" in flags(second)
    assert flags(second)["--master-addr"] == "node4"
    assert flags(second)["--nnodes"] == "2"


def test_weights_that_the_plan_is_not_for_must_be_named(tmp_path: Path) -> None:
    """Nobody's id on the hub stands for 4-bit weights; FP8 is made by the engine of those that are there."""
    narrow = asked(SERVE, SMALL | {"precision": "w4a16"}).file("vllm.sh")
    assert 'MODEL=${MODEL:?"' in narrow
    with pytest.raises(AssertionError, match="MODEL: hub id"):
        called(narrow, tmp_path, ("vllm",))
    assert flags(called(narrow, tmp_path, ("vllm",), MODEL="mine/w4")[0])["--dtype"] == "bfloat16"
    made = asked(SERVE, SMALL | {"precision": "fp8-kv8"}).file("vllm.sh")
    assert "MODEL=${MODEL:-meta-llama/Llama-3.1-8B}" in made
    words = command_of(made)
    assert (words["--quantization"], words["--kv-cache-dtype"]) == ("fp8", "fp8")
    published = command_of(asked(SERVE, DEEPSEEK | {"chips": "h200"}).file("vllm.sh"))
    assert "--quantization" not in published  # the checkpoint says it


def test_a_cache_too_small_for_the_model_s_context_shortens_it() -> None:
    made = asked(
        SERVE, {"model": "llama-3.1-70b", "rate": "2", "chips": "h100-sxm", "precision": "w4a16", "tp": "1"}
    )
    text = made.file("vllm.sh")
    assert 0 < int(command_of(text)["--max-model-len"]) < 131_072
    assert "no sequence may have the 131,072" in " ".join(text.split("\n# "))


@pytest.mark.parametrize("name", ["vllm.sh", "kubernetes.yaml", "ray-serve.yaml"])
def test_a_file_says_which_question_and_version_made_it(name: str) -> None:
    text = asked(SERVE, SMALL).file(name)
    (line,) = COMMENT.findall(text)
    assert line == "datahall plan serve llama-3.1-8b --rate 5 --chips h100-sxm --precision bf16"
    assert "options as in" in text


def test_a_manifest_has_the_pods_and_chips_of_the_plan() -> None:
    made = asked(SERVE, DENSE)
    text, found = made.file("kubernetes.yaml"), made.answer.results
    assert f"  replicas: {found['num_replicas']}\n" in text
    assert f"nvidia.com/gpu: {found['tp']}\n" in text
    assert 'image: "vllm/vllm-openai:v0.33.0"' in text
    words = re.findall(r'^ {12}- "?(.*?)"?$', text.split("args:")[1].split("ports:")[0], re.M)
    assert flags(words)["--tensor-parallel-size"] == str(found["tp"])
    assert flags(words) == {
        name: value
        for name, value in command_of(made.file("vllm.sh")).items() if name not in ("--device-ids", "--port")
    } | {"--port": "8000"}  # fmt: skip


def test_an_application_has_the_options_of_the_launch_command() -> None:
    made = asked(SERVE, DENSE)
    text = made.file("ray-serve.yaml")
    assert f"num_replicas: {made.answer.results['num_replicas']}\n" in text
    assert "accelerator_type: H100\n" in text
    inner = dict(re.findall(r"^ {12}(\w+): (.*)$", text.split("engine_kwargs:")[1], re.M))
    launched = command_of(made.file("vllm.sh"))
    assert inner["tensor_parallel_size"] == launched["--tensor-parallel-size"]
    assert inner["max_num_seqs"] == launched["--max-num-seqs"]
    assert inner["enable_prefix_caching"] == "true"


TRTLLM = {"engine": "trtllm"}


def keys_of(text: str) -> dict[str, str]:
    """The keys of a file of two levels, joined by dots, without the comments."""
    found, table = {}, ""
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, _, value = line.strip().partition(":")
        table = table if line.startswith("  ") else ""
        if not value:
            table = f"{name}."
        else:
            found[f"{table}{name}"] = value.strip()
    return found


def test_tensorrt_llm_is_told_the_degrees_of_the_plan() -> None:
    made = asked(SERVE, DENSE | TRTLLM)
    found, told = made.answer.results, keys_of(made.file("trtllm.yaml"))
    assert told["tensor_parallel_size"] == str(found["tp"])
    assert told["pipeline_parallel_size"] == str(found["pp"])
    assert told["dtype"] == "bfloat16"
    assert "moe_expert_parallel_size" not in told
    assert told["scheduler_config.capacity_scheduler_policy"] == "GUARANTEED_NO_EVICT"
    assert told["cuda_graph_config.max_batch_size"] == told["max_batch_size"]
    assert "trtllm-serve meta-llama/Llama-3.1-70B" in made.file("trtllm.yaml").replace("\n# ", " ")


def test_experts_of_tensorrt_llm_share_the_chips_of_all_ranks() -> None:
    made = asked(SERVE, DEEPSEEK | TRTLLM | {"chips": "h200"})
    found, told = made.answer.results, keys_of(made.file("trtllm.yaml"))
    tp, dp, ep = (int(str(found[name])) for name in ("tp", "dp", "ep"))
    assert told["tensor_parallel_size"] == str(tp * dp)
    assert (told.get("enable_attention_dp") == "true") == (dp > 1)
    assert int(told["moe_expert_parallel_size"]) * int(told["moe_tensor_parallel_size"]) == tp * dp
    assert told["moe_expert_parallel_size"] == str(ep)


def test_what_somebody_says_is_told_tensorrt_llm_too() -> None:
    tuned = {name: value for name, value in TUNED.items() if "adapter" not in name}
    text = asked(SERVE, tuned | TRTLLM | {"whole_output_blocks": "false", "chunked_prefill": "true"}).file(
        "trtllm.yaml"
    )
    told = keys_of(text)
    assert told["max_seq_len"] == "16000"
    assert told["max_num_tokens"] == "4096"
    assert told["max_batch_size"] == "64"
    assert told["enable_chunked_prefill"] == "true"
    assert told["cuda_graph_config"] == "null"
    assert told["kv_cache_config.enable_block_reuse"] == "false"
    assert told["kv_cache_config.free_gpu_memory_fraction"] == "0.85"
    assert told["scheduler_config.capacity_scheduler_policy"] == "MAX_UTILIZATION"
    assert (told["speculative_config.decoding_type"], told["speculative_config.max_draft_len"]) == (
        "NGram",
        "4",
    )
    assert "are refused" not in text


def test_tensorrt_llm_refuses_prompts_longer_than_a_step_where_none_is_cut() -> None:
    assert "more than 8,192 tokens are refused" in asked(SERVE, SMALL | TRTLLM).file("trtllm.yaml")


def test_layers_that_draft_and_models_that_do() -> None:
    own = keys_of(asked(SERVE, DEEPSEEK | TRTLLM | {"chips": "h200", "draft": "mtp"}).file("trtllm.yaml"))
    assert own["speculative_config.decoding_type"] == "MTP"
    assert own["speculative_config.num_nextn_predict_layers"] == "3"
    other = keys_of(asked(SERVE, DENSE | TRTLLM | {"draft": "llama-3.2-1b"}).file("trtllm.yaml"))
    assert other["speculative_config.decoding_type"] == "DraftTarget"
    assert other["speculative_config.speculative_model"] == "meta-llama/Llama-3.2-1B"


def test_weights_that_tensorrt_llm_would_have_to_narrow_must_be_named() -> None:
    assert "MODEL: hub id" in asked(SERVE, SMALL | TRTLLM | {"precision": "fp8"}).file("trtllm.yaml")


def test_the_file_of_the_engine_that_was_asked_for_is_offered() -> None:
    for given, name in (({}, "vllm.sh"), (SGLANG, "sglang.sh"), (TRTLLM, "trtllm.yaml")):
        offered = [line for line in asked(SERVE, SMALL | given).answer.next_commands if " -o " in line]
        assert [line.rpartition(" ")[2] for line in offered] == [name]


@pytest.mark.parametrize(
    ("given", "name", "said"),
    [
        ({}, "sglang.sh", "the plan is of vLLM"),
        (SGLANG, "vllm.sh", "the plan is of SGLang"),
        ({"engine": "trtllm"}, "kubernetes.yaml", "TensorRT-LLM"),
        ({}, "trtllm.yaml", "the plan is of vLLM"),
        ({"engine": "trtllm", "mixed_steps": "false"}, "trtllm.yaml", "mixed_steps=False"),
        ({"engine": "trtllm", "adapters": "2"}, "trtllm.yaml", "adapters"),
        ({"engine": "trtllm", "chips": "mi300x"}, "trtllm.yaml", "chips of AMD"),
        ({"engine": "vllm-0-11"}, "vllm.sh", "which vLLM 0.33.0 is not"),
        ({"mixed_steps": "false"}, "vllm.sh", "mixed_steps=False"),
        ({"preemption": "swap"}, "vllm.sh", 'preemption="swap"'),
        ({"chunked_prefill": "false"}, "vllm.sh", "whole prompts"),
        ({"whole_output_blocks": "true"} | SGLANG, "sglang.sh", "whole_output_blocks=True"),
        ({"precision": "fp32", "adapters": "2", "adapter_rank": "600"}, "vllm.sh", "adapters of rank 600"),
        ({"adapters": "2"}, "kubernetes.yaml", "adapters"),
        ({"chips": "tpu-v5e"}, "kubernetes.yaml", "chips of Google"),
    ],
)  # fmt: skip
def test_what_a_tool_cannot_be_told_is_refused_by_name(given: dict[str, str], name: str, said: str) -> None:
    made = asked(SERVE, SMALL | given)
    assert made.answer.verdict == "yes"
    with pytest.raises(DatahallError) as error:
        made.file(name)
    assert said in str(error.value)
    assert error.value.exit_code == 2


def test_a_replica_over_two_nodes_is_no_pod() -> None:
    with pytest.raises(DatahallError, match="16 chips on nodes of 8"):
        asked(SERVE, DEEPSEEK | {"chips": "h100-sxm"}).file("kubernetes.yaml")


def test_a_spare_replica_starts_too() -> None:
    made = asked(SERVE, {**SMALL, "tp": "1", "spare": "1"})
    replicas = made.answer.results["num_chips"]
    assert f"REPLICAS={replicas}\n" in made.file("vllm.sh")
    assert f"num_replicas: {replicas}\n" in made.file("ray-serve.yaml")
    assert f"replicas: {replicas}\n" in made.file("kubernetes.yaml")


@pytest.mark.parametrize(
    ("chip", "said"), [("h100-sxm", False), ("mi300x", False), ("tpu-v6e", True), ("gaudi3", True)]
)
def test_chips_that_need_a_package_of_their_own_say_so(chip: str, said: bool) -> None:
    made = asked(SERVE, {"model": "llama-3.1-8b", "rate": "5", "chips": chip, "buy": "rent,own"})
    assert ("a package beside the engine's own" in made.file("vllm.sh")) is said
