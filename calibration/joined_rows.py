"""Decodes beside a prompt under FlashAttention-2: the one constant that the chunk alone does not tell.

Fitted on a quarter of LLMServingSim's rows (vLLM 0.19, RTX PRO 6000) that have both; the time of the chunk alone is taken
from the same table.  The launch of an empty block is the same work on every chip of the kernel.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from layer_tables import NAME
from search import errors, quarter

from datahall.catalog import load
from datahall.silicon.calibration import constant_sets
from datahall.silicon.joined_attention import ROWS, joined_decode_times
from datahall.workload.operator import Attention

SETS = ("rtx-pro-6000-vllm", "l40s-vllm")
HEADS, KV_HEADS, HEAD_DIM = 32.0, 8.0, 128.0


def empty_block_s(kernels: Path) -> float:
    """The best of a few values on a quarter of the rows."""
    rows = pd.read_csv(kernels / NAME.format("attention"))
    alone = rows[rows.n_decode == 0].set_index(["prefill_chunk", "kv_prefill"]).time_us
    both = rows[(rows.n_decode >= 16) & (rows.prefill_chunk >= 256)]  # with fewer, empty blocks do not show
    chunk_us = alone.reindex(pd.MultiIndex.from_frame(both[["prefill_chunk", "kv_prefill"]])).to_numpy()
    both = both.assign(chunk_us=chunk_us).dropna().reset_index(drop=True)
    chip, known = load().chip("rtx-pro-6000"), constant_sets()["rtx-pro-6000-vllm"]
    shape = Attention(
        batch=both.n_decode.to_numpy(float), q_len=1.0, kv_len=both.kv_decode.to_numpy(float), num_heads=HEADS,
        num_kv_heads=KV_HEADS, head_dim=HEAD_DIM, value_dim=HEAD_DIM,
    )  # fmt: skip
    l2 = next(level.capacity_bytes for level in chip.levels if level.name == "l2")
    decodes_s = joined_decode_times(
        shape, known.prefill, num_sms=float(chip.num_sms), peak_flop_per_s=chip.peak("bf16"),
        memory_bytes_per_s=chip.memory_bytes_per_s * known.decode.memory_efficiency, l2_bytes=l2, kv_bytes=2.0,
        sharpness=known.decode.sharpness,
    )  # fmt: skip
    blocks = both.n_decode * HEADS * both.prefill_chunk / ROWS / chip.num_sms
    held = quarter(both, 7)

    def predicted_us(value_s: float) -> np.ndarray:
        return np.asarray(both.chunk_us + 1e6 * (decodes_s + value_s * blocks))

    def loss(value_s: float) -> float:
        return float(np.abs(np.log(predicted_us(value_s) / both.time_us))[held].mean())

    best = min(np.arange(1, 9) * 5e-8, key=loss)
    errors("decodes beside a chunk", predicted_us(best)[~held], both.time_us.to_numpy()[~held])
    return float(f"{best:.2g}")
