"""Fit the constants of the kernel models and write them to src/datahall/silicon/data/constants.toml.

    python calibration/fit.py KERNELS MEASUREMENTS

KERNELS is a folder with kernel tables of other projects (not part of this repository; see docs/calibration.md),
MEASUREMENTS the folder of our own measurements.  At most a quarter of the rows of any table is fitted on, chosen by
a seeded draw; the rest gives the bands.  Needs scipy and pandas, which the product does not.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from datahall.catalog import load
from datahall.silicon import gemm as gemm_module
from datahall.silicon.attention import DecodeConstants, PrefillConstants, decode_times, prefill_times
from datahall.silicon.gemm import GemmConstants, gemm_times
from datahall.silicon.grouped_gemm import GroupedConstants, grouped_times
from datahall.silicon.stream import StreamConstants, stream_times
from datahall.workload.operator import Attention, GroupedGemm, Stream, experts_hit

OURS = Path(__file__).parent / "h200"
OUT = Path(__file__).parent.parent / "src/datahall/silicon/data/constants.toml"
SYSTEMS = {
    "h100_sxm": "h100-sxm", "a100_sxm": "a100-sxm-80gb", "b200_sxm": "b200-sxm", "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000", "h200_sxm": "h200-sxm", "gb200": "gb200", "b300_sxm": "b300-sxm",
    "gb300": "gb300",
}  # fmt: skip
BYTES = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.5625}
AIC_DTYPES = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "fp4"}
gemm_module.INTERPRET_BELOW = 0

Frame = pd.DataFrame
GEMM0 = {
    "launch_s": 3.3e-6, "memory_efficiency": 0.89, "feed_bytes_per_s": 1.5e11, "epilogue_bytes_per_s": 3.8e10,
    "sm_stream_bytes_per_s": 2.3e11, "split_s": 2.6e-6, "l2_keep_bytes": 3.5e7, "ridge_sharpness": 3.0,
    "choose_stream_bytes_per_s": 7.9e10, "choose_split_s": 2.5e-6, "choose_tile_s": 0.97e-6,
}  # fmt: skip
PATH0 = {"tensor_efficiency": 0.9, "power_efficiency": 0.735, "memory_factor": 1.0, "launch_factor": 1.0}
PREFILL0 = {
    "launch_s": 4.5e-6, "softmax_s": 0.5e-6, "tile_s": 1.3e-6, "tensor_efficiency": 0.92,
    "power_efficiency": 0.85, "imbalance": 0.54,
}  # fmt: skip
DECODE0 = {
    "launch_s": 2e-6, "tile_s": 1.1e-6, "sm_stream_bytes_per_s": 4.85e10, "memory_efficiency": 0.95, "tail_s": 1.7e-6,
    "combine_s": 2.2e-6, "combine_part_s": 2.2e-8, "sharpness": 8.0, "split_above_blocks": 8.0,
}  # fmt: skip
GROUPED0 = {
    "launch_s": 8e-6, "memory_efficiency": 0.76, "small_memory_efficiency": 0.6, "power_efficiency": 0.70,
    "tile_rows": 128.0, "pad_rows": 16.0, "ridge_sharpness": 4.0,
}  # fmt: skip
CAPS = {"memory_efficiency": 0.97, "tensor_efficiency": 1.10, "power_efficiency": 1.0}


def simplex(loss: Callable[[np.ndarray], float], size: int, step: float = 0.15, restarts: int = 4) -> np.ndarray:
    """Nelder-Mead with restarts over the logarithms of the constants."""
    best, value = np.zeros(size), loss(np.zeros(size))
    for turn in range(restarts):
        corners = np.vstack([best, best + step * np.diag([1.0 if (i + turn) % 2 else -1.0 for i in range(size)])])
        found = minimize(
            loss, best, method="Nelder-Mead",
            options={"maxiter": 220 * size, "xatol": 1e-3, "fatol": 1e-5, "adaptive": True, "initial_simplex": corners},
        )  # fmt: skip
        if found.fun < value:
            best, value = found.x, found.fun
        step *= 0.7
    return best


def fit(
    start: dict[str, float],
    predict: Callable[[dict[str, float]], np.ndarray],
    measured: np.ndarray,
    *,
    free: list[str] | None = None,
    pull: float = 0.02,
) -> dict[str, float]:
    """Move the `free` constants from where they start, held back by `pull`, to the least mean and P90 error."""
    names = free if free is not None else list(start)

    def at(shift: np.ndarray) -> dict[str, float]:
        moved = {name: start[name] * float(np.exp(s)) for name, s in zip(names, shift, strict=True)}
        return start | {
            name: min(value, next((cap for key, cap in CAPS.items() if name.endswith(key)), np.inf))
            for name, value in moved.items()
        }

    def loss(shift: np.ndarray) -> float:
        error = np.abs(np.log(predict(at(shift)) / measured))
        return float(np.minimum(error, 0.5).mean() + 0.3 * np.quantile(error, 0.9) + pull * np.abs(shift).mean())

    return at(simplex(loss, len(names)))


def quarter(frame: Frame, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).random(len(frame)) < 0.25


def errors(name: str, predicted: np.ndarray, measured: np.ndarray) -> tuple[float, float]:
    """Print the error and return measured/predicted at P10 and P90."""
    ape = np.abs(predicted / measured - 1) * 100
    bias = np.median(predicted / measured - 1) * 100
    print(f"  {name:34s} {len(ape):5d} rows  median {np.median(ape):5.1f}  mean {ape.mean():5.1f}  "
          f"p90 {np.quantile(ape, 0.9):5.1f}  bias {bias:+5.1f}")  # fmt: skip
    low, high = np.quantile(measured / predicted, [0.1, 0.9])
    return round(float(low), 3), round(float(high), 3)


class Bench:
    """One chip's kernels measured with one software stack, and the constants found so far."""

    def __init__(self, chip_name: str, stack: str, tiles: str) -> None:
        self.chip = load().chip(chip_name)
        self.stack, self.tiles = stack, tiles
        self.sms, self.bandwidth = float(self.chip.num_sms), self.chip.memory_bytes_per_s
        l2 = next((level.capacity_bytes for level in self.chip.levels if level.name == "l2"), 5e7)
        l2 = 5e7 if not np.isfinite(l2) else l2
        scale = self.bandwidth / 4.8e12
        self.stream = {
            "kernel_s": 1.4e-6, "eager_kernel_s": 6.8e-6, "memory_efficiency": 0.91, "row_efficiency": 0.66,
            "row_element_s": 7e-10, "strided_bytes_per_s": 1.9e12 * scale, "cast_bytes_per_s": 1.5e12 * scale, "l2_bytes_per_s": 9.5e12 * scale,
            "l2_keep_bytes": 0.7 * l2,
        }  # fmt: skip
        self.bands: dict[str, tuple[float, float]] = {}
        self.gemm = GEMM0 | {"l2_keep_bytes": 0.7 * l2}
        self.paths: dict[str, dict[str, float]] = {}
        self.prefill, self.decode = dict(PREFILL0), dict(DECODE0)
        self.grouped, self.batched = dict(GROUPED0), dict(GROUPED0)

    def gemm_us(self, rows: Frame, flat: dict[str, float], casts: bool) -> np.ndarray:
        out = np.empty(len(rows))
        for path in rows["path"].unique():
            at = (rows["path"] == path).to_numpy()
            part = rows[at]
            own = {key: flat[f"{path}.{key}"] for key in PATH0}
            constants = GemmConstants(
                **{key: flat[key] for key in GEMM0 if key not in {"launch_s", "memory_efficiency"}},
                launch_s=flat["launch_s"] * own["launch_factor"],
                memory_efficiency=flat["memory_efficiency"] * own["memory_factor"],
                tensor_efficiency=own["tensor_efficiency"], power_efficiency=own["power_efficiency"], tiles=self.tiles,
            )  # fmt: skip
            times = gemm_times(
                part.m.to_numpy(float), part.n.to_numpy(float), part.k.to_numpy(float), num_sms=self.sms,
                peak_flop_per_s=self.chip.peak(path), memory_bytes_per_s=self.bandwidth, constants=constants,
                weight_bytes=BYTES[path], activation_bytes=BYTES[path],
            )  # fmt: skip
            out[at] = times.time_s
            if casts and path != "bf16":
                moved = (part.m * part.k).to_numpy(float) * (2.0 + BYTES[path])
                stream = self.stream | {"cast_bytes_per_s": flat["cast_bytes_per_s"]}
                out[at] += self.stream_s(Stream(1.0, "cast"), moved, stream)
        return out * 1e6

    def stream_s(self, shape: Stream, moved: np.ndarray, flat: dict[str, float] | None = None) -> np.ndarray:
        constants = StreamConstants(**(flat or self.stream))
        return np.asarray(stream_times(shape, moved, constants, memory_bytes_per_s=self.bandwidth)[0])

    def fit_gemm(self, rows: Frame, casts: bool, free: list[str] | None = None, pull: float = 0.02) -> None:
        paths = [path for path in BYTES if (rows["path"] == path).any()]
        flat = dict(self.gemm)
        if casts and len(paths) > 1:
            flat["cast_bytes_per_s"] = self.stream["cast_bytes_per_s"]
        for path in paths:
            flat |= {f"{path}.{key}": value for key, value in (self.paths.get(path) or PATH0).items()}
        fixed = {"bf16.memory_factor", "bf16.launch_factor"}
        names = [name for name in flat if name not in fixed] if free is None else free
        found = fit(flat, lambda c: self.gemm_us(rows, c, casts), rows.us.to_numpy(), free=names, pull=pull)
        self.gemm = {key: found[key] for key in GEMM0}
        self.stream["cast_bytes_per_s"] = found.get("cast_bytes_per_s", self.stream["cast_bytes_per_s"])
        self.paths |= {path: {key: found[f"{path}.{key}"] for key in PATH0} for path in paths}

    def gemm_error(self, name: str, rows: Frame, casts: bool) -> tuple[float, float]:
        flat = self.gemm | {"cast_bytes_per_s": self.stream["cast_bytes_per_s"]}
        flat |= {f"{p}.{key}": value for p, own in self.paths.items() for key, value in own.items()}
        for path in sorted(rows["path"].unique()):
            part = rows[rows["path"] == path]
            errors(f"{name} {path}", self.gemm_us(part, flat, casts), part.us.to_numpy())
        return errors(name, self.gemm_us(rows, flat, casts), rows.us.to_numpy())

    def attention_us(self, rows: Frame, flat: dict[str, float], phase: str) -> np.ndarray:
        shape = Attention(
            *(rows[key].to_numpy(float) for key in ("batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim")),
            rows.head_dim.to_numpy(float),
        )
        if phase == "decode":
            got = decode_times(
                shape, DecodeConstants(**flat), num_sms=self.sms, memory_bytes_per_s=self.bandwidth, kv_bytes=2.0
            )
        else:
            got = prefill_times(
                shape, PrefillConstants(**flat), num_sms=self.sms, peak_flop_per_s=self.chip.peak("bf16"),
                memory_bytes_per_s=self.bandwidth, kv_bytes=2.0,
            )  # fmt: skip
        return np.asarray(got.time_s) * 1e6

    def grouped_us(self, rows: Frame, flat: dict[str, float]) -> np.ndarray:
        got = grouped_times(
            GroupedGemm(*(rows[key].to_numpy(float) for key in ("rows", "experts", "n", "k"))),
            np.minimum(rows.rows, rows.experts).to_numpy(float), GroupedConstants(**flat),
            peak_flop_per_s=self.chip.peak("bf16"), memory_bytes_per_s=self.bandwidth,
            weight_bytes=2.0, activation_bytes=2.0,
        )  # fmt: skip
        return np.asarray(got.time_s) * 1e6

    def moe_layer_us(self, rows: Frame, flat: dict[str, float]) -> np.ndarray:
        """Both grouped GEMMs of a gated MoE layer, its activation and the shuffling of rows around them."""
        copies = (rows.num_tokens * rows.topk / rows.moe_ep_size).to_numpy(float)
        local = (rows.num_experts / rows.moe_ep_size).to_numpy(float)
        hit = experts_hit(rows.num_tokens.to_numpy(float), rows.num_experts.to_numpy(float), rows.topk.to_numpy(float), local)
        hit = np.minimum(hit, np.maximum(1.0, copies))
        width = (rows.inter_size / rows.moe_tp_size).to_numpy(float)
        hidden = rows.hidden_size.to_numpy(float)
        kw = {
            "peak_flop_per_s": self.chip.peak("bf16"), "memory_bytes_per_s": self.bandwidth,
            "weight_bytes": 2.0, "activation_bytes": 2.0,
        }  # fmt: skip
        constants = GroupedConstants(**flat)
        copies = np.maximum(copies, 1.0)
        up = grouped_times(GroupedGemm(copies, local, 2 * width, hidden), hit, constants, **kw).time_s
        down = grouped_times(GroupedGemm(copies, local, hidden, width), hit, constants, **kw).time_s
        between = self.stream_s(Stream(), copies * width * 6.0) + self.stream_s(Stream(3.0), copies * hidden * 8.0)
        return np.asarray(up + down + between) * 1e6


def our_h200(given: Path) -> Bench:
    """PyTorch on our H200: structure from our own sweep, levels also from a quarter of the published rows."""
    bench = Bench("h200-sxm", "pytorch", "fine")
    sweep = pd.read_csv(OURS / "gemm.csv").rename(columns={"dtype": "path"})
    rows = pd.read_csv(given / "gemm.csv").rename(columns={"dtype": "path"})
    rows["us"] = rows.ms * 1e3
    known = set(zip(rows.n, rows.k, strict=True))
    sweep = sweep[[pair not in known for pair in zip(sweep.n, sweep.k, strict=True)]]
    bench.fit_gemm(sweep[sweep.m.isin([2**power for power in range(14)])], False, pull=0.005)
    bench.gemm_error("gemm, own sweep", sweep, False)
    held = quarter(rows)
    levels = ["launch_s", "memory_efficiency", "split_s"]
    levels += [f"{path}.{key}" for path in ("bf16", "fp8") for key in ("tensor_efficiency", "power_efficiency")]
    levels += ["fp8.memory_factor", "fp8.launch_factor"]
    bench.fit_gemm(rows[held], False, free=levels, pull=0.02)
    bench.bands["gemm"] = bench.gemm_error("gemm, unseen", rows[~held], False)
    _our_attention(bench, given)
    _our_experts(bench, given)
    _our_streams(bench, given)
    return bench


def _our_attention(bench: Bench, given: Path) -> None:
    sweep, rows = pd.read_csv(OURS / "attention.csv"), pd.read_csv(given / "attention.csv")
    rows["us"] = rows.ms * 1e3
    held = quarter(rows, 3)
    ratios = []
    for phase, constants, levels in (
        ("decode", bench.decode, ["launch_s", "memory_efficiency"]),
        ("prefill", bench.prefill, ["launch_s", "power_efficiency"]),
    ):
        own = sweep[sweep.kind.str.startswith(phase)]
        found = fit(constants, lambda c, o=own, p=phase: bench.attention_us(o, c, p), own.us.to_numpy(), pull=0.005)
        errors(f"{phase}, own sweep", bench.attention_us(own, found, phase), own.us.to_numpy())
        part, rest = (rows[at & rows.kind.str.startswith(phase)] for at in (held, ~held))
        found = fit(
            found, lambda c, o=part, p=phase: bench.attention_us(o, c, p), part.us.to_numpy(), free=levels, pull=0.05
        )
        constants.update(found)
        errors(f"{phase}, unseen", bench.attention_us(rest, found, phase), rest.us.to_numpy())
        ratios.append(rest.us.to_numpy() / bench.attention_us(rest, found, phase))
    low, high = np.quantile(np.concatenate(ratios), [0.1, 0.9])
    bench.bands["attention"] = (round(float(low), 3), round(float(high), 3))


def _our_experts(bench: Bench, given: Path) -> None:
    sweep, rows = pd.read_csv(OURS / "moe.csv"), pd.read_csv(given / "moe_gemm.csv")
    rows["us"] = rows.ms * 1e3
    gate = rows.op == "gate_up"
    rows["n"] = np.where(gate, 2 * rows.expert_ffn, rows.hidden)
    rows["k"] = np.where(gate, rows.hidden, rows.expert_ffn)
    rows["rows"] = np.maximum(rows.tokens * rows.topk, rows.experts)
    known = set(zip(rows.n, rows.k, strict=True))
    unseen = np.array([pair not in known for pair in zip(sweep.n, sweep.k, strict=True)])
    sweep = sweep[(sweep.rows >= sweep.experts).to_numpy() & unseen]
    predicted = np.empty(len(rows))
    for how, constants in (("grouped_mm", bench.grouped), ("bmm", bench.batched)):
        own = sweep[sweep.how == how]
        constants.update(fit(constants, lambda c, o=own: bench.grouped_us(o, c), own.us.to_numpy(), pull=0.005,
                             free=[key for key in GROUPED0 if key not in {"tile_rows", "pad_rows"}]))  # fmt: skip
        errors(f"{how}, own sweep", bench.grouped_us(own, constants), own.us.to_numpy())
        at = (rows.how == how).to_numpy()
        predicted[at] = bench.grouped_us(rows[at], constants)
        errors(f"{how}, unseen", predicted[at], rows.us.to_numpy()[at])
    bench.bands["grouped_gemm"] = errors("grouped gemm, unseen", predicted, rows.us.to_numpy())


def _our_streams(bench: Bench, given: Path) -> None:
    sweep = pd.read_csv(OURS / "elementwise.csv")
    sweep = sweep[(sweep.how == "graph") & ((sweep.op != "rmsnorm") | sweep.width.between(2048, 8192))]
    passes = {"add": 6.0, "mul": 6.0, "silu": 4.0, "to_fp8": 3.0, "copy": 4.0, "rmsnorm": 4.0}

    def predict(flat: dict[str, float]) -> np.ndarray:
        out = np.empty(len(sweep))
        for op, size in passes.items():
            at = (sweep.op == op).to_numpy()
            width = sweep.width.to_numpy(float)[at]
            shape = Stream(1.0, {"rmsnorm": "rows", "to_fp8": "cast"}.get(op, "plain"), width)
            out[at] = bench.stream_s(shape, sweep.tokens.to_numpy(float)[at] * width * size, flat) * 1e6
        return out

    free = [key for key in bench.stream if key not in {"eager_kernel_s", "strided_bytes_per_s"}]
    bench.stream = fit(bench.stream, predict, sweep.us.to_numpy(), free=free, pull=0.005)
    errors("element-wise, own sweep", predict(bench.stream), sweep.us.to_numpy())
    ceilings = pd.read_csv(given / "ceilings.csv").set_index("what")
    bench.stream["eager_kernel_s"] = float(ceilings.loc["eager_launch", "ms"]) * 1e-3
    rows = pd.read_csv(given / "elementwise.csv")
    strided = rows[(rows.op == "silu_mul_2kernels") & (rows.tokens >= 256)]
    bench.stream["strided_bytes_per_s"] = float(np.median(strided.gbps)) * 1e9
    bench.bands["stream"] = (0.85, 1.2)


def gemm_table(system: str, kernels: Path) -> Frame:
    table = pd.read_csv(kernels / "aic_gemm_extract.csv")
    table = table[(table.system == system) & table.gemm_dtype.isin(AIC_DTYPES)]
    return table.assign(us=table.latency_ms * 1e3, path=table.gemm_dtype.map(AIC_DTYPES)).reset_index(drop=True)


def attention_table(system: str, kernels: Path) -> Frame:
    table = pd.read_csv(kernels / "aic_attention_extract.csv")
    table = table[(table.system == system) & (table.kv_cache_dtype == "bfloat16")]
    table = table.rename(columns={"num_heads": "heads", "num_key_value_heads": "kv_heads", "batch_size": "batch"})
    return table.assign(us=table.latency_ms * 1e3, kv_len=table.kv_len_past + table.q_len).reset_index(drop=True)


def vllm_chip(system: str, kernels: Path) -> Bench:
    """A chip from the kernel tables measured under vLLM."""
    table = gemm_table(system, kernels)
    bench = Bench(SYSTEMS[system], "vllm", "coarse" if system in {"a100_sxm", "l40s"} else "fine")
    held = quarter(table)
    bench.fit_gemm(table[held], True)
    bench.bands["gemm"] = bench.gemm_error(f"{system} gemm, unseen", table[~held], True)
    attention = attention_table(system, kernels)
    held, ratios = quarter(attention, 3), []
    for phase, constants in (("decode", bench.decode), ("prefill", bench.prefill)):
        part, rest = (attention[at & (attention.phase == phase)] for at in (held, ~held))
        constants.update(fit(constants, lambda c, o=part, p=phase: bench.attention_us(o, c, p), part.us.to_numpy()))
        predicted = bench.attention_us(rest, constants, phase)
        errors(f"{system} {phase}, unseen", predicted, rest.us.to_numpy())
        ratios.append(rest.us.to_numpy() / predicted)
    low, high = np.quantile(np.concatenate(ratios), [0.1, 0.9])
    bench.bands["attention"] = (round(float(low), 3), round(float(high), 3))
    moe = pd.read_csv(kernels / "aic_moe_extract.csv")
    moe = moe[(moe.system == system) & (moe.moe_dtype == "bfloat16")].assign(us=moe.latency_ms * 1e3).reset_index(drop=True)
    held = quarter(moe, 5)
    free = [key for key in GROUPED0 if key not in {"tile_rows", "pad_rows"}]
    bench.grouped = fit(bench.grouped, lambda c: bench.moe_layer_us(moe[held], c), moe[held].us.to_numpy(), free=free)
    bench.bands["grouped_gemm"] = errors(f"{system} moe, unseen", bench.moe_layer_us(moe[~held], bench.grouped), moe[~held].us.to_numpy())
    bench.bands["stream"] = (0.8, 1.25)
    return bench


def ship(given: Path) -> None:
    """Copy our measurements into the package, with the rows that a constant was fitted on marked."""
    folder = OUT.parent.parent.parent / "validation/data/kernels"
    folder.mkdir(parents=True, exist_ok=True)
    for name, seed in (("gemm", 7), ("attention", 3), ("engine_infer", 5), ("moe_gemm", None), ("elementwise", None)):
        rows = pd.read_csv(given / f"{name}.csv")
        fitted = quarter(rows, seed) if seed is not None else np.zeros(len(rows), bool)
        if name == "elementwise":
            fitted = ((rows.op == "silu_mul_2kernels") & (rows.tokens >= 256)).to_numpy()
        rows.assign(fitted=fitted.astype(int), source="Datahall H200, 2026-11").to_csv(
            folder / f"h200_{name}.csv", index=False, float_format="%.6g"
        )


def sustained_share(given: Path) -> float:
    """The share of the power-limited rate left in whole passes, on a quarter of our forward passes."""
    from datahall.silicon import calibration
    from datahall.validation import kernels
    from datahall.validation.measurement import read_rows

    rows = [row for row in read_rows(OUT.parent.parent.parent / "validation/data/kernels/h200_engine_infer.csv")[1] if row.fitted]
    sets = calibration.constant_sets()
    best, share = np.inf, 1.0
    for trial in np.arange(0.80, 1.001, 0.01):
        sets["h200-pytorch"] = calibration.msgspec.structs.replace(sets["h200-pytorch"], sustained=float(trial))
        error = np.mean([abs(np.log(kernels.our_pass(row).predicted / kernels.our_pass(row).measured)) for row in rows])
        if error < best:
            best, share = error, float(trial)
    return round(share, 2)


def as_entry(bench: Bench, name: str, title: str, fitted_on: str, sustained: float) -> dict[str, object]:
    """One set as it stands in constants.toml; the band of a pass is that of its largest parts together."""
    def short(flat: dict[str, float]) -> dict[str, float]:
        return {key: float(f"{value:.4g}") for key, value in flat.items()}

    low, high = bench.bands["gemm"]
    bands = bench.bands | {"pass": (low, high)}
    return {
        "name": name, "chip": bench.chip.name, "family": bench.chip.family, "stack": bench.stack,
        "fitted_on": fitted_on, "sustained": sustained,
        "reference_sm_flop_per_s": float(f"{bench.chip.peak('bf16') / bench.sms:.4g}"),
        "source": {"title": title, "date": "2026-11", "kind": "measured"},
        "gemm": short(bench.gemm) | {"tensor_efficiency": bench.paths["bf16"]["tensor_efficiency"],
                                     "power_efficiency": bench.paths["bf16"]["power_efficiency"], "tiles": bench.tiles},
        "paths": {path: short(own) for path, own in bench.paths.items()},
        "prefill": short(bench.prefill), "decode": short(bench.decode), "grouped": short(bench.grouped),
        "batched": short(bench.batched), "stream": short(bench.stream), "bands": bands,
    }  # fmt: skip


def main(kernels: Path, measurements: Path, only: list[str]) -> None:
    """Fit all sets, or only the named ones and keep the others."""
    given = measurements / "h200"
    ship(given)
    sets: dict[str, dict] = tomllib.loads(OUT.read_text(encoding="utf-8")) if only else {}
    if not only or "h200-pytorch" in only:
        print("h200-sxm, PyTorch")
        ours = our_h200(given)
        sets["h200-pytorch"] = as_entry(
            ours, "h200-pytorch", "Datahall kernels on one H200 (700 W, PyTorch 2.11, CUDA 13.0)",
            "our sweep of 66 weight shapes and 12 head layouts; levels on a quarter of our published H200 rows", 0.92,
        )  # fmt: skip
        _write(sets)
    for system, chip_name in SYSTEMS.items():
        name = f"{chip_name}-vllm"
        if only and name not in only:
            continue
        print(system)
        bench = vllm_chip(system, kernels)
        ours_stream = sets["h200-pytorch"]["stream"]
        bench.batched = sets["h200-pytorch"]["batched"]
        bench.stream |= {key: ours_stream[key] for key in ("kernel_s", "row_efficiency", "memory_efficiency")}
        sets[name] = as_entry(
            bench, name, "AIConfigurator kernel tables 0.12.0 (NVIDIA, Apache-2.0)",
            f"a quarter of the {system} rows of the GEMM, attention and MoE extracts", 0.95,
        )  # fmt: skip
    sets["generic"] = generic(sets, kernels)
    _write(sets)
    if not only or "h200-pytorch" in only:
        sets["h200-pytorch"]["sustained"] = sustained_share(given)
        print("sustained", sets["h200-pytorch"]["sustained"])
        _write(sets)


def generic(sets: dict[str, dict], kernels: Path) -> dict[str, object]:
    """The middle of the measured sets, for chips nobody measured; its bands are its errors on those that were."""
    members = [sets[name] for name in ("h100-sxm-vllm", "a100-sxm-80gb-vllm", "b200-sxm-vllm", "l40s-vllm")]

    def middle(*path: str) -> dict[str, object]:
        tables = [member[path[0]] if len(path) == 1 else member[path[0]][path[1]] for member in members]
        return {
            key: value if isinstance(value, str) else float(f"{np.exp(np.mean([np.log(t[key]) for t in tables])):.3g}")
            for key, value in tables[0].items()
        }

    path = middle("paths", "bf16")
    entry = {
        "name": "generic", "chip": "", "family": "", "stack": "any", "sustained": 0.95,
        "reference_sm_flop_per_s": float(np.exp(np.mean([np.log(one["reference_sm_flop_per_s"]) for one in members]))),
        "fitted_on": "the middle of the measured H100, A100, B200 and L40S sets",
        "source": {"title": "Datahall, middle of measured chips", "date": "2026-11", "kind": "estimate"},
        "gemm": middle("gemm"), "paths": {name: path for name in ("bf16", "fp8", "fp4")},
        "prefill": middle("prefill"), "decode": middle("decode"), "grouped": middle("grouped"),
        "batched": middle("batched"), "stream": middle("stream"), "bands": {},
    }  # fmt: skip
    ratios: dict[str, list[np.ndarray]] = {"gemm": [], "attention": []}
    for system, chip_name in SYSTEMS.items():
        bench = Bench(chip_name, "any", entry["gemm"]["tiles"])
        bench.stream = entry["stream"]
        rows = gemm_table(system, kernels)
        rows = rows[rows["path"] == "bf16"]
        flat = {key: entry["gemm"][key] for key in GEMM0} | {f"bf16.{key}": value for key, value in path.items()}
        ratios["gemm"].append(rows.us.to_numpy() / bench.gemm_us(rows, flat, False))
        rows = attention_table(system, kernels)
        for phase in ("decode", "prefill"):
            part = rows[rows.phase == phase]
            ratios["attention"].append(part.us.to_numpy() / bench.attention_us(part, entry[phase], phase))
    for kind, found in ratios.items():
        low, high = np.quantile(np.concatenate(found), [0.1, 0.9])
        entry["bands"][kind] = (round(float(low), 3), round(float(high), 3))
    wide = entry["bands"]["gemm"]
    entry["bands"] |= {"grouped_gemm": (0.6, 1.7), "stream": (0.7, 1.5), "pass": wide}
    print("generic", entry["bands"])
    return entry


def _write(sets: dict[str, object]) -> None:
    import tomli_w

    OUT.write_text("# Written by calibration/fit.py; see docs/calibration.md.\n\n" + tomli_w.dumps(sets), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
