"""Fit what runs of MLPerf Storage do not say and write src/datahall/datapath/data/benchmark.json.

    python calibration/fit_storage.py

One constant: how many readers a chip has where readers load whole batches and a row does not say.  It is fitted on every
fourth such result of v1.0, as if those did not say either, and the rows are marked in the shipped file.  Bands are the spread of
errors over all results, by what the row says; that of what comes through is over runs whose chips need nearly all that data
sheets let through, for others never asked for it.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from datahall.validation.measurement import Row, RowError, read_rows
from datahall.validation.storage.rows import (
    FROM_SHEETS,
    STATED,
    Run,
    named_in,
    predicted_utilisation,
    read_run,
    sheet_supply,
)

ROOT = Path(__file__).parent.parent / "src/datahall"
OUT = ROOT / "datapath/data/benchmark.json"
SHIPPED = ROOT / "validation/data/storage/mlperf_storage.csv"
EVERY = 4
TRIED = range(1, 65)
ASKED = 0.9  # of what comes through, that chips must need to say how much it is


def results(rows: Sequence[Row]) -> list[tuple[Row, Run]]:
    """Rows that are results, read."""
    found = []
    for row in rows:
        try:
            found.append((row, read_run(row)))
        except RowError:
            continue
    return found


def unstated(run: Run) -> Run:
    """The same run, as if its row said neither readers nor steps."""
    return msgspec.structs.replace(run, num_readers=None, num_steps=None)


def points(run: Run, predicted: float) -> float:
    """Measured less predicted, in points."""
    return (run.measured_fraction - predicted) * 100.0


def band(errors: Sequence[float]) -> tuple[float, float]:
    """P10 and P90 of errors, that hold 0."""
    low, high = np.quantile(errors, (0.1, 0.9))
    return round(min(0.0, float(low)), 3), round(max(0.0, float(high)), 3)


def main() -> None:
    columns, rows = read_rows(SHIPPED)
    runs = results(rows)
    whole = [(row, run) for row, run in runs if run.dataset.loader == "whole batches"]
    fitted = [(row, run) for row, run in whole if row.text("round") == "v1.0"][::EVERY]

    def error(readers: int) -> float:
        return float(
            np.mean([abs(points(run, predicted_utilisation(unstated(run), readers))) for _, run in fitted])
        )

    usual = min(TRIED, key=error)
    bands = {
        "one batch": band([points(run, predicted_utilisation(run, usual)) for _, run in runs if run.dataset.loader == "one batch"]),
        "whole batches": band([points(run, predicted_utilisation(run, usual)) for _, run in whole if run.num_readers]),
        "whole batches, readers not stated": band([points(run, predicted_utilisation(unstated(run), usual)) for _, run in whole]),
        FROM_SHEETS: band([
            points(run, sheet_supply(run, storage, usual).utilisation_fraction)
            for row, run in runs
            if (storage := named_in(row.text("system"))) is not None
        ]),
    }  # fmt: skip
    achieved = [
        run.measured_fraction * found.needed_bytes_per_s / found.available_bytes_per_s
        for row, run in runs
        if (storage := named_in(row.text("system"))) is not None
        and (found := sheet_supply(run, storage, usual)).needed_bytes_per_s
        >= ASKED * found.available_bytes_per_s
    ]
    low, high = np.quantile(achieved, (0.1, 0.9))
    content = {
        "num_usual_readers": usual,
        "bands": bands,
        "available_ratio": (round(float(low), 3), round(float(high), 3)),
        "num_available": len(achieved),
    }
    OUT.write_text(msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n")
    mark(columns, rows, {row.where for row, _ in fitted})
    print(
        f"{usual} readers, from {len(fitted)} of {len(whole)} rows: {error(usual):.2f} points; bands {bands}"
    )


def mark(columns: Sequence[str], rows: Sequence[Row], fitted: set[str]) -> None:
    """Write the shipped file again with the rows marked that were fitted on."""
    with SHIPPED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({**row.cells, "fitted": STATED if row.where in fitted else ""})


if __name__ == "__main__":
    main()
