"""Serving stacks: what TensorRT-LLM, SGLang and vLLM do differently on one chip, from the whole tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from bench import BYTES, DECODE0, GEMM0, NARROW, PATH0, PREFILL0, Bench
from search import Frame, errors, fit
from wheel_tables import EXPERT_FORMATS, attention_rows, drawn, expert_rows, gemm_rows, latent_rows

from datahall.silicon.attention import DecodeConstants, PrefillConstants, decode_times, prefill_times
from datahall.silicon.experts import ExpertConstants, expert_times
from datahall.workload.operator import Attention, GroupedGemm, Stream

EXPERT0 = {
    "launch_s": 6e-6,
    "memory_efficiency": 0.8,
    "small_memory_efficiency": 0.8,
    "power_efficiency": 0.6,
    "feed_bytes_per_s": 1.5e11,
    "tile_s": 1e-6,
    "ridge_sharpness": 3.0,
    "tile_rows": 16.0,
}
WEIGHTS = {"bf16": 2.0, "fp8": 1.0, "fp8-block": 1.0, "fp4": 0.5625, "mxfp4-bf16": 0.53125, "mxfp4-fp8": 0.53125,
           "int4-bf16": 0.515625}  # fmt: skip
ACTIVATIONS = {"bf16": 2.0, "fp8": 1.0, "fp8-block": 1.0, "fp4": 0.5625, "mxfp4-bf16": 2.0, "mxfp4-fp8": 1.03125,
               "int4-bf16": 2.0}  # fmt: skip
COMPUTE = {"fp8-block": "fp8", "mxfp4-bf16": "bf16", "int4-bf16": "bf16", "mxfp4-fp8": "fp8"}


def expert_layer_us(bench: Bench, rows: Frame, flat: dict[str, float], form: str) -> np.ndarray:
    """Dispatch, both products, the activation between them, casts, and the sum over all copies of the group."""
    copies, hit = rows.copies.to_numpy(), rows.hit.to_numpy()
    width, hidden = (rows.inter_size / rows.moe_tp_size).to_numpy(float), rows.hidden_size.to_numpy(float)
    local = (rows.num_experts / rows.moe_ep_size).to_numpy(float)
    constants = ExpertConstants(**flat)
    values = ACTIVATIONS[form]
    time_s = np.zeros(len(rows))
    for n, k in ((2 * width, hidden), (hidden, width)):
        time_s += expert_times(
            GroupedGemm(copies, local, n, k), hit, constants, num_sms=bench.sms,
            peak_flop_per_s=bench.chip.peak(COMPUTE.get(form, form)), memory_bytes_per_s=bench.bandwidth,
            weight_bytes=WEIGHTS[form], activation_bytes=max(WEIGHTS[form], values),
        ).time_s  # fmt: skip
        if values < 2.0:
            pattern = "cast" if form == "fp8" else "plain"
            time_s += bench.stream_s(Stream(1.0, pattern), copies * k * (2.0 + values))
    everyone = (rows.num_tokens * rows.topk).to_numpy(float)
    time_s += bench.stream_s(Stream(3.0), copies * hidden * 4.0) + bench.stream_s(
        Stream(), copies * width * 6.0
    )
    time_s += bench.stream_s(Stream(), (everyone + copies / rows.topk.to_numpy(float)) * hidden * 2.0)
    return time_s * 1e6


def fit_experts(bench: Bench, tables: Path, system: str) -> dict[str, dict[str, float]]:
    """Constants of each format that the stack has experts in; where routing is guessed rows are only checked on."""
    found: dict[str, dict[str, float]] = {}
    ratios = []
    for form in dict.fromkeys(EXPERT_FORMATS.values()):
        rows, rest = drawn(expert_rows(tables, system, bench.stack, form))
        if len(rows) < 60:
            continue
        sure = (rows.distribution == "balanced") | (rows.num_tokens * rows.topk > 2 * rows.num_experts)
        rows = rows[sure].reset_index(drop=True)
        best = np.inf
        for tile_rows in (8.0, 64.0):
            start = EXPERT0 | {"tile_rows": tile_rows, "power_efficiency": 0.6 if form == "bf16" else 0.4}
            tried = fit(
                start, lambda c, o=rows, f=form: expert_layer_us(bench, o, c, f), rows.us.to_numpy(),
                free=[key for key in EXPERT0 if key != "tile_rows"], pull=0.01,
            )  # fmt: skip
            error = np.abs(np.log(expert_layer_us(bench, rows, tried, form) / rows.us.to_numpy())).mean()
            if error < best:
                best, found[form] = error, tried
        predicted = expert_layer_us(bench, rest, found[form], form)
        errors(f"{system} {bench.stack} experts {form}", predicted, rest.us.to_numpy())
        ratios.append(rest.us.to_numpy() / predicted)
    if ratios:
        low, high = np.quantile(np.concatenate(ratios), [0.1, 0.9])
        bench.bands["grouped_gemm"] = (round(float(low), 3), round(float(high), 3))
    return found


LEVELS = ["tensor_efficiency", "power_efficiency", "memory_factor", "launch_factor"]


def fit_gemm_levels(
    bench: Bench, tables: Path, system: str, form: str, stack: str = ""
) -> tuple[float, float] | None:
    """Refit the levels of one format, the structure of the chip's set kept."""
    rows, rest = drawn(gemm_rows(tables, system, stack or bench.stack, form))
    if len(rows) < 60:
        return None
    bench.paths.setdefault(form, dict(bench.paths.get("fp8" if form == "fp8-block" else "bf16") or PATH0))
    many = rows[rows.m > 1]
    free = [f"{form}.{key}" for key in LEVELS]
    if form == "bf16":
        free = ["launch_s", "memory_efficiency", "split_s", "bf16.tensor_efficiency", "bf16.power_efficiency"]
    if form == "fp8":
        free.append("cast_bytes_per_s")
    bench.fit_gemm_levels(many, free)
    bench.fit_single_row(rows[rows.m == 1])
    return errors(
        f"{system} {stack or bench.stack} gemm {form}",
        bench.gemm_us(rest, bench.flat(), True),
        rest.us.to_numpy(),
    )


def fit_eager(bench: Bench, tables: Path, system: str) -> None:
    """vLLM's block-scaled table holds host launches: its small products give the least time of a call."""
    rows, rest = drawn(gemm_rows(tables, system, "vllm", "fp8-block"))
    if rows.empty or "fp8-block" not in bench.paths:
        return
    small = rows[(rows.m >= 4) & (rows.m <= 1024) & (rows.n * rows.k <= 2**25)]
    floor_us = float(np.median(small.us))
    predicted = np.maximum(bench.gemm_us(rest, bench.flat(), True), floor_us)
    bench.paths["fp8-block"]["eager_s"] = floor_us * 1e-6
    errors(f"{system} vllm gemm fp8-block, eager", predicted, rest.us.to_numpy())


LARGE_L2 = {"l40s", "rtx_pro_6000_server"}  # 96 and 128 MB: caches of many a row stay in it between runs


def fit_attention(
    bench: Bench, tables: Path, system: str, phases: tuple[str, ...] = ("decode", "prefill")
) -> None:
    """Refit decode and prefill from the chip's set, then what a one-byte cache adds."""
    ratios = []
    if system in LARGE_L2:
        bench.decode["l2_bytes_per_s"] = 2.5 * bench.bandwidth
    for phase in phases:
        constants = bench.decode if phase == "decode" else bench.prefill
        names = list(DECODE0 if phase == "decode" else PREFILL0)
        for cache, width, free in (("bfloat16", 2.0, names), ("fp8", 1.0, list(NARROW[phase]))):
            rows, rest = drawn(attention_rows(tables, system, bench.stack, phase, cache))
            if len(rows) < 60:
                continue
            if phase == "decode" and width == 2.0 and system in LARGE_L2:
                free = [*free, "l2_bytes_per_s"]
            start = (NARROW[phase] if width < 2.0 else {}) | constants
            constants.update(
                fit(start, lambda c, o=rows, p=phase, w=width: bench.attention_us(o, c, p, w), rows.us.to_numpy(),
                    free=free)
            )  # fmt: skip
            predicted = bench.attention_us(rest, constants, phase, width)
            errors(f"{system} {bench.stack} {phase} {cache}", predicted, rest.us.to_numpy())
            if width == 2.0:
                ratios.append(rest.us.to_numpy() / predicted)
    if ratios:
        low, high = np.quantile(np.concatenate(ratios), [0.1, 0.9])
        bench.bands["attention"] = (round(float(low), 3), round(float(high), 3))


def latent_us(
    bench: Bench, rows: Frame, decode: dict[str, float], prefill: dict[str, float], phase: str, width: float
) -> np.ndarray:
    """Latent attention on one chip."""
    names = ("batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim", "value_dim")
    shape = Attention(*(rows[key].to_numpy(float) for key in names))
    peak = bench.chip.peak("bf16")
    if phase == "decode":
        return decode_times(
            shape, DecodeConstants(**decode), num_sms=bench.sms, memory_bytes_per_s=bench.bandwidth, kv_bytes=width,
            peak_flop_per_s=peak * prefill["power_efficiency"],
        ).time_s * 1e6  # fmt: skip
    return np.asarray(prefill_times(
        shape, PrefillConstants(**prefill), num_sms=bench.sms, memory_bytes_per_s=bench.bandwidth, kv_bytes=width,
        peak_flop_per_s=peak,
    ).time_s) * 1e6  # fmt: skip


def fit_latent(bench: Bench, tables: Path, system: str, stack: str) -> dict[str, dict[str, float]]:
    """Latent attention from the tables of a stack that calls the same kernels; {} where there are none."""
    decode, prefill = bench.decode | NARROW["decode"], bench.prefill | NARROW["prefill"]
    for phase in ("prefill", "decode"):
        for cache, width in (("bfloat16", 2.0), ("fp8", 1.0)):
            rows, rest = drawn(latent_rows(tables, system, stack, phase, cache))
            if len(rows) < 60:
                if width == 2.0:
                    return {}
                continue
            base = prefill if phase == "prefill" else decode
            free = list(NARROW[phase]) if width < 2.0 else list(PREFILL0 if phase == "prefill" else DECODE0)

            def predict(c: dict[str, float], o: Frame = rows, p: str = phase, w: float = width) -> np.ndarray:
                return latent_us(
                    bench, o, c if p == "decode" else decode, c if p == "prefill" else prefill, p, w
                )

            base.update(fit(base, predict, rows.us.to_numpy(), free=free))
            errors(f"{system} {stack} latent {phase} {cache}", predict(base, rest), rest.us.to_numpy())
    return {"latent_prefill": prefill, "latent_decode": decode}


def serving_set(bench: Bench, known: dict[str, dict], tables: Path, system: str) -> dict[str, object]:
    """All of a stack on one chip, starting from the chip's vLLM set; returns what a set holds beyond the bench."""
    bench.gemm = {key: known["gemm"][key] for key in GEMM0}
    bench.paths = {name: dict(path) for name, path in known["paths"].items() if name in BYTES}
    for path in bench.paths.values():
        path.pop("single_row_s", None)
        path.pop("eager_s", None)
    bench.decode, bench.prefill = dict(known["decode"]), dict(known["prefill"])
    bench.batched, bench.stream, bench.grouped = known["batched"], dict(known["stream"]), known["grouped"]
    bench.bands = dict(known["bands"])
    for form in ("bf16", "fp8", "fp8-block", "fp4"):
        band = fit_gemm_levels(bench, tables, system, form)
        if form == "bf16" and band:
            bench.bands["gemm"] = band
    fit_attention(bench, tables, system)
    return {"experts": fit_experts(bench, tables, system)} | fit_latent(bench, tables, system, bench.stack)
