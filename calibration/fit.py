"""Fit the constants of the kernel models and write them to src/datahall/silicon/data/constants.json.

    python calibration/fit.py KERNELS MEASUREMENTS [TABLES] [SET …]

KERNELS is a folder with kernel tables of other projects (not part of this repository; see
docs/calibration.md), MEASUREMENTS the folder of our own measurements, TABLES the unpacked tables that
`wheel_tables` reads (without them the serving stacks are kept as they are); named sets are refitted and the others
kept.  At most a quarter of the rows of any table is fitted on, chosen by a seeded draw; the rest gives the
bands.  Needs the extra `fit` (scipy, pandas), which the product does not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
from bench import GEMM0, Bench
from card_without_ecc import rtx_4090
from joined_rows import SETS as JOINED_SETS
from joined_rows import empty_block_s
from kernel_tables import SYSTEMS, attention_table, gemm_table, vllm_chip
from layer_tables import fit_layers
from our_h200 import our_h200
from search import quarter
from stack_fits import (
    fit_attention,
    fit_eager,
    fit_experts,
    fit_gemm_levels,
    fit_latent,
    served_streams,
    serving_set,
)
from written import write_sets

from datahall.silicon.calibration import constant_sets
from datahall.validation.kernels import our_pass
from datahall.validation.measurement import Row, read_rows

OUT = Path(__file__).parent.parent / "src/datahall/silicon/data/constants.json"
# What whole passes keep of the rate that single kernels hold: Blackwell's from three GB200 training runs
# (405B and 340B, dgxc v25.05), on which they agree within 1 %.
SUSTAINED = {"blackwell": 0.81}
SHIPPED = OUT.parent.parent.parent / "validation/data/kernels"


def ship(given: Path) -> None:
    """Copy our measurements into the package, with the rows that a constant was fitted on marked."""
    SHIPPED.mkdir(parents=True, exist_ok=True)
    for name, seed in (
        ("gemm", 7),
        ("attention", 3),
        ("engine_infer", 5),
        ("moe_gemm", None),
        ("elementwise", None),
    ):
        rows = pd.read_csv(given / f"{name}.csv")
        fitted = quarter(rows, seed) if seed is not None else np.zeros(len(rows), bool)
        if name == "elementwise":
            fitted = ((rows.op == "silu_mul_2kernels") & (rows.tokens >= 256)).to_numpy()
        rows.assign(fitted=fitted.astype(int), source="Datahall H200, 2026-11").to_csv(
            SHIPPED / f"h200_{name}.csv", index=False, float_format="%.6g"
        )


def fit_passes(entry: dict) -> None:
    """Find what is left of the power-limited rate in whole passes on a quarter of ours, and the band of a pass.

    The band also covers the same passes run on a second machine, on which nothing is fitted.
    """
    rows = [row for row in read_rows(SHIPPED / "h200_engine_infer.csv")[1] if row.fitted_on()]
    sets = constant_sets()
    best = np.inf
    for share in np.arange(0.80, 1.001, 0.01):
        sets["h200-pytorch"] = msgspec.structs.replace(sets["h200-pytorch"], sustained=float(share))
        ratios = pass_ratios(rows)
        error = float(np.abs(np.log(ratios)).mean())
        if error < best:
            best, entry["sustained"], kept = error, round(float(share), 2), ratios
    sets["h200-pytorch"] = msgspec.structs.replace(sets["h200-pytorch"], sustained=entry["sustained"])
    other = pass_ratios(read_rows(SHIPPED / "h200_engine_second_machine.csv")[1])
    low, high = np.quantile(np.concatenate([np.tile(kept, len(other) // len(kept)), other]), [0.1, 0.9])
    entry["bands"]["pass"] = (round(float(low), 3), round(float(high), 3))
    print(
        "passes: sustained", entry["sustained"], "band", entry["bands"]["pass"], "mean error", round(best, 4)
    )


def pass_ratios(rows: list[Row]) -> np.ndarray:
    """Measured over predicted time of whole passes."""
    return np.array([one.measured / one.predicted for one in map(our_pass, rows)])


def as_entry(bench: Bench, name: str, title: str, fitted_on: str, sustained: float) -> dict[str, object]:
    """One set as it stands in constants.json; the band of a pass is that of its largest parts together."""

    def short(flat: dict[str, float]) -> dict[str, float]:
        return {key: float(f"{value:.4g}") for key, value in flat.items()}

    low, high = bench.bands["gemm"]
    bands = bench.bands | {"pass": (low, high)}
    return {
        "name": name,
        "chip": bench.chip.name,
        "family": bench.chip.family,
        "stack": bench.stack,
        "fitted_on": fitted_on,
        "sustained": sustained,
        "reference_sm_flop_per_s": float(f"{bench.chip.peak('bf16') / bench.sms:.4g}"),
        "source": {"title": title, "date": "2026-11", "kind": "measured"},
        "gemm": short(bench.gemm)
        | {
            "tensor_efficiency": bench.paths["bf16"]["tensor_efficiency"],
            "power_efficiency": bench.paths["bf16"]["power_efficiency"],
            "tiles": bench.tiles,
        },
        "paths": {path: short(own) for path, own in bench.paths.items()},
        "prefill": short(bench.prefill),
        "decode": short(bench.decode),
        "grouped": short(bench.grouped),
        "batched": short(bench.batched),
        "stream": short(bench.stream),
        "bands": bands,
    }


# Whose tables hold the kernels that vLLM replays in graphs: its own block-scaled table holds host launches, and its
# latent attention was only measured within whole modules.
BLOCK_SCALED = {"l40s": "trtllm", "rtx_pro_6000_server": "trtllm"}
LATENT = {"a100_sxm": "trtllm"}


def with_serving_kernels(entry: dict, system: str, tables: Path) -> dict:
    """A chip's vLLM set with its experts, block-scaled products and latent attention."""
    bench = bench_of(entry)
    if system == "l40s":
        fit_attention(bench, tables, system, ("decode",))
    fit_gemm_levels(bench, tables, system, "fp8-block", BLOCK_SCALED.get(system, "sglang"))
    fit_eager(bench, tables, system)
    more: dict[str, dict] = {"experts": fit_experts(bench, tables, system)}
    more |= fit_latent(bench, tables, system, LATENT.get(system, "sglang"))
    paths = {"fp8-block": bench.paths["fp8-block"]} if "fp8-block" in bench.paths else {}
    bands = entry["bands"] | {"grouped_gemm": bench.bands["grouped_gemm"]}
    more["decode"] = bench.decode
    return entry | shortened(more) | {"paths": entry["paths"] | shortened(paths), "bands": bands}


def with_layers(entry: dict, kernels: Path) -> dict:
    """The RTX PRO 6000's vLLM set with rates and floors as layers of a served model see them."""
    bench = bench_of(entry)
    fit_layers(bench, kernels)
    more = {"decode": bench.decode, "prefill": bench.prefill, "stream": bench.stream, "paths": bench.paths}
    return entry | shortened(more) | {
        "gemm": entry["gemm"] | shortened(bench.gemm) | {
            key: bench.paths["bf16"][key] for key in ("tensor_efficiency", "power_efficiency")
        },
        "sustained": 1.0,  # the rows are of layers that follow one another
        "bands": bench.bands | {"pass": bench.bands["gemm"]},
        "fitted_on": f"{entry['fitted_on'].split(';')[0]}; a quarter of LLMServingSim's layer rows (vLLM 0.19, MIT)",
    }  # fmt: skip


def bench_of(entry: dict) -> Bench:
    """The bench that a set was written from."""
    bench = Bench(entry["chip"], entry["stack"], entry["gemm"]["tiles"])
    bench.gemm = {key: entry["gemm"][key] for key in GEMM0}
    bench.paths = {name: dict(path) for name, path in entry["paths"].items()}
    bench.decode, bench.prefill = dict(entry["decode"]), dict(entry["prefill"])
    bench.stream, bench.batched, bench.grouped = entry["stream"], entry["batched"], entry["grouped"]
    bench.bands = dict(entry["bands"])
    return bench


def shortened(nested: dict) -> dict:
    """Four digits of every constant."""
    return {
        key: shortened(value) if isinstance(value, dict) else float(f"{value:.4g}")
        for key, value in nested.items()
    }


def measured_only(nested: dict) -> dict:
    """The same without what was not measured, which the file leaves out."""
    return {
        key: measured_only(value) if isinstance(value, dict) else value
        for key, value in nested.items()
        if value is not None and value != np.inf
    }


def fit_stacks(sets: dict[str, dict], tables: Path, only: list[str]) -> None:
    """TensorRT-LLM and SGLang on every chip, and what vLLM's sets lack."""
    for system, chip_name in SYSTEMS.items():
        known = sets[f"{chip_name}-vllm"]
        known["stream"] |= served_streams(system)
        if not only or known["name"] in only:
            known = sets[f"{chip_name}-vllm"] = with_serving_kernels(known, system, tables)
        for stack in ("trtllm", "sglang"):
            name = f"{chip_name}-{stack}"
            if only and name not in only:
                continue
            bench = Bench(chip_name, stack, known["gemm"]["tiles"])
            more = serving_set(bench, known, tables, system)
            sets[name] = as_entry(
                bench,
                name,
                "AIConfigurator kernel tables 0.12.0 (NVIDIA, Apache-2.0)",
                f"at most 900 rows and a quarter of each {system} table of {stack}; structure of the vLLM set",
                known["sustained"],
            ) | shortened(more)
        _write(sets)
    served, benchmarked = sets["rtx-pro-6000-vllm"], sets["rtx-pro-6000-sglang"]  # its own rows were all cold
    served["decode"]["l2_bytes_per_s"] = benchmarked["decode"]["l2_bytes_per_s"]
    _write(sets)


def main(kernels: Path, measurements: Path, only: list[str], tables: Path | None = None) -> None:
    """Fit all sets, or only the named ones and keep the others."""
    given = measurements / "h200"
    ship(given)
    sets: dict[str, dict] = json.loads(OUT.read_text(encoding="utf-8"))
    if not only or "h200-pytorch" in only:
        print("h200-sxm, PyTorch")
        ours = our_h200(given)
        sets["h200-pytorch"] = as_entry(
            ours,
            "h200-pytorch",
            "Datahall kernels on one H200 (700 W, PyTorch 2.11, CUDA 13.0)",
            "our sweep of 65 weight shapes and 12 head layouts; levels on a quarter of our H200 rows",
            0.92,
        )
        _write(sets)
    for system, chip_name in SYSTEMS.items():
        name = f"{chip_name}-vllm"
        if only and f"{name}:kernels" not in only:
            continue
        print(system)
        bench = vllm_chip(system, kernels)
        ours_stream = sets["h200-pytorch"]["stream"]
        bench.batched = sets["h200-pytorch"]["batched"]
        bench.stream |= {key: ours_stream[key] for key in ("kernel_s", "row_efficiency", "memory_efficiency")}
        before = sets.get(name, {})
        sets[name] = as_entry(
            bench,
            name,
            "AIConfigurator kernel tables 0.12.0 (NVIDIA, Apache-2.0)",
            f"a quarter of the {system} rows of the GEMM, attention and MoE extracts",
            SUSTAINED.get(bench.chip.family, 0.95),
        )
        sets[name] |= {
            key: before[key] for key in ("experts", "latent_prefill", "latent_decode") if key in before
        }
    if not only or "rtx-pro-6000-vllm" in only:
        sets["rtx-pro-6000-vllm"] = with_layers(sets["rtx-pro-6000-vllm"], kernels)
    for phase in ("decode", "prefill"):  # our own runs have no narrow cache
        known = sets["h200-sxm-vllm"][phase]
        sets["h200-pytorch"][phase] |= {
            key: value for key, value in known.items() if key.startswith("narrow")
        }
    if not only:
        sets["generic"] = generic(sets, kernels)
    _write(sets)
    if tables is not None:
        fit_stacks(sets, tables, only)
    for name in JOINED_SETS:  # FlashAttention-2 under vLLM: decodes share the launch of prompts
        sets[name]["prefill"]["empty_block_s"] = empty_block_s(kernels)
    if not only or "rtx-4090-vllm" in only:
        sets["rtx-4090-vllm"] = measured_only(rtx_4090(kernels))
        _write(sets)
    if not only or "h200-pytorch" in only:
        fit_passes(sets["h200-pytorch"])
        _write(sets)


def generic(sets: dict[str, dict], kernels: Path) -> dict[str, object]:
    """The middle of the measured sets, for chips nobody measured; its bands are its errors on these."""
    members = [sets[name] for name in ("h100-sxm-vllm", "a100-sxm-80gb-vllm", "b200-sxm-vllm", "l40s-vllm")]

    def middle(*path: str) -> dict[str, object]:
        tables = [member[path[0]] if len(path) == 1 else member[path[0]][path[1]] for member in members]
        return {
            key: value
            if isinstance(value, str)
            else float(f"{np.exp(np.mean([np.log(t[key]) for t in tables])):.3g}")
            for key, value in tables[0].items()
            if all(key in table for table in tables)
        }

    path = middle("paths", "bf16")
    entry = {
        "name": "generic",
        "chip": "",
        "family": "",
        "stack": "any",
        "sustained": 0.95,
        "reference_sm_flop_per_s": float(
            np.exp(np.mean([np.log(one["reference_sm_flop_per_s"]) for one in members]))
        ),
        "fitted_on": "the middle of the measured H100, A100, B200 and L40S sets",
        "source": {"title": "Datahall, middle of measured chips", "date": "2026-11", "kind": "estimate"},
        "gemm": middle("gemm"),
        "paths": {name: path for name in ("bf16", "fp8", "fp4")},
        "prefill": middle("prefill"),
        "decode": middle("decode"),
        "grouped": middle("grouped"),
        "batched": middle("batched"),
        "stream": middle("stream"),
        "bands": {},
    }
    ratios: dict[str, list[np.ndarray]] = {"gemm": [], "attention": []}
    for system, chip_name in SYSTEMS.items():
        bench = Bench(chip_name, "any", entry["gemm"]["tiles"])
        bench.stream = entry["stream"]
        rows = gemm_table(system, kernels)
        rows = rows[rows["path"] == "bf16"]
        flat = {key: entry["gemm"][key] for key in GEMM0} | {
            f"bf16.{key}": value for key, value in path.items()
        }
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


def _write(sets: dict[str, dict]) -> None:
    write_sets(OUT, sets)


if __name__ == "__main__":
    rest = sys.argv[3:]
    unpacked = Path(rest.pop(0)) if rest and Path(rest[0]).is_dir() else None
    main(Path(sys.argv[1]), Path(sys.argv[2]), rest, unpacked)
