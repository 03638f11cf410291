"""Chips whose kernels were measured under vLLM, from the tables of AIConfigurator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from bench import GROUPED0, NARROW, Bench
from search import Frame, errors, fit, quarter

SYSTEMS = {
    "h100_sxm": "h100-sxm",
    "a100_sxm": "a100-sxm-80gb",
    "b200_sxm": "b200-sxm",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000",
    "h200_sxm": "h200-sxm",
    "gb200": "gb200",
    "b300_sxm": "b300-sxm",
    "gb300": "gb300",
}
AIC_DTYPES = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "fp4"}


def gemm_table(system: str, kernels: Path) -> Frame:
    table = pd.read_csv(kernels / "aic_gemm_extract.csv")
    table = table[(table.system == system) & table.gemm_dtype.isin(AIC_DTYPES)]
    return table.assign(us=table.latency_ms * 1e3, path=table.gemm_dtype.map(AIC_DTYPES)).reset_index(
        drop=True
    )


def attention_table(system: str, kernels: Path, cache: str = "bfloat16") -> Frame:
    table = pd.read_csv(kernels / "aic_attention_extract.csv")
    table = table[(table.system == system) & (table.kv_cache_dtype == cache)]
    table = table.rename(
        columns={"num_heads": "heads", "num_key_value_heads": "kv_heads", "batch_size": "batch"}
    )
    return table.assign(us=table.latency_ms * 1e3, kv_len=table.kv_len_past + table.q_len).reset_index(
        drop=True
    )


def _fit_narrow_cache(bench: Bench, system: str, rows: Frame) -> None:
    """What a cache of one byte per value costs beyond its bytes."""
    if rows.empty:
        return
    held = quarter(rows, 3)
    for phase, constants in (("decode", bench.decode), ("prefill", bench.prefill)):
        part, rest = (rows[at & (rows.phase == phase)] for at in (held, ~held))
        found = fit(
            constants | NARROW[phase],
            lambda c, o=part, p=phase: bench.attention_us(o, c, p, 1.0),
            part.us.to_numpy(),
            free=list(NARROW[phase]),
        )
        constants.update(found)
        errors(
            f"{system} {phase} fp8, unseen", bench.attention_us(rest, found, phase, 1.0), rest.us.to_numpy()
        )


def vllm_chip(system: str, kernels: Path) -> Bench:
    """A chip from the kernel tables measured under vLLM."""
    table = gemm_table(system, kernels)
    bench = Bench(SYSTEMS[system], "vllm", "coarse" if system in {"a100_sxm", "l40s"} else "fine")
    held = quarter(table)
    bench.fit_gemm(table[held & (table.m > 1)], True)
    bench.fit_single_row(table[held & (table.m == 1)])
    bench.bands["gemm"] = bench.gemm_error(f"{system} gemm, unseen", table[~held], True)
    attention = attention_table(system, kernels)
    held, ratios = quarter(attention, 3), []
    for phase, constants in (("decode", bench.decode), ("prefill", bench.prefill)):
        part, rest = (attention[at & (attention.phase == phase)] for at in (held, ~held))
        constants.update(
            fit(constants, lambda c, o=part, p=phase: bench.attention_us(o, c, p), part.us.to_numpy())
        )
        predicted = bench.attention_us(rest, constants, phase)
        errors(f"{system} {phase}, unseen", predicted, rest.us.to_numpy())
        ratios.append(rest.us.to_numpy() / predicted)
    _fit_narrow_cache(bench, system, attention_table(system, kernels, "fp8"))
    low, high = np.quantile(np.concatenate(ratios), [0.1, 0.9])
    bench.bands["attention"] = (round(float(low), 3), round(float(high), 3))
    moe = pd.read_csv(kernels / "aic_moe_extract.csv")
    moe = (
        moe[(moe.system == system) & (moe.moe_dtype == "bfloat16")]
        .assign(us=moe.latency_ms * 1e3)
        .reset_index(drop=True)
    )
    held = quarter(moe, 5)
    free = [key for key in GROUPED0 if key not in {"tile_rows", "pad_rows"}]
    bench.grouped = fit(
        bench.grouped, lambda c: bench.moe_layer_us(moe[held], c), moe[held].us.to_numpy(), free=free
    )
    bench.bands["grouped_gemm"] = errors(
        f"{system} moe, unseen", bench.moe_layer_us(moe[~held], bench.grouped), moe[~held].us.to_numpy()
    )
    bench.bands["stream"] = (0.8, 1.25)
    return bench
