"""How the weights of a model are published where that changes which kernels run."""

from __future__ import annotations

import re

from datahall.catalog.entries.model import Model

# FP8 weights with a scale per 128 × 128 block; those of Llama, Mixtral and NVIDIA's own have one per tensor.  Source:
# quantization_config.weight_block_size in the config.json of DeepSeek-V3, Qwen3-FP8, MiniMax-M2, GLM-4.5-FP8, Kimi-K2.
BLOCK_SCALED = re.compile(r"deepseek|qwen3|minimax|glm|kimi")


def block_scaled(model: Model, weights: str, words: str = "") -> bool:
    """Whether FP8 weights are scaled by blocks: as the words on a run say, or as the checkpoint is published."""
    return weights == "fp8" and ("block" in words or BLOCK_SCALED.search(model.name) is not None)
