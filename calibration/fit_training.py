"""Fit what frameworks add to the physics and write src/datahall/training/data/frameworks.json.

    python calibration/fit_training.py TRAINING_CSV [FRAMEWORK ...]

With names only those frameworks are fitted, on the rows already marked for them where there are any, and the others
stay as they are.  At most a quarter of the rows of a source is fitted on, and none of vTrain, MLPerf 405B or the mixtures of experts; the
fitted rows are marked in the shipped copy of the file, by metric: those that the bookkeeping of memory was read off keep
their mark.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
from search import fit
from written import write_sets

from datahall.breakdown import Source
from datahall.catalog import load
from datahall.cluster.cluster import cluster_of
from datahall.errors import DatahallError
from datahall.silicon.attention import smooth_max
from datahall.training.layout.columns import Space
from datahall.training.step.framework import WRITTEN_FOR, Framework
from datahall.training.step.stage import HIDING_SHARPNESS
from datahall.training.step.step import step_band, step_times
from datahall.validation import training as ledger
from datahall.validation.measurement import Row, RowError, read_rows
from datahall.validation.training import single_chip
from datahall.validation.training.rows import MEMORY, STEP

ROOT = Path(__file__).parent.parent / "src/datahall"
OUT = ROOT / "training/data/frameworks.json"
SHIPPED = ROOT / "validation/data/training/training.csv"
SINGLE_CHIP = ROOT / "validation/data/training/h200_single_chip.csv"
NEVER = ("vTrain", "llama31_405b", "Megatron-Bridge")
START = {
    "compute_factor": 1.15,
    "attention_factor": 1.0,
    "later_attention_factor": 1.0,
    "tensor_exposed": 0.7,
    "pipeline_exposed": 0.5,
    "data_exposed": 0.4,
    "fixed_s": 0.06,
    "jitter": 0.002,
    "host_s": 2e-4,
}
USUAL_ATTENTION = {"attention_factor": 1.0, "later_attention_factor": 1.0}
NO_HOST = {"host_s": 0.0}  # what the host costs is inside the other constants of the older frameworks
# The exchange takes multiprocessors from the kernels beside it: 20 of the 132 of an H800 (DeepSeek-V3 technical
# report, section 3.2.2).
OVERLAPPED = 20 / 132


class Kit(msgspec.Struct, frozen=True, kw_only=True):
    """A framework to be fitted: what is known of it, and what is not fitted."""

    title: str
    fusion: str = "fused"
    flash: bool = True
    books: str = "nemo"  # what it keeps in memory: a row of `BOOKS`
    fixed: dict[str, float] = {}
    start: dict[str, float] = {}  # of the search, where the usual one is far off
    options: dict[str, str | float | bool] = {}
    like: str = ""  # another whose constants it has, and its own options
    host_like: str = ""  # another that was fitted where the host is the bottleneck
    rows: tuple[dict[str, str], ...] = ()  # to fit on, by patterns in their columns; (): those drawn

    def picks(self, row: Row, drawn: bool) -> bool:
        """Whether a row may be fitted on."""
        if not self.rows:
            return drawn
        return any(all(re.search(text, row.text(name)) for name, text in one.items()) for one in self.rows)


KITS = {
    "megatron-2022": Kit(
        title="Megatron-LM of 2021 and 2022", fusion="lean", flash=False, books="megatron-2022",
        fixed={"tensor_exposed": 1.0, **USUAL_ATTENTION, **NO_HOST}, start={"fixed_s": 0.02},
    ),
    "megatron-deepspeed": Kit(
        title="Megatron-DeepSpeed of 2021 and 2022", fusion="lean", flash=False, books="megatron-deepspeed",
        fixed={"tensor_exposed": 1.0, **USUAL_ATTENTION, **NO_HOST},
    ),
    # SimuMax states that its runs overlap nothing; fp32 gradients are Megatron's default
    "megatron-core": Kit(
        title="Megatron-Core without overlap or graphs",
        fixed={
            "tensor_exposed": 1.0, "pipeline_exposed": 1.0, "data_exposed": 1.0, "jitter": 0.002,
            "later_attention_factor": 1.0,
        },
        options={"gradient_bytes": 4.0},
        # six layouts with 8 micro-batches and one long sequence, 7 of 30 rows; the draw has none where the host binds
        rows=(
            {"model_name": "^Llama", "notes": "^8 micro-batches"},
            {"model_name": "^Llama-3-70B", "seq_len": "^131072", "cp": "^8"},
        ),
    ),
    # Interleaved stages send beside their kernels: dgxc's weak scaling pays 1 to 40 % of what messages cost once
    # they leave the NVLink domain (405B and 340B on GB200, 128 to 512 chips), 15 % in the mean.
    "nemo": Kit(
        title="NeMo and Megatron-Core from 2023", fixed={"pipeline_exposed": 0.15, **USUAL_ATTENTION, **NO_HOST},
        start={"fixed_s": 0.02},
    ),
    "nemo-moe": Kit(
        title="NeMo and Megatron-Core from 2023, mixtures of experts launched from the host", like="nemo",
        host_like="megatron-core",
    ),
    "fsdp": Kit(title="PyTorch FSDP (llm-foundry)", fusion="lean", books="fsdp", fixed=NO_HOST),
    # its runs recompute every second product and are on chips held to 500 W: both are in the factor of its kernels
    "torchtitan": Kit(
        title="PyTorch FSDP2 compiled (torchtitan, mostly on H100 of 500 W)", books="torchtitan",
        fixed={"tensor_exposed": 1.0, "pipeline_exposed": 0.5, **USUAL_ATTENTION, **NO_HOST},
    ),
    # XLA keeps norms and losses in fp32 and recomputes them: passes over memory as of uncompiled code
    "maxtext": Kit(
        title="MaxText on TPUs", fusion="eager", fixed={"pipeline_exposed": 0.5, **USUAL_ATTENTION, **NO_HOST}
    ),
    # not fitted: grouped products as the kernels of the chip alone
    "maxtext-moe": Kit(
        title="MaxText on TPUs, mixtures of experts", like="maxtext", options={"compute_factor": 1.0}
    ),
    # one process: nothing to hide or to wait for; bf16 weights, gradients and moments are read and written once
    "eager": Kit(
        title="PyTorch uncompiled on one chip", fusion="eager", books="eager",
        fixed={
            "tensor_exposed": 1.0, "pipeline_exposed": 1.0, "data_exposed": 1.0, "jitter": 0.0, "fixed_s": 0.0,
            **USUAL_ATTENTION, **NO_HOST,
        },
    ),
    "compiled": Kit(
        title="PyTorch compiled on one chip", fusion="fused", books="compiled",
        fixed={
            "tensor_exposed": 1.0, "pipeline_exposed": 1.0, "data_exposed": 1.0, "jitter": 0.0, "fixed_s": 0.0,
            **USUAL_ATTENTION, **NO_HOST,
        },
    ),
    "megatron-bridge-eager": Kit(
        title="Megatron Bridge without graphs: tokens sent once per chip (DeepEP, HybridEP)", like="nemo",
        host_like="megatron-core", options={"deduplicated": True},
    ),
    "megatron-bridge": Kit(
        title="Megatron Bridge of 2025 and early 2026: graphs of attention and router", like="nemo",
        host_like="megatron-core", options={"deduplicated": True, "captured": "attention"},
    ),
    "megatron-bridge-graph": Kit(
        title="Megatron Bridge from mid 2026: one graph of the step, fused experts, exchange beside kernels", like="nemo",
        options={
            "deduplicated": True, "captured": "step", "fused_experts": True, "expert_exposed": round(OVERLAPPED, 3),
        },
    ),
}  # fmt: skip
SINGLE_CHIP_KITS = ("eager", "compiled")  # fitted on our own runs
COUNTED_S = 1e-12  # so little that it changes nothing, to read off how many operators are launched


def bare(name: str) -> Framework:
    """A framework that hides nothing and costs nothing."""
    kit = KITS[name]
    given = {"gradient_bytes": 2.0, "expert_exposed": 1.0} | kit.options
    return Framework(
        name=name, title=kit.title, source=ledger_source(), fitted_on="", fusion=kit.fusion, flash_attention=kit.flash,
        books=kit.books,
        compute_factor=1.0, attention_factor=1.0, tensor_exposed=1.0, pipeline_exposed=1.0, data_exposed=1.0,
        fixed_s=0.0, jitter=0.0, host_s=COUNTED_S, **given,
    )  # fmt: skip


def ledger_source() -> Source:
    """Where the constants are from."""
    return Source("Datahall, fitted on public training runs", "2026-11", "derived")


def parts(row: Row, kit: Framework) -> dict[str, float]:
    """The pieces of one row's step with nothing hidden."""
    run = ledger.understood(row)
    cluster, layout, job = run.cluster, run.layout, run.job
    times = step_times(job, cluster, Space.of(layout), kit)
    doubled = step_times(job, cluster, Space.of(layout), msgspec.structs.replace(kit, attention_factor=2.0))
    names = (
        "compute_s",
        "tensor_s",
        "expert_s",
        "pipeline_s",
        "gathered_s",
        "data_s",
        "optimizer_s",
        "num_micro",
        "launch_s",
    )
    found = {name: float(getattr(times, name)[0]) for name in names}
    filled = float(times.bubble_s[0]) / float(times.slot_s[0])  # slots that filling and draining takes
    slots = found["num_micro"] + filled
    found["attention_s"] = float(doubled.compute_s[0]) - found["compute_s"]
    found["launched"] = found.pop("launch_s") / COUNTED_S
    return found | {
        "slots": slots,
        "later": cluster.chip.family not in WRITTEN_FOR,
        "chips": float(cluster.num_chips),
        "measured": ledger.measured(run.row, job, cluster, run.source),
    }


def predicted(table: pd.DataFrame, c: dict[str, float]) -> np.ndarray:
    """The step from its pieces; the same sum as training.step."""
    attention = c["attention_factor"] * np.where(table.later, c["later_attention_factor"], 1.0)
    kernels = table.compute_s + table.attention_s * (attention - 1.0)
    stage = kernels * c["compute_factor"] + table.tensor_s * c["tensor_exposed"] + table.expert_s
    slot = smooth_max(stage, table.gathered_s, HIDING_SHARPNESS)
    slot = smooth_max(slot, table.launched * c["host_s"], HIDING_SHARPNESS)
    slot = slot + table.pipeline_s * c["pipeline_exposed"]
    step = slot * table.slots + table.data_s * c["data_exposed"] + table.optimizer_s + c["fixed_s"]
    return (step * (1 + c["jitter"] * np.log(table.chips))).to_numpy()


def quarter_of_each_source(rows: list[Row]) -> np.ndarray:
    """Mark a quarter of each source's usable rows, rounded down."""
    usable: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        try:
            run = ledger.understood(row)
            ledger.measured(run.row, run.job, run.cluster, run.source)
        except (RowError, DatahallError):
            continue
        usable.setdefault(row.text("source"), []).append(index)
    marked = np.zeros(len(rows), bool)
    for source, indices in sorted(usable.items()):
        seed = sum(map(ord, source))
        marked[np.random.default_rng(seed).permutation(indices)[: len(indices) // 4]] = True
    return marked


def fit_single_chip(name: str, kit: Kit) -> dict[str, object]:
    """The factor of the kernels that meets the marked rows of our own runs; it is all that is free."""
    _, rows = read_rows(SINGLE_CHIP)
    rows = [row for row in rows if single_chip.framework_of(row) == name]
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for row in rows:
        job, layout = single_chip.task(row)
        cluster = cluster_of(load().chip(row.text("chip")), 1)
        times = step_times(job, cluster, Space.of(layout), bare(name))
        kernels_s = row.positive("step_ms") * 1e-3 - float(times.optimizer_s[0])
        ratios[row.fitted_on(STEP)].append(kernels_s / float(times.compute_s[0]))
    factor = float(np.exp(np.mean(np.log(ratios[True]))))
    rest = np.array(ratios[False]) / factor
    widest = float(np.exp(np.abs(np.log(rest)).max()))  # of few rows the farthest, either way
    print(
        f"{name:20s} fitted on {len(ratios[True])}, rest {len(rest)}: mean {np.abs(1 / rest - 1).mean():.3f}",
        factor,
    )
    return {
        "name": name, "title": kit.title, "fusion": kit.fusion, "flash_attention": kit.flash, "books": kit.books,
        "expert_exposed": 1.0,
        "source": {"title": "Datahall, runs on two H200s", "date": "2026-11", "kind": "derived"},
        "fitted_on": f"{len(ratios[True])} of {len(rows)} runs on one H200", "gradient_bytes": 2.0,
        "band": (round(1.0 / widest, 3), round(widest, 3)), "compute_factor": float(f"{factor:.4g}"),
        **kit.fixed, **kit.options,
    }  # fmt: skip


KINDS = ("band", "expert_band", "adapter_band", "kin_band")
FEW = 10  # rows: with fewer, the band of all frameworks together


def bands(rows: list[Row], sets: dict[str, Framework]) -> dict[str, dict[str, tuple[float, float]]]:
    """P10 and P90 of measured over predicted steps by framework and kind of job, of rows that no other constant was fitted on."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        try:
            run = ledger.understood(row)
            measured_s = ledger.measured(run.row, run.job, run.cluster, run.source)
            kit = sets[run.framework]
            named = msgspec.structs.replace(kit, **{kind: (place, place) for place, kind in enumerate(KINDS)})
            kind = KINDS[int(step_band(run.job, run.cluster, named)[0])]
            predicted_s = float(step_times(run.job, run.cluster, Space.of(run.layout), kit).step_s[0])
        except (RowError, DatahallError):
            continue
        if not row.fitted_on(STEP):
            ratios.setdefault((run.framework, kind), []).append(measured_s / predicted_s)
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name in sets:
        found[name] = {}
        for kind in KINDS:
            own = ratios.get((name, kind), [])
            pooled = [one for (_, which), some in ratios.items() if which == kind for one in some]
            low, high = np.quantile(own if len(own) >= FEW else pooled, [0.1, 0.9])
            found[name][kind] = (round(float(low), 3), round(float(high), 3))
    return found


def main(path: Path, chosen: Sequence[str]) -> None:
    """Fit each framework on a quarter of its sources' rows."""
    _, rows = read_rows(path)
    draw = quarter_of_each_source(rows)
    _, shipped = read_rows(SHIPPED)
    fitted = np.array([row.fitted_on(STEP) for row in shipped]) if chosen else np.zeros(len(rows), bool)
    sets = msgspec.json.decode(OUT.read_bytes()) if chosen else {}
    for name, kit in KITS.items():
        if chosen and name not in chosen:
            continue
        if kit.like:
            sets[name] = sets[kit.like] | {"name": name, "title": kit.title} | kit.options
            sets[name]["fitted_on"] = f"the constants of {kit.like}"
            if kit.host_like:
                sets[name]["host_s"] = sets[kit.host_like]["host_s"]
                sets[name]["fitted_on"] += f", the host of {kit.host_like}"
            continue
        if name in SINGLE_CHIP_KITS:
            sets[name] = fit_single_chip(name, kit)
            continue
        tables: dict[bool, list[dict[str, float]]] = {True: [], False: []}
        used: list[str] = []
        for index, row in enumerate(rows):
            source = row.text("source")
            try:
                run = ledger.understood(row)
                if run.framework != name or "lora" in source.lower():
                    continue
                found = parts(row, bare(name))
            except (RowError, DatahallError):
                continue
            stated = bool(row.text("precision")) or name != "nemo"
            dense = run.job.model.moe is None or name == run.source.moe_framework
            use = (
                kit.picks(row, bool(draw[index]))
                and stated
                and dense
                and not any(word in source for word in NEVER)
            )
            fitted[index] = use
            if use and source not in used:
                used.append(source)
            tables[use].append(found)
        train, rest = pd.DataFrame(tables[True]), pd.DataFrame(tables[False])
        free = [key for key in START if key not in kit.fixed]
        found = fit(
            START | kit.start | kit.fixed,
            lambda c, t=train: predicted(t, c),
            train.measured.to_numpy(),
            free=free,
            pull=0.03,
        )
        ratio = rest.measured / predicted(rest, found)
        error = np.abs(1 / ratio - 1) * 100
        print(f"{name:20s} fitted on {len(train)}, rest {len(rest)}: mean {error.mean():.1f} median {error.median():.1f}",
              {key: round(value, 6) for key, value in found.items()})  # fmt: skip
        sets[name] = {
            "name": name, "title": kit.title, "fusion": kit.fusion, "flash_attention": kit.flash, "books": kit.books,
            "expert_exposed": 1.0,
            "source": {"title": "Datahall, fitted on public training runs", "date": "2026-11", "kind": "derived"},
            "fitted_on": f"{len(train)} rows, at most a quarter of each of " + ", ".join(used), "gradient_bytes": 2.0,
            **{key: float(f"{value:.4g}") for key, value in found.items()},
            **kit.options,
        }  # fmt: skip
    write_sets(OUT, sets)
    SHIPPED.parent.mkdir(parents=True, exist_ok=True)
    marks = [
        [STEP] * bool(use) + [MEMORY] * row.fitted_on(MEMORY)
        for use, row in zip(fitted, shipped, strict=True)
    ]
    pd.read_csv(path).assign(fitted=["; ".join(one) or "0" for one in marks]).to_csv(SHIPPED, index=False)
    _, marked = read_rows(SHIPPED)
    own = {name: sets[name]["band"] for name in SINGLE_CHIP_KITS}
    for name, found in bands(marked, msgspec.convert(sets, dict[str, Framework], strict=False)).items():
        sets[name] |= found
    for name, band in own.items():
        sets[name]["band"] = band
    write_sets(OUT, sets)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
