"""The whole kernel tables of AIConfigurator: three serving stacks on nine systems, read from its wheel.

TABLES is the folder `aiconfigurator_core/systems/data` of the unpacked wheel (`pip download aiconfigurator-core==0.12.0
--no-deps`); reading it needs pyarrow.  Rows are drawn, never kept.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from search import Frame

from datahall.validation.busiest_expert import busiest

VERSIONS = {
    "vllm": ("0.24.0", "0.14.0"),
    "trtllm": ("1.3.0rc20", "1.0.0"),
    "sglang": ("0.5.14", "0.5.10"),
}
EXPERT_FORMATS = {
    "bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8-block", "nvfp4": "fp4", "w4a16_mxfp4": "mxfp4-bf16",
    "w4a8_mxfp4_mxfp8": "mxfp4-fp8", "int4_wo": "int4-bf16",
}  # fmt: skip
GEMM_FORMATS = {
    "bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8-block", "nvfp4": "fp4", "int4_wo": "int4-bf16",
    "int8_wo": "int8-bf16", "sq": "int8",
}  # fmt: skip
MOST_ROWS = 900  # to fit on; always at most a quarter
MOST_CHECKED = 4000


def table(tables: Path, system: str, family: str, stack: str, name: str) -> Frame:
    """One table of one stack, in microseconds; empty where there is none."""
    for version in VERSIONS[stack]:
        path = tables / system / family / stack / version / f"{name}.parquet"
        if path.exists():
            found = pd.read_parquet(path).astype({"kernel_source": object})
            return found.assign(us=found.latency * 1e3)
    return pd.DataFrame()


def drawn(rows: Frame, seed: int = 11) -> tuple[Frame, Frame]:
    """Rows to fit on, at most a quarter, and rows to check on."""
    if rows.empty:
        return rows, rows
    shuffled = rows.sample(frac=1.0, random_state=seed).reset_index(drop=True)
    cut = min(len(rows) // 4, MOST_ROWS)
    return shuffled[:cut].reset_index(drop=True), shuffled[cut : cut + MOST_CHECKED].reset_index(drop=True)


def gemm_rows(tables: Path, system: str, stack: str, form: str) -> Frame:
    """GEMM rows of a format; those of TensorRT-LLM in FP8 without the search for a scale, which checkpoints bring."""
    rows = table(tables, system, "gemm", stack, "gemm_perf")
    if rows.empty:
        return rows
    rows = rows[rows.gemm_dtype.map(GEMM_FORMATS) == form]
    rows = rows[(rows.n >= 256) & (rows.k >= 256) & (rows.n * rows.k >= 2**20) & (rows.m <= 16384)]
    if form == "fp8" and stack == "trtllm" and len(rows):
        scale = table(tables, system, "quantize", stack, "computescale_perf")
        if scale.empty:
            return rows.iloc[:0]
        scale = scale.groupby(["m", "k"]).us.median().rename("scale_us").reset_index()
        rows = rows.merge(scale, on=["m", "k"])
        rows = rows.assign(us=np.maximum(rows.us - rows.scale_us, 0.3 * rows.us))
    return rows.assign(path=form).reset_index(drop=True)


def attention_rows(tables: Path, system: str, stack: str, phase: str, cache: str) -> Frame:
    """Attention rows without a window, in the columns of `Bench.attention_us`."""
    name = "generation_attention_perf" if phase == "decode" else "context_attention_perf"
    rows = table(tables, system, "attention", stack, name)
    if rows.empty:
        return rows
    rows = rows[(rows.kv_cache_dtype == cache) & rows.head_dim.isin([64, 128])]
    if "window_size" in rows:
        rows = rows[rows.window_size.fillna(0) == 0]
    if "attn_dtype" in rows:
        rows = rows[rows.attn_dtype == "bfloat16"]
    decode = phase == "decode"
    rows = rows.assign(
        batch=rows.batch_size,
        heads=rows.num_heads,
        kv_heads=np.where(rows.num_key_value_heads == 0, rows.num_heads, rows.num_key_value_heads),
        q_len=1 if decode else rows.isl,
        kv_len=rows.step + (1 if decode else rows.isl),
    )
    # no model in service has more than 16 heads to a KV head, and shorter prompts say nothing
    return rows[(rows.heads <= 16 * rows.kv_heads) & (rows.kv_len >= 32)].reset_index(drop=True)


def latent_rows(tables: Path, system: str, stack: str, phase: str, cache: str) -> Frame:
    """Latent attention of DeepSeek-V3: 576-wide keys that hold the values, or heads of 192 and 128."""
    name = "generation_mla_perf" if phase == "decode" else "context_mla_perf"
    rows = table(tables, system, "mla", stack, name)
    if rows.empty:
        return rows
    rows = rows[(rows.kv_cache_dtype == cache) & (rows.mla_dtype == "bfloat16")]
    decode = phase == "decode"
    return rows.assign(
        batch=rows.batch_size,
        heads=rows.num_heads,
        kv_heads=1 if decode else rows.num_heads,
        head_dim=576 if decode else 192,
        value_dim=512 if decode else 128,
        q_len=1 if decode else rows.isl,
        kv_len=rows.step + 1 if decode else rows.isl,
    ).reset_index(drop=True)


def expert_rows(tables: Path, system: str, stack: str, form: str) -> Frame:
    """Layers of gated experts as an engine would place them: up to 32 ways by expert, 8 by width.

    Of several kernels for one format the most frequent where one rank holds all experts counts; of TensorRT-LLM's for
    NVFP4 min_latency, the faster one up to thousands of tokens; that an engine picks it was not checked.
    """
    rows = table(tables, system, "moe", stack, "moe_perf")
    if rows.empty:
        return rows
    rows = rows[rows.moe_dtype.map(EXPERT_FORMATS) == form]
    rows = rows[(rows.moe_ep_size <= 32) & (rows.moe_tp_size <= 8) & (rows.num_tokens <= 32768)]
    gated = ~rows.kernel_source.str.contains("nongated|situ") & (rows.topk != 22) & (rows.hidden_size != 2688)
    rows = rows[gated & (rows.distribution != "power_law_1.01")]
    if rows.empty:
        return rows
    picked = rows.kernel_source.str.contains("min_latency")
    whole = rows[rows.moe_ep_size == 1]
    common = (whole if len(whole) else rows).kernel_source.mode()[0]
    rows = rows[picked] if picked.any() else rows[rows.kernel_source == common]
    return routed(rows.reset_index(drop=True))


def routed(rows: Frame) -> Frame:
    """Add what reaches the busiest rank: experts hit and token copies."""
    if rows.empty:
        return rows
    columns = (rows.num_tokens, rows.num_experts, rows.topk, rows.moe_ep_size, rows.distribution)
    found = np.array(
        [busiest(int(t), int(e), int(k), int(ep), how) for t, e, k, ep, how in zip(*columns, strict=True)]
    )
    return rows.assign(hit=found[:, 0], copies=found[:, 1])
