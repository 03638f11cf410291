"""RTX PRO 6000 under vLLM 0.19: times of the layers of Llama-3.1-8B, from LLMServingSim's profiler.

Unlike a micro-benchmark, a layer finds nothing of its own in the 128 MB L2: these rows give the rates that serving sees.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from bench import DECODE0, PREFILL0, Bench
from search import Frame, errors, fit, quarter

from datahall.workload.operator import Stream

NAME = "llmservingsim_rtxpro6000_llama31-8b_{}.csv"
PRODUCTS = {"qkv_proj": (6144, 4096), "o_proj": (4096, 4096), "gate_up_proj": (28672, 4096), "down_proj": (4096, 14336),
            "lm_head": (128256, 4096)}  # fmt: skip
STREAMS = {  # bytes per token, and how they are touched
    "act_fn": (14336 * 6.0, Stream()),
    "layernorm": (4096 * 8.0, Stream(1.0, "rows", 4096.0)),
    "final_layernorm": (4096 * 8.0, Stream(1.0, "rows", 4096.0)),
    "rotary_emb": (5120 * 4.0, Stream()),
}
STREAM_LEVELS = [
    "kernel_s",
    "memory_efficiency",
    "row_efficiency",
    "row_element_s",
    "l2_bytes_per_s",
    "l2_keep_bytes",
]


def layer_rows(kernels: Path) -> Frame:
    dense = pd.read_csv(kernels / NAME.format("dense"))
    last = pd.read_csv(kernels / NAME.format("per_sequence")).rename(columns={"sequences": "tokens"})
    return pd.concat([dense, last], ignore_index=True).rename(columns={"time_us": "us", "tokens": "m"})


def product_rows(rows: Frame) -> Frame:
    rows = rows[rows.layer.isin(PRODUCTS)]
    n, k = (rows.layer.map({name: one[place] for name, one in PRODUCTS.items()}) for place in (0, 1))
    return rows.assign(n=n, k=k, path="bf16").reset_index(drop=True)


def attention_rows(kernels: Path) -> dict[str, Frame]:
    """Steps of decodes alone, and of one chunk alone."""
    rows = pd.read_csv(kernels / NAME.format("attention")).rename(columns={"time_us": "us"})
    rows = rows.assign(heads=32, kv_heads=8, head_dim=128)
    decode = rows[rows.prefill_chunk == 0]
    chunk = rows[rows.n_decode == 0]
    return {
        "decode": decode.assign(batch=decode.n_decode, q_len=1, kv_len=decode.kv_decode).reset_index(
            drop=True
        ),
        "prefill": chunk.assign(
            batch=1, q_len=chunk.prefill_chunk, kv_len=chunk.prefill_chunk + chunk.kv_prefill
        ).reset_index(drop=True),
    }


def fit_layers(bench: Bench, kernels: Path) -> None:
    """Refit the levels of a set on a quarter of the layers' rows."""
    rows = layer_rows(kernels)
    products = product_rows(rows)
    held = quarter(products)
    free = ["launch_s", "memory_efficiency", "split_s", "feed_bytes_per_s", "epilogue_bytes_per_s",
            "sm_stream_bytes_per_s", "ridge_sharpness", "choose_stream_bytes_per_s", "choose_tile_s",
            "bf16.tensor_efficiency", "bf16.power_efficiency"]  # fmt: skip
    before = dict(bench.gemm)
    learn = products[held]
    learn = learn[(learn.m <= 256) | (learn.index % 4 == 0)]  # the profiler took most rows past 256 tokens
    bench.fit_gemm_levels(learn.reset_index(drop=True), free)
    keep = before["memory_efficiency"] / bench.gemm["memory_efficiency"]
    for name, path in bench.paths.items():  # narrow formats keep what their own tables say
        if name != "bf16":
            path["launch_factor"] *= before["launch_s"] / bench.gemm["launch_s"]
            path["memory_factor"] *= min(keep, 1.0)
    rest = products[~held].reset_index(drop=True)
    bench.bands["gemm"] = errors("layers gemm", bench.gemm_us(rest, bench.flat(), True), rest.us.to_numpy())
    few = rest[rest.m <= 256]
    errors("layers gemm, up to 256 tokens", bench.gemm_us(few, bench.flat(), True), few.us.to_numpy())
    ratios = []
    for phase, part in attention_rows(kernels).items():
        held = quarter(part, 3)
        own = bench.decode if phase == "decode" else bench.prefill
        own.pop("l2_bytes_per_s", None)  # these rows were cold
        learn, rest = part[held].reset_index(drop=True), part[~held].reset_index(drop=True)
        starts = [own] if phase == "decode" else [own | {"num_query_rows": size} for size in (64.0, 128.0)]
        tried = [
            fit(start, lambda c, o=learn, p=phase: bench.attention_us(o, c, p), learn.us.to_numpy(),
                free=list(DECODE0 if phase == "decode" else PREFILL0), pull=0.005)
            for start in starts
        ]  # fmt: skip
        best = min(tried, key=lambda c: np.abs(np.log(bench.attention_us(learn, c, phase) / learn.us)).mean())
        own.update(best)
        predicted = bench.attention_us(rest, own, phase)
        errors(f"layers {phase}", predicted, rest.us.to_numpy())
        ratios.append(rest.us.to_numpy() / predicted)
    low, high = np.quantile(np.concatenate(ratios), [0.1, 0.9])
    bench.bands["attention"] = (round(float(low), 3), round(float(high), 3))
    _fit_streams(bench, rows[rows.layer.isin(STREAMS)].reset_index(drop=True))


def _fit_streams(bench: Bench, rows: Frame) -> None:
    def predict(part: Frame, flat: dict[str, float]) -> np.ndarray:
        out = np.empty(len(part))
        for name, (size, shape) in STREAMS.items():
            at = (part.layer == name).to_numpy()
            out[at] = bench.stream_s(shape, part.m.to_numpy(float)[at] * size, flat)
        return out * 1e6

    held = quarter(rows, 5)
    part, rest = rows[held].reset_index(drop=True), rows[~held].reset_index(drop=True)
    bench.stream |= fit(bench.stream, lambda c: predict(part, c), part.us.to_numpy(), free=STREAM_LEVELS)
    bench.bands["stream"] = errors("layers element-wise", predict(rest, bench.stream), rest.us.to_numpy())
