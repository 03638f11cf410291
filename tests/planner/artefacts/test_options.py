"""Options are looked up in the facts of a release; a wrong one is our error and is never written."""

from __future__ import annotations

import pytest

from datahall.answers.verbs.serving import OF_SERVICE
from datahall.answers.verbs.training import OF_RUN
from datahall.catalog.entries.tool import tool
from datahall.planner.artefacts.options import Shell, UnknownOption, Value, tables_of, words_of

TOOLS = (
    "vllm",
    "sglang",
    "trtllm",
    "megatron",
    "torchtitan",
    "deepspeed",
    "torchrun",
    "slurm",
    "ray",
    "kubernetes",
)


@pytest.mark.parametrize("name", TOOLS)
def test_facts_of_a_tool_say_its_release_and_where_they_are_from(name: str) -> None:
    known = tool(name)
    assert known.release in known.source.title
    assert known.source.date.startswith("2026-")
    assert len(known.options) > 30


@pytest.mark.parametrize(
    ("name", "flag", "kind", "words"),
    [  # as the makers document them
        ("vllm", "--tensor-parallel-size", "int", ()),
        ("vllm", "--gpu-memory-utilization", "float", ()),
        ("vllm", "--enable-prefix-caching", "switch", ()),
        ("vllm", "--dtype", "text", ("auto", "half", "float16", "bfloat16", "float", "float32")),
        ("sglang", "--mem-fraction-static", "float", ()),
        ("sglang", "--disable-radix-cache", "flag", ()),
        ("trtllm", "tensor_parallel_size", "int", ()),
        ("trtllm", "kv_cache_config.free_gpu_memory_fraction", "float", ()),
        (
            "trtllm",
            "speculative_config.decoding_type",
            "text",
            ("MTP", "Medusa", "Eagle", "Lookahead", "NGram"),
        ),
        (
            "trtllm",
            "scheduler_config.capacity_scheduler_policy",
            "text",
            ("MAX_UTILIZATION", "GUARANTEED_NO_EVICT"),
        ),
        ("trtllm", "--config", "text", ()),
        ("megatron", "--tensor-model-parallel-size", "int", ()),
        ("megatron", "--recompute-granularity", "text", ("full", "selective")),
        ("megatron", "--data-path", "list", ()),
        ("torchtitan", "activation_checkpoint.mode", "text", ("selective", "full", "memory_budget", "none")),
        ("deepspeed", "zero_optimization.stage", "int", (0, 1, 2, 3)),
        ("slurm", "--nodes", "text", ()),
        ("slurm", "--contiguous", "flag", ()),
        ("torchrun", "--nproc-per-node", "text", ()),
        ("ray", "applications.import_path", "text", ()),
        ("kubernetes", "Container.image", "text", ()),
    ],
)
def test_options_are_as_their_makers_document_them(
    name: str, flag: str, kind: str, words: tuple[object, ...]
) -> None:
    found = tool(name).options[flag]
    assert found.type == kind
    assert found.words[: len(words)] == words


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--tensor-paralel-size", 4),  # misspelled
        ("--tensor-parallel-size", "4"),
        ("--tensor-parallel-size", 4.0),
        ("--tensor-parallel-size", True),
        ("--dtype", "bf16"),  # no word of its own
        ("--quantization", "fp7"),
        ("--enable-lora", "yes"),
        ("--speculative-config", "ngram"),
        ("--max-lora-rank", 24),
    ],
)
def test_a_wrong_option_is_an_error_of_ours(flag: str, value: Value) -> None:
    with pytest.raises(UnknownOption, match=r"vLLM 0\.33\.0"):
        words_of(tool("vllm"), {flag: value})


def test_words_are_quoted_for_a_shell_and_variables_are_not() -> None:
    said: dict[str, Value | None] = {
        "--served-model-name": ["two words"],
        "--port": Shell('"$PORT"'),
        "--speculative-config": {"method": "ngram"},
        "--enable-chunked-prefill": False,
        "--enable-lora": True,
        "--max-model-len": None,
    }
    assert words_of(tool("vllm"), said) == [
        "--served-model-name 'two words'",
        '--port "$PORT"',
        '--speculative-config \'{"method": "ngram"}\'',
        "--no-enable-chunked-prefill",
        "--enable-lora",
    ]


def test_keys_become_tables_and_unknown_ones_none() -> None:
    known = tool("torchtitan")
    assert tables_of(known, {"model.name": "llama3", "training.steps": 5, "training.dataset": None}) == {
        "model": {"name": "llama3"},
        "training": {"steps": 5},
    }
    with pytest.raises(UnknownOption, match=r"training\.step"):
        tables_of(known, {"training.step": 5})


def test_a_file_goes_by_one_name() -> None:
    names = [*OF_SERVICE, *OF_RUN]
    assert len({name.partition(".")[0] for name in names}) == len(names)
