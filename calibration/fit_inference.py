"""Fit what an engine's host costs on a quarter of the public serving rows, and mark those rows.

    PYTHONPATH=src python calibration/fit_inference.py [ENGINE …] [--mark | --bands]

For each engine: host_step_s and host_sequence_s from TPOT, then first_token_s from TTFT.  Prints the values for
inference/data/engines.toml.  With --mark the column `fitted` of the shipped files is rewritten; with --bands the bands
of measured over predicted figures on the marked rows are printed, for validation/inference/bands.py.  Rows are drawn by
a hash of where they came from, so that the draw does not depend on their order.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from zlib import crc32

import msgspec
import numpy as np

from datahall.errors import DatahallError
from datahall.inference.engine.replica import Replica
from datahall.validation.inference.energy import read_energy
from datahall.validation.inference.predict import replayed, runs_of
from datahall.validation.inference.replay import Priced, Prices, replay
from datahall.validation.inference.run import THROUGHPUT, TPOT, TTFT, Run
from datahall.validation.inference.sources import read_run
from datahall.validation.measurement import Row, RowError, read_rows
from datahall.validation.scorecard import Unsupported

DATA = Path(__file__).parents[1] / "src/datahall/validation/data/inference"
SHARE = 5  # one row in so many is fitted: under a quarter of every source
ENOUGH = 15  # rows of dense models; an engine with fewer is fitted on all
BAND = (
    0.08,
    0.92,
)  # of the marked rows: a little wider than P10–P90, since constants were fitted on some of them
RATED = {"vllm-0-11": THROUGHPUT}  # engines whose rows state a rate and no TPOT
MOST = 120  # rows of an engine that the search replays
STEPS = np.array([0.0, 0.2, 0.4, 0.7, 1.0, 1.4, 1.8, 2.4, 3.2]) * 1e-3
SEQUENCES = np.array([0.0, 5, 10, 20, 30, 45, 60]) * 1e-6


def drawn(row: Row) -> bool:
    """Whether a row is one of the quarter."""
    name = row.text("path_or_url") or row.text("path") + row.text("system") + row.text("note") + row.text(
        "batch_or_concurrency"
    )
    return (
        crc32(
            (name + row.text("workload") + row.text("model") + row.text("tp") + row.text("hardware")).encode()
        )
        % SHARE
        == 0
    )


class Trial(Prices):
    """Prices with another host."""

    def __init__(self, known: Prices, host: tuple[float, float]) -> None:
        super().__init__()
        self._source, self._host = known, host

    def of(self, replica: Replica) -> Priced:
        found = self._source.of(replica)
        table = found.price.table._replace(host=np.array(self._host))
        return msgspec.structs.replace(found, price=msgspec.structs.replace(found.price, table=table))


def hostless(run: Run) -> Run:
    """The run on an engine whose host costs nothing."""

    def bare(replica: Replica) -> Replica:
        engine = msgspec.structs.replace(
            replica.engine, host_step_s=0.0, host_sequence_s=0.0, first_token_s=0.0
        )
        return msgspec.structs.replace(replica, engine=engine)

    return msgspec.structs.replace(run, replica=bare(run.replica))


def figures(runs: list[Run], prices: Prices, metric: str) -> np.ndarray:
    return np.array([replay(run, prices).predicted[metric] / run.measured[metric] for run in runs])


def loss(ratio: np.ndarray) -> float:
    return float(np.mean(np.minimum(np.abs(np.log(ratio)), 1.0)))


def fit(engine: str, runs: list[Run]) -> None:
    metric = RATED.get(engine, TPOT)
    chosen = [
        run
        for run in runs
        if run.replica.engine.name == engine and run.traffic.kind == "closed" and metric in run.measured
    ]
    chosen = [run for run in chosen if run.pools is None]
    # experts' kernels are less certain than a host
    dense = [run for run in chosen if run.replica.model.moe is None]
    if len(dense) >= ENOUGH:
        chosen = dense
    chosen = chosen[:: max(1, len(chosen) // MOST)]
    chosen.sort(
        key=lambda run: (run.replica.model.name, run.replica.chip.name, run.replica.tp, run.replica.ep)
    )
    known = Prices(most=1000)
    usable = []
    for run in map(hostless, chosen):
        try:
            replay(run, known)
            usable.append(run)
        except DatahallError:
            continue
    best = (loss(figures(usable, known, metric)), 0.0, 0.0)
    print(f"{engine}: {len(usable)} rows, without a host {best[0]:.4f}")
    step, sequence = 0.0, 0.0
    for _ in range(2):
        scores = [(loss(figures(usable, Trial(known, (one, sequence)), metric)), one) for one in STEPS]
        step = min(scores)[1]
        scores = [(loss(figures(usable, Trial(known, (step, one)), metric)), one) for one in SEQUENCES]
        sequence = min(scores)[1]
        print(f"  host_step_s {step:.2e} host_sequence_s {sequence:.1e}: {min(scores)[0]:.4f}", flush=True)
    trial = Trial(known, (step, sequence))
    timed = [run for run in usable if TTFT in run.measured]
    if not timed:
        return
    found = np.array([replay(run, trial).predicted[TTFT] for run in timed])
    was = np.array([run.measured[TTFT] for run in timed])
    grid = np.linspace(0.0, 0.12, 61)
    first = grid[np.argmin([loss((found + one) / was) for one in grid])]
    print(
        f"  first_token_s {first:.3f}: TTFT {loss((found + first) / was):.4f} (without {loss(found / was):.4f})"
    )
    ratio = figures(usable, trial, metric)
    low, high = np.quantile(1 / ratio, [0.1, 0.9])
    print(f"  {metric} MAPE {np.mean(np.abs(ratio - 1)):.3f} measured/predicted P10 {low:.2f} P90 {high:.2f}")


def bands() -> None:
    """Where the marked rows lie, by engine and metric; all models, since the bands are used for all."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for path in sorted(DATA.glob("*.csv")):
        _, rows = read_rows(path)
        read = read_energy if path.stem == "ml_energy" else read_run
        runs = [
            one for one in runs_of([row for row in rows if row.fitted_on()], read) if isinstance(one, Run)
        ]
        for run, found in zip(runs, replayed(runs), strict=True):
            if isinstance(found, Unsupported):
                continue
            for metric, was in run.measured.items():
                key = (run.replica.engine.name, metric)
                ratios.setdefault(key, []).append(was / found.predicted[metric])
    for (engine, metric), values in sorted(ratios.items()):
        low, high = np.nanquantile(values, BAND)
        print(f"{engine} {metric}: ({low:.2f}, {high:.2f}) of {len(values)} rows")


def mark() -> None:
    for path in sorted(DATA.glob("*.csv")):
        columns, rows = read_rows(path)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            for row in rows:
                cells = {name: row.cells.get(name, "") for name in columns}
                writer.writerow(cells | {"fitted": "1" if drawn(row) and _read(row, path) else ""})


def _read(row: Row, path: Path) -> Run | None:
    try:
        return read_energy(row) if path.stem == "ml_energy" else read_run(row)
    except (RowError, DatahallError):
        return None


def main() -> None:
    if "--mark" in sys.argv:
        mark()
        return
    if "--bands" in sys.argv:
        bands()
        return
    runs = []
    for path in sorted(DATA.glob("*.csv")):
        _, rows = read_rows(path)
        runs += [run for row in rows if drawn(row) and (run := _read(row, path))]
    for name in [one for one in sys.argv[1:] if not one.startswith("-")] or [
        "vllm",
        "vllm-0-11",
        "sglang",
        "trtllm",
    ]:
        fit(name, runs)


if __name__ == "__main__":
    main()
