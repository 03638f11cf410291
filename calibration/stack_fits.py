"""Serving stacks: what TensorRT-LLM, SGLang and vLLM do differently on one chip, from the whole tables."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from bench import BYTES, DECODE0, GEMM0, NARROW, PATH0, PREFILL0, Bench
from search import Frame, errors, fit
from wheel_tables import EXPERT_FORMATS, attention_rows, drawn, expert_rows, gemm_rows, latent_rows

from datahall.silicon.attention import DecodeConstants, PrefillConstants, decode_times, prefill_times
from datahall.silicon.experts import ExpertConstants, expert_times
from datahall.silicon.stream import StreamConstants
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

# Element-wise kernels as engines compile them, from calibration/h200/served_streams.csv (torch.compile in graphs on our
# H200; PyTorch's own norm of a row takes three times as long): 1.2 µs alone and 1.3 to 1.4 where they sum along a row;
# static casts of the H100 and H200 tables take 1.4.  Blackwell's take 2 where nothing overlaps them, but engines launch them
# ahead of their inputs there, as the library does that multiplies in 2.1 µs what takes 3.0 on Hopper.
SERVED_ROW_ELEMENT_S = 1.6e-10
SERVED_KERNEL_S = 1.4e-6
LAUNCHED_AHEAD = {"h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm", "gb200", "gb300"}
KEPT = {"rtx_pro_6000_server"}  # fitted on engines' kernels of its own


def served_streams(system: str) -> dict[str, float]:
    """What a set's element-wise constants gain for engines."""
    if system in KEPT:
        return {}
    kernel = {"served_kernel_s": SERVED_KERNEL_S} if system in LAUNCHED_AHEAD else {}
    return kernel | {"served_row_element_s": SERVED_ROW_ELEMENT_S}


def expert_layer_us(bench: Bench, rows: Frame, flat: dict[str, float], form: str) -> np.ndarray:
    """Dispatch, both products, the activation between them, casts, and the sum over all copies of the group."""
    stream = msgspec.structs.asdict(StreamConstants(**bench.stream).served)
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
            weight_bytes=WEIGHTS[form], activation_bytes=max(WEIGHTS[form], values), output_bytes=2.0,
        ).time_s  # fmt: skip
        if values < 2.0:
            pattern = "cast" if form == "fp8" else "plain"
            time_s += bench.stream_s(Stream(1.0, pattern), copies * k * (2.0 + values), stream)
    everyone = (rows.num_tokens * rows.topk).to_numpy(float)
    time_s += bench.stream_s(Stream(3.0), copies * hidden * 4.0, stream)
    time_s += bench.stream_s(Stream(), copies * width * 6.0, stream)
    summed = (everyone + copies / rows.topk.to_numpy(float)) * hidden * 2.0
    time_s += bench.stream_s(Stream(), summed, stream)
    return time_s * 1e6


# Rows that contradict every other source (docs/calibration.md): by format and stack, on a family of chips.
SET_ASIDE = {("fp8", "vllm", "hopper")}

FEW_TOKENS = 4  # a decode of so few is launches and little else: what they are fitted on


def fit_experts(
    bench: Bench, tables: Path, system: str, known: dict[str, dict[str, float]] | None = None
) -> dict[str, dict[str, float]]:
    """Constants of each format that the stack has experts in; where routing is guessed rows are only checked on.

    `known` constants are moved and keep their `tile_rows`; without them both heights are tried from the start.
    """
    found: dict[str, dict[str, float]] = {}
    ratios = []
    for form in dict.fromkeys(EXPERT_FORMATS.values()):
        if (form, bench.stack, bench.chip.family) in SET_ASIDE:
            continue
        every = expert_rows(tables, system, _measured_by(bench.stack, form, bench.chip.family), form)
        rows, rest = drawn(every[_plain(every)]) if len(every) else (every, every)
        if len(rows) < 60:
            continue
        sure = (rows.distribution == "balanced") | (rows.num_tokens * rows.topk > 2 * rows.num_experts)
        rows = rows[sure].reset_index(drop=True)
        level = {"power_efficiency": 0.6 if form == "bf16" else 0.4}
        starts = [EXPERT0 | {"tile_rows": tile_rows} | level for tile_rows in (8.0, 64.0)]
        if known and form in known:
            starts = [known[form]]
        best = np.inf
        for start in starts:
            tried = _fit_expert(bench, rows, start, form)
            error = np.abs(np.log(expert_layer_us(bench, rows, tried, form) / rows.us.to_numpy())).mean()
            if error < best:
                best, found[form] = error, tried
        predicted = expert_layer_us(bench, rest, found[form], form)
        errors(f"{system} {bench.stack} experts {form}", predicted, rest.us.to_numpy())
        few = (rest.num_tokens <= FEW_TOKENS).to_numpy()
        errors(f"  {FEW_TOKENS} tokens or fewer", predicted[few], rest.us.to_numpy()[few])
        ratios.append(rest.us.to_numpy() / predicted)
    if ratios:
        low, high = np.quantile(np.concatenate(ratios), [0.1, 0.9])
        bench.bands["grouped_gemm"] = (round(float(low), 3), round(float(high), 3))
    return found


def _measured_by(stack: str, form: str, family: str) -> str:
    """Whose table holds the experts' kernel that a stack runs.

    TensorRT-LLM's block-scaled table on Blackwell times DeepGEMM, where its recipes for DeepSeek ask for generated kernels
    that FlashInfer ships too and vLLM's table holds.
    """
    return "vllm" if (stack, form, family) == ("trtllm", "fp8-block", "blackwell") else stack


def _plain(rows: Frame) -> np.ndarray:
    """Rows whose work is known: one rank holds all experts, and no kernel limits a token to half of their groups.

    With more ranks the tables grow ever slower than a rank's share (by 1.3 at 8, 2 at 32, whatever the kernel): each
    still handles everybody's tokens, how is not stated.  DeepSeek's own top-k sends balanced scores to half the experts.
    """
    limited = (rows.num_experts == 256) & (rows.hidden_size == 7168) & (rows.distribution == "balanced")
    return ((rows.moe_ep_size == 1) & ~limited).to_numpy()


def _fit_expert(bench: Bench, rows: Frame, start: dict[str, float], form: str) -> dict[str, float]:
    """Launches from the rows of few tokens, everything else from all; in turns, as each leans on the other.

    Fitted together, launches make up for whatever the model lacks at hundreds of tokens and are half too long.
    """
    free = [key for key in EXPERT0 if key not in {"launch_s", "tile_rows"}]
    some = rows.sample(min(len(rows), 400), random_state=3)
    found = dict(start)
    for _ in range(2):
        found["launch_s"] = _few_launch_s(bench, rows, found, form)
        found = fit(
            found, lambda c, o=some, f=form: expert_layer_us(bench, o, c, f), some.us.to_numpy(),
            free=free, pull=0.005, restarts=2,
        )  # fmt: skip
    return found | {"launch_s": _few_launch_s(bench, rows, found, form)}


def _few_launch_s(bench: Bench, rows: Frame, flat: dict[str, float], form: str) -> float:
    few = rows[rows.num_tokens <= FEW_TOKENS]
    if few.empty:
        return flat["launch_s"]
    bare = expert_layer_us(bench, few, flat | {"launch_s": 0.0}, form)
    return max(3e-7, float(np.median(few.us.to_numpy() - bare)) / 2.0 * 1e-6)  # of each of two products


# TensorRT-LLM's NVFP4 table was taken without its autotuner: 6.3 µs + 1.9 µs per 1,024 of depth, whatever the width.  The
# engine tunes at start, among kernels that FlashInfer ships and vLLM's table holds.
TUNED = {("trtllm", "fp4"): "vllm"}
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
            value_bytes=2.0, peak_flop_per_s=peak * prefill["power_efficiency"],
        ).time_s * 1e6  # fmt: skip
    return np.asarray(prefill_times(
        shape, PrefillConstants(**prefill), num_sms=bench.sms, memory_bytes_per_s=bench.bandwidth, kv_bytes=width,
        value_bytes=2.0, peak_flop_per_s=peak,
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
    bench.batched, bench.grouped = known["batched"], known["grouped"]
    bench.stream = dict(known["stream"])
    bench.bands = dict(known["bands"])
    for form in ("bf16", "fp8", "fp8-block", "fp4"):
        band = fit_gemm_levels(bench, tables, system, form, TUNED.get((bench.stack, form), ""))
        if form == "bf16" and band:
            bench.bands["gemm"] = band
    fit_attention(bench, tables, system)
    return {"experts": fit_experts(bench, tables, system)} | fit_latent(bench, tables, system, bench.stack)
