"""Fit what frameworks add to the physics and write src/datahall/training/data/frameworks.toml.

    python calibration/fit_training.py TRAINING_CSV

At most a quarter of the rows of a source is fitted on, and none of vTrain, MLPerf 405B or the mixtures of experts; the
fitted rows are marked in the shipped copy of the file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import tomli_w
from search import fit

from datahall.breakdown import Source
from datahall.errors import DatahallError
from datahall.training.cluster import cluster_of
from datahall.training.framework import WRITTEN_FOR, Framework
from datahall.training.layout import Space
from datahall.training.step import HIDING_SHARPNESS, step_times
from datahall.validation import training as ledger
from datahall.validation.measurement import Row, RowError, read_rows

ROOT = Path(__file__).parent.parent / "src/datahall"
SHIPPED = ROOT / "validation/data/training/training.csv"
NEVER = ("vTrain", "llama31_405b", "Megatron-Bridge", "SimuMax")
START = {
    "compute_factor": 1.15,
    "attention_factor": 1.0,
    "later_attention_factor": 1.0,
    "tensor_exposed": 0.7,
    "pipeline_exposed": 0.5,
    "data_exposed": 0.4,
    "fixed_s": 0.06,
    "jitter": 0.002,
}
KITS = {
    "megatron-2022": (
        "Megatron-LM of 2021 and 2022",
        "lean",
        False,
        {"tensor_exposed": 1.0, "attention_factor": 1.0, "later_attention_factor": 1.0},
    ),
    "megatron-deepspeed": (
        "Megatron-DeepSpeed of 2021 and 2022",
        "lean",
        False,
        {"tensor_exposed": 1.0, "attention_factor": 1.0, "later_attention_factor": 1.0},
    ),
    "nemo": (
        "NeMo and Megatron-Core from 2023",
        "fused",
        True,
        {"attention_factor": 1.0, "later_attention_factor": 1.0},
    ),
    "fsdp": ("PyTorch FSDP (llm-foundry, torchtitan)", "lean", True, {}),
}


def bare(name: str) -> Framework:
    """A framework that hides nothing and costs nothing."""
    title, fusion, flash, _ = KITS[name]
    return Framework(
        name=name, title=title, source=ledger_source(), fitted_on="", fusion=fusion, flash_attention=flash,
        compute_factor=1.0, attention_factor=1.0, tensor_exposed=1.0, expert_exposed=1.0, pipeline_exposed=1.0, data_exposed=1.0,
        gradient_bytes=2.0, optimizer_bytes=30.0, fixed_s=0.0, jitter=0.0,
    )  # fmt: skip


def ledger_source() -> Source:
    """Where the constants are from."""
    return Source("Datahall, fitted on public training runs", "2026-11", "derived")


def parts(row: Row, kit: Framework) -> dict[str, float]:
    """The pieces of one row's step with nothing hidden."""
    source = next(one for one in ledger.SOURCES if one.words in row.text("source"))
    chip, model = ledger.hardware(row), ledger.described(row)
    cluster = cluster_of(
        chip, int(row.positive("n_gpus")), nic_bytes_per_s=source.nic_bytes_per_s, fabric=source.fabric
    )
    layout, job = ledger.laid_out(row, source, model, cluster)
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
    )
    found = {name: float(getattr(times, name)[0]) for name in names}
    filled = float(times.bubble_s[0]) / float(times.slot_s[0])  # slots that filling and draining takes
    slots = found["num_micro"] + filled
    found["attention_s"] = float(doubled.compute_s[0]) - found["compute_s"]
    return found | {
        "slots": slots,
        "later": cluster.chip.family not in WRITTEN_FOR,
        "chips": float(cluster.num_chips),
        "measured": ledger.measured(row, job, cluster),
    }


def predicted(table: pd.DataFrame, c: dict[str, float]) -> np.ndarray:
    """The step from its pieces; the same sum as training.step."""
    attention = c["attention_factor"] * np.where(table.later, c["later_attention_factor"], 1.0)
    kernels = table.compute_s + table.attention_s * (attention - 1.0)
    stage = kernels * c["compute_factor"] + table.tensor_s * c["tensor_exposed"] + table.expert_s
    high, low = np.maximum(stage, table.gathered_s), np.minimum(stage, table.gathered_s)
    slot = high * (1 + (low / high) ** HIDING_SHARPNESS) ** (1 / HIDING_SHARPNESS)
    slot = slot + table.pipeline_s * c["pipeline_exposed"]
    step = slot * table.slots + table.data_s * c["data_exposed"] + table.optimizer_s + c["fixed_s"]
    return (step * (1 + c["jitter"] * np.log(table.chips))).to_numpy()


def quarter_of_each_source(rows: list[Row]) -> np.ndarray:
    """Mark a quarter of each source's usable rows, rounded down."""
    usable: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        try:
            ledger.predict(row)
        except (RowError, DatahallError):
            continue
        usable.setdefault(row.text("source"), []).append(index)
    marked = np.zeros(len(rows), bool)
    for source, indices in sorted(usable.items()):
        seed = sum(map(ord, source))
        marked[np.random.default_rng(seed).permutation(indices)[: len(indices) // 4]] = True
    return marked


def main(path: Path) -> None:
    """Fit each framework on a quarter of its sources' rows."""
    _, rows = read_rows(path)
    draw = quarter_of_each_source(rows)
    fitted = np.zeros(len(rows), bool)
    sets = {}
    for name, (title, fusion, flash, fixed) in KITS.items():
        words = [one.words for one in ledger.SOURCES if one.framework == name]
        tables: dict[bool, list[dict[str, float]]] = {True: [], False: []}
        used: list[str] = []
        for index, row in enumerate(rows):
            source = row.text("source")
            if not any(word in source for word in words) or "lora" in source.lower():
                continue
            try:
                found = parts(row, bare(name))
            except (RowError, DatahallError):
                continue
            stated = bool(row.text("precision")) or name != "nemo"
            use = bool(draw[index]) and stated and not any(word in source for word in NEVER)
            fitted[index] = use
            if use and source not in used:
                used.append(source)
            tables[use].append(found)
        train, rest = pd.DataFrame(tables[True]), pd.DataFrame(tables[False])
        free = [key for key in START if key not in fixed]
        found = fit(
            START | fixed, lambda c, t=train: predicted(t, c), train.measured.to_numpy(), free=free, pull=0.03
        )
        ratio = rest.measured / predicted(rest, found)
        error = np.abs(1 / ratio - 1) * 100
        band = (round(float(ratio.quantile(0.1)), 3), round(float(ratio.quantile(0.9)), 3))
        print(f"{name:20s} fitted on {len(train)}, rest {len(rest)}: mean {error.mean():.1f} median {error.median():.1f}",
              {key: round(value, 4) for key, value in found.items()}, band)  # fmt: skip
        sets[name] = {
            "name": name, "title": title, "fusion": fusion, "flash_attention": flash, "expert_exposed": 0.7,
            "source": {"title": "Datahall, fitted on public training runs", "date": "2026-11", "kind": "derived"},
            "fitted_on": f"{len(train)} rows, at most a quarter of each of " + ", ".join(used), "gradient_bytes": 2.0,
            "optimizer_bytes": 30.0, "band": band, **{key: float(f"{value:.4g}") for key, value in found.items()},
        }  # fmt: skip
    (ROOT / "training/data").mkdir(exist_ok=True)
    text = "# Written by calibration/fit_training.py.\n\n" + tomli_w.dumps(sets)
    (ROOT / "training/data/frameworks.toml").write_text(text, encoding="utf-8")
    SHIPPED.parent.mkdir(parents=True, exist_ok=True)
    pd.read_csv(path).assign(fitted=fitted.astype(int)).to_csv(SHIPPED, index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
