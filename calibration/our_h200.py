"""PyTorch on our H200: structure from our own sweep, levels also from a quarter of the published rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from bench import GROUPED0, Bench
from search import errors, fit, quarter

from datahall.workload.operator import Stream

OURS = Path(__file__).parent / "h200"


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
    levels += [
        f"{path}.{key}" for path in ("bf16", "fp8") for key in ("tensor_efficiency", "power_efficiency")
    ]
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
        found = fit(
            constants, lambda c, o=own, p=phase: bench.attention_us(o, c, p), own.us.to_numpy(), pull=0.005
        )
        errors(f"{phase}, own sweep", bench.attention_us(own, found, phase), own.us.to_numpy())
        part, rest = (rows[at & rows.kind.str.startswith(phase)] for at in (held, ~held))
        found = fit(
            found,
            lambda c, o=part, p=phase: bench.attention_us(o, c, p),
            part.us.to_numpy(),
            free=levels,
            pull=0.05,
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
        constants.update(
            fit(
                constants,
                lambda c, o=own: bench.grouped_us(o, c),
                own.us.to_numpy(),
                pull=0.005,
                free=[key for key in GROUPED0 if key not in {"tile_rows", "pad_rows"}],
            )
        )
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
