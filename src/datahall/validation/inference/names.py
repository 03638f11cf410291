"""From the words of published serving runs to chips, models, number formats and engines of the house."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from datahall.catalog import load
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.inference.engine.engine import Engine, engine
from datahall.validation.collectives.testbed import chip_named
from datahall.validation.measurement import RowError
from datahall.workload.precision import Precision

# first match wins; chips that the collectives' list of words does not tell apart
CHIPS = (
    (r"h100[- ]pcie", "h100-pcie"), (r"h100[- ]nvl", "h100-nvl"), (r"h200[- ]nvl", "h200-nvl"),
    (r"gh200.*144", "gh200-144gb"),
    (r"gh200", "gh200"), (r"rtx ?pro ?6000", "rtx-pro-6000"), (r"rtx ?4090", "rtx-4090"),
    (r"a100[- ]pcie", "a100-pcie-80gb"),
)  # fmt: skip
# first match wins; the catalogue's own names and aliases are tried before
MODELS = (
    (r"deepseek-?(r1|v3)(?!\.2)|deepseek r1", "deepseek-v3"), (r"minimax-m2", "minimax-m2"),
    (r"kimi-k2\.5", "kimi-k2.5"),
    (r"qwen3\.5-397b", "qwen3.5-397b-a17b"), (r"qwen3-235b", "qwen3-235b-a22b"),
    (r"qwen3-coder-480b", "qwen3-coder-480b-a35b"),
    (r"qwen3-(coder-)?30b-a3b", "qwen3-30b-a3b"), (r"qwen3-32b", "qwen3-32b"), (r"qwen3-14b", "qwen3-14b"),
    (r"qwen3-8b", "qwen3-8b"), (r"glm-5(?!\.)", "glm-5"), (r"gpt-oss-120b", "gpt-oss-120b"),
    (r"gpt-oss-20b", "gpt-oss-20b"),
    (r"llama-?\s*4[- ]scout", "llama-4-scout"), (r"llama-?\s*4[- ]maverick", "llama-4-maverick"),
    (r"llama[- v]*3\.[13][- ]405b", "llama-3.1-405b"), (r"llama[- v]*3\.3[- ]70b", "llama-3.3-70b"),
    (r"llama[- v]*3\.1[- ]70b", "llama-3.1-70b"), (r"llama[- v]*3\.1[- ]8b", "llama-3.1-8b"),
    (r"llama[- v]*3[- ]70b", "llama-3-70b"), (r"llama[- v]*3[- ]8b", "llama-3-8b"),
    (r"llama[- v]*2[- ]70b", "llama-2-70b"), (r"llama[- v]*2[- ]7b", "llama-2-7b"),
    (r"llama 70b", "llama-2-70b"), (r"llama 7b", "llama-7b"), (r"mixtral[- ]8x7b", "mixtral-8x7b"),
    (r"mixtral[- ]8x22b", "mixtral-8x22b"), (r"mistral 7b", "mistral-7b"), (r"gpt-?j", "gpt-j-6b"),
    (r"falcon 180b", "falcon-180b"), (r"bloom-176b", "bloom-176b"), (r"gemma-3-27b", "gemma-3-27b"),
    (r"gemma-3-12b", "gemma-3-12b"), (r"nemotron-nano-9b-v2", "nemotron-nano-9b-v2"),
)  # fmt: skip
FIRST_ASYNCHRONOUS = 14  # vLLM 0.14 schedules a step while the one before runs, by default
MODEL_BY_NUMBER_FORMAT = re.compile(r"[-_ ](nvfp4|fp8|fp4|bf16|int4)$", re.IGNORECASE)


@cache
def chip_of(words: str) -> Chip:
    """The chip that a description names; raises `RowError` where it names none of ours.

    >>> chip_of("h100_sxm").name, chip_of("RTX PRO 6000 Blackwell SE").name
    ('h100-sxm', 'rtx-pro-6000')
    """
    text = words.lower().replace("_", " ")
    found = next((name for pattern, name in CHIPS if re.search(pattern, text)), "")
    chip = load().chip(found) if found else chip_named(text)
    if chip is None:
        raise RowError(f'the source does not name the chip, or we do not know it: "{words}"')
    return chip


@cache
def model_of(words: str) -> Model:
    """The model that a description names; raises `RowError` where the catalogue has none.

    >>> model_of("nvidia/DeepSeek-R1-NVFP4").name, model_of("LLaMA v3.1 8B").name
    ('deepseek-v3', 'llama-3.1-8b')
    """
    for name in (words, MODEL_BY_NUMBER_FORMAT.sub("", words)):
        if load().knows("model", name):
            return load().model(name)
    text = words.lower()
    found = next((name for pattern, name in MODELS if re.search(pattern, text)), "")
    if not found:
        raise RowError(f'the model is not in the catalogue: "{words}"')
    return load().model(found)


def engine_of(words: str, *, told_asynchronous: bool = False) -> Engine:
    """The preset of the engine that a description names; older versions of vLLM schedule ahead only when told to."""
    text = words.lower()
    if re.search(r"trt|tensorrt|nim\b", text):
        return engine("trtllm")
    if "sglang" in text:
        return engine("sglang")
    if "splitwise" in text or "vllm 0.4" in text or "vllm 0.5" in text:
        raise RowError("the engine is older than those we have constants for")
    if "vllm" in text:
        version = re.search(r"vllm 0\.(\d+)", text)
        synchronous = version is not None and int(version[1]) < FIRST_ASYNCHRONOUS and not told_asynchronous
        return engine("vllm-0-11" if synchronous else "vllm")
    raise RowError(f'we have no preset for the engine: "{words}"')


RACK = 8  # chips of a box; more of them in one domain are a rack of trays


def engine_on(engine: Engine, chip: Chip) -> Engine:
    """An engine as it runs on a chip: TensorRT-LLM sends tokens to their experts only where trays share memory.

    Elsewhere its attention ranks gather all tokens on every chip and scatter what the experts return.
    """
    if engine.expert_exchange != "all-to-all" or chip.num_scale_up_domain > RACK:
        return engine
    return msgspec.structs.replace(engine, expert_exchange="gather")


FORMATS = {
    "nvfp4": ("nvfp4", "nvfp4"),
    "mxfp4": ("mxfp4", "bf16"),
    "fp8": ("fp8", "fp8"),
    "fp8_block": ("fp8", "fp8"),
    "int4": ("int4", "bf16"),
    "int4_wo": ("int4", "bf16"),
    "bf16": ("bf16", "bf16"),
    "bfloat16": ("bf16", "bf16"),
    "fp16": ("fp16", "fp16"),
    "float16": ("fp16", "fp16"),
    "": ("bf16", "bf16"),
}


def precision_of(linear: str, kv: str, chip: Chip) -> Precision:
    """Number formats from the words for the linear layers and for the cache."""
    folded = linear.lower()
    if folded not in FORMATS:
        raise RowError(f'we do not know the number format "{linear}"')
    weights, activations = FORMATS[folded]
    if weights == "mxfp4" and "fp4" in chip.peak_flop_per_s:
        activations = "mxfp8"  # kernels of Blackwell cast the other operand to 8 bits
    return Precision(weights, activations, kv)
