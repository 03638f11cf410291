"""One chip under one software stack: its kernel models with constants to be found."""

from __future__ import annotations

import numpy as np
from search import Frame, errors, fit

from datahall.catalog import load
from datahall.silicon import gemm as gemm_module
from datahall.silicon.attention import DecodeConstants, PrefillConstants, decode_times, prefill_times
from datahall.silicon.gemm import GemmConstants, gemm_times
from datahall.silicon.grouped_gemm import GroupedConstants, grouped_times
from datahall.silicon.stream import StreamConstants, stream_times
from datahall.workload.operator import Attention, GroupedGemm, Stream, experts_hit

gemm_module.INTERPRET_BELOW = 0
BYTES = {
    "bf16": 2.0,
    "fp8": 1.0,
    "fp4": 0.5625,
    "fp8-block": 1.0,
    "int4-bf16": 0.515625,
    "int8-bf16": 1.0,
    "int8": 1.0,
}
INPUTS = BYTES | {"int4-bf16": 2.0, "int8-bf16": 2.0}
UNITS = {"fp8-block": "fp8", "int4-bf16": "bf16", "int8-bf16": "bf16"}
GEMM0 = {
    "launch_s": 3.3e-6,
    "memory_efficiency": 0.89,
    "feed_bytes_per_s": 1.5e11,
    "epilogue_bytes_per_s": 3.8e10,
    "sm_stream_bytes_per_s": 2.3e11,
    "split_s": 2.6e-6,
    "l2_keep_bytes": 3.5e7,
    "ridge_sharpness": 3.0,
    "choose_stream_bytes_per_s": 7.9e10,
    "choose_split_s": 2.5e-6,
    "choose_tile_s": 0.97e-6,
}
PATH0 = {"tensor_efficiency": 0.9, "power_efficiency": 0.735, "memory_factor": 1.0, "launch_factor": 1.0}
PREFILL0 = {
    "launch_s": 4.5e-6,
    "softmax_s": 0.5e-6,
    "tile_s": 1.3e-6,
    "tensor_efficiency": 0.92,
    "power_efficiency": 0.85,
    "imbalance": 0.54,
}
DECODE0 = {
    "launch_s": 2e-6,
    "tile_s": 1.1e-6,
    "sm_stream_bytes_per_s": 4.85e10,
    "memory_efficiency": 0.95,
    "tail_s": 1.7e-6,
    "combine_s": 2.2e-6,
    "combine_part_s": 2.2e-8,
    "sharpness": 8.0,
}
GROUPED0 = {
    "launch_s": 8e-6,
    "memory_efficiency": 0.76,
    "small_memory_efficiency": 0.6,
    "power_efficiency": 0.70,
    "tile_rows": 128.0,
    "pad_rows": 16.0,
    "ridge_sharpness": 4.0,
}
NARROW = {
    "decode": {"narrow_launch_s": 3e-6, "narrow_rate_factor": 0.9},
    "prefill": {"narrow_launch_s": 2e-6, "narrow_element_s": 2e-13},
}


class Bench:
    """One chip's kernels measured with one software stack, and the constants found so far."""

    def __init__(self, chip_name: str, stack: str, tiles: str) -> None:
        self.chip = load().chip(chip_name)
        self.stack, self.tiles = stack, tiles
        self.sms, self.bandwidth = float(self.chip.num_sms), self.chip.memory_bytes_per_s
        l2 = next((level.capacity_bytes for level in self.chip.levels if level.name == "l2"), 5e7)
        l2 = 5e7 if not np.isfinite(l2) else l2
        self.l2 = l2
        scale = self.bandwidth / 4.8e12
        self.stream = {
            "kernel_s": 1.4e-6,
            "eager_kernel_s": 6.8e-6,
            "memory_efficiency": 0.91,
            "row_efficiency": 0.66,
            "row_element_s": 7e-10,
            "strided_bytes_per_s": 1.9e12 * scale,
            "cast_bytes_per_s": 1.5e12 * scale,
            "l2_bytes_per_s": 9.5e12 * scale,
            "l2_keep_bytes": 0.7 * l2,
        }
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
                tensor_efficiency=own["tensor_efficiency"],
                power_efficiency=own["power_efficiency"],
                tiles=self.tiles,
            )
            times = gemm_times(
                part.m.to_numpy(float),
                part.n.to_numpy(float),
                part.k.to_numpy(float),
                num_sms=self.sms,
                peak_flop_per_s=self.chip.peak(UNITS.get(path, path)),
                memory_bytes_per_s=self.bandwidth,
                constants=constants,
                weight_bytes=BYTES[path],
                activation_bytes=INPUTS[path],
                output_bytes=2.0,
            )
            out[at] = times.time_s
            if casts and INPUTS[path] < 2.0:
                moved = (part.m * part.k).to_numpy(float) * (2.0 + BYTES[path])
                stream = self.stream | {"cast_bytes_per_s": flat["cast_bytes_per_s"]}
                out[at] += self.stream_s(Stream(1.0, "cast" if path == "fp8" else "plain"), moved, stream)
                out[at] += np.where(part.m < 2, flat.get(f"{path}.single_row_s", 0.0), 0.0)
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

    def fit_gemm_levels(self, rows: Frame, free: list[str], pull: float = 0.02) -> None:
        """Move some constants of the formats in these rows, the others kept."""
        found = fit(
            self.flat(), lambda c: self.gemm_us(rows, c, True), rows.us.to_numpy(), free=free, pull=pull
        )
        self.gemm = {key: found[key] for key in GEMM0}
        self.stream["cast_bytes_per_s"] = found["cast_bytes_per_s"]
        for path in rows["path"].unique():
            self.paths[path] |= {key: found[f"{path}.{key}"] for key in PATH0}

    def fit_single_row(self, rows: Frame) -> None:
        """What one row costs beyond the model, where that is more than a tenth of the time."""
        for path in set(rows["path"]) - {"bf16"}:
            part = rows[rows["path"] == path]
            beyond = part.us.to_numpy() - self.gemm_us(part, self.flat(), True)
            if np.median(beyond) > 0.1 * np.median(part.us):
                self.paths[path]["single_row_s"] = float(np.median(beyond)) * 1e-6

    def flat(self) -> dict[str, float]:
        flat = self.gemm | {"cast_bytes_per_s": self.stream["cast_bytes_per_s"]}
        return flat | {f"{p}.{key}": value for p, own in self.paths.items() for key, value in own.items()}

    def gemm_error(self, name: str, rows: Frame, casts: bool) -> tuple[float, float]:
        flat = self.flat()
        for path in sorted(rows["path"].unique()):
            part = rows[rows["path"] == path]
            errors(f"{name} {path}", self.gemm_us(part, flat, casts), part.us.to_numpy())
        return errors(name, self.gemm_us(rows, flat, casts), rows.us.to_numpy())

    def attention_us(
        self, rows: Frame, flat: dict[str, float], phase: str, kv_bytes: float = 2.0
    ) -> np.ndarray:
        shape = Attention(
            *(
                rows[key].to_numpy(float)
                for key in ("batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim")
            ),
            rows.head_dim.to_numpy(float),
        )
        if phase == "decode":
            got = decode_times(
                shape,
                DecodeConstants(**flat),
                num_sms=self.sms,
                memory_bytes_per_s=self.bandwidth,
                kv_bytes=kv_bytes,
                value_bytes=2.0,
                warm_bytes=self.l2 if "l2_bytes_per_s" in flat else 0.0,
            )
        else:
            got = prefill_times(
                shape,
                PrefillConstants(**flat),
                num_sms=self.sms,
                peak_flop_per_s=self.chip.peak("bf16"),
                memory_bytes_per_s=self.bandwidth,
                kv_bytes=kv_bytes,
                value_bytes=2.0,
            )
        return np.asarray(got.time_s) * 1e6

    def grouped_us(self, rows: Frame, flat: dict[str, float]) -> np.ndarray:
        got = grouped_times(
            GroupedGemm(*(rows[key].to_numpy(float) for key in ("rows", "experts", "n", "k"))),
            np.minimum(rows.rows, rows.experts).to_numpy(float),
            GroupedConstants(**flat),
            peak_flop_per_s=self.chip.peak("bf16"),
            memory_bytes_per_s=self.bandwidth,
            weight_bytes=2.0,
            activation_bytes=2.0,
            output_bytes=2.0,
        )
        return np.asarray(got.time_s) * 1e6

    def moe_layer_us(self, rows: Frame, flat: dict[str, float]) -> np.ndarray:
        """Both grouped GEMMs of a gated MoE layer, its activation and the shuffling of rows around them."""
        copies = (rows.num_tokens * rows.topk / rows.moe_ep_size).to_numpy(float)
        local = (rows.num_experts / rows.moe_ep_size).to_numpy(float)
        hit = experts_hit(
            rows.num_tokens.to_numpy(float),
            rows.num_experts.to_numpy(float),
            rows.topk.to_numpy(float),
            local,
        )
        hit = np.minimum(hit, np.maximum(1.0, copies))
        width = (rows.inter_size / rows.moe_tp_size).to_numpy(float)
        hidden = rows.hidden_size.to_numpy(float)
        kw = {
            "peak_flop_per_s": self.chip.peak("bf16"),
            "memory_bytes_per_s": self.bandwidth,
            "weight_bytes": 2.0,
            "activation_bytes": 2.0,
            "output_bytes": 2.0,
        }
        constants = GroupedConstants(**flat)
        copies = np.maximum(copies, 1.0)
        up = grouped_times(GroupedGemm(copies, local, 2 * width, hidden), hit, constants, **kw).time_s
        down = grouped_times(GroupedGemm(copies, local, hidden, width), hit, constants, **kw).time_s
        between = self.stream_s(Stream(), copies * width * 6.0) + self.stream_s(
            Stream(3.0), copies * hidden * 8.0
        )
        return np.asarray(up + down + between) * 1e6
