"""How far runs of the same configuration lie apart: what no prediction can be better than."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datahall.validation.measurement import Row
from datahall.validation.scorecard import Noise

SAME = (
    "source",
    "hardware",
    "n_gpus",
    "tp",
    "pp",
    "dp",
    "model",
    "precision",
    "engine",
    "workload",
    "concurrency_or_qps",
)
COLUMNS = {"TPOT": "tpot_ms", "TTFT": "ttft_ms", "throughput": "throughput_tok_s_total"}


def repeats(rows: Sequence[Row]) -> dict[str, Noise]:
    """The spread of repeated runs by metric; the same figures exported twice count as one run."""
    found: dict[str, Noise] = {}
    same = [(*(row.text(name) for name in SAME), *row.text("notes").split(";")[:2]) for row in rows]
    for metric, column in COLUMNS.items():
        groups: dict[tuple[str, ...], set[float]] = {}
        for row, key in zip(rows, same, strict=True):
            if text := row.text(column):
                groups.setdefault(key, set()).add(round(float(text), 2))
        several = [np.array(sorted(group)) for group in groups.values() if len(group) > 1]
        if several:
            apart = np.concatenate([np.abs(np.median(group) / group - 1.0) * 100.0 for group in several])
            found[metric] = Noise(
                groups=len(several), rows=int(apart.size), mean_ape=float(apart.mean()),
                median_ape=float(np.median(apart)), p90_ape=float(np.quantile(apart, 0.9)),
            )  # fmt: skip
    return found
