"""Rows of MLPerf Storage: what is read from them, and what is predicted.

Two figures of a row, both shares of a chip's time and judged in points:

    utilisation                   from the throughput of the same run and what its chips need.  Throughput is an input:
                                  what is predicted is how the two hang together, the fill of the loader (see
                                  datapath/benchmark.py)
    utilisation from data sheets  from the number of chips and the data sheet of the drive or appliance alone, where
                                  the catalogue has it: nothing that was measured is an input
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, inf

import msgspec

from datahall.catalog import load
from datahall.catalog.entries.stored.dataset import Dataset
from datahall.catalog.entries.stored.storage import Storage
from datahall.catalog.index import folded
from datahall.counted import counted
from datahall.datapath.benchmark import (
    LEAST_STEPS,
    Constants,
    constants,
    delivered_fraction,
    stated_utilisation,
)
from datahall.datapath.pipeline import Pipeline, Store
from datahall.datapath.supply import Supply, supply
from datahall.errors import DatahallError
from datahall.scenario.sections.operations.datapath import USUAL_CORES, USUAL_NIC_BYTES_PER_S, USUAL_PREFETCH
from datahall.validation.measurement import Format, Outcome, Row, RowError, unless_fitted
from datahall.validation.scorecard import Prediction, Unsupported

STATED, FROM_SHEETS = "utilisation", "utilisation from data sheets"
NOTES = (
    f"{STATED}: the throughput of the same run is an input, so this tests how the two hang together (what chips need, "
    "and the fill of the loader that one figure counts and the other leaves out), not storage",
    f"{FROM_SHEETS}: from the number of chips and a data sheet alone, where the catalogue has the drive or appliance",
)
CHIPS = {"h100": "h100-sxm", "a100": "a100-sxm-80gb", "v100": "v100-sxm2-32gb"}
RESULT = "result"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One result, as far as it can be read."""

    dataset: Dataset
    step_s: float
    num_chips: int
    num_hosts: int
    samples_per_s: float
    measured_fraction: float
    num_readers: float | None  # None: the row does not say
    num_steps: float | None

    @property
    def delivered(self) -> float:
        """What was delivered of what chips need."""
        return delivered_fraction(self.samples_per_s, self.num_chips, self.dataset.batch, self.step_s)


def predict(rows: Sequence[Row]) -> Iterator[Outcome]:
    """Predict rows; what is no result of a run is counted with that reason."""
    for row in rows:
        try:
            yield from _predictions(row, read_run(row), constants())
        except (RowError, DatahallError) as problem:
            reason = problem.message if isinstance(problem, DatahallError) else str(problem)
            yield Unsupported(reason, row.where)


def read_run(row: Row) -> Run:
    """Read a result; raises where it is none, or names what is not modelled."""
    if row.text("row_kind", RESULT) != RESULT:
        raise RowError(f"a {row.text('row_kind').replace('_', ' ')} states no utilisation")
    dataset, chip = _dataset(row)
    measured = row.positive("au_mean_pct") / 100.0
    if measured > 1.0:
        raise RowError('column "au_mean_pct" is above 100')
    run = Run(
        dataset=dataset,
        step_s=dataset.step_s[chip],
        num_chips=int(row.count("n_accelerators")),
        num_hosts=int(row.count("n_hosts")) if row.text("n_hosts") else 1,
        samples_per_s=row.positive("throughput_samples_s"),
        measured_fraction=measured,
        num_readers=row.count("readers") if row.text("readers") else None,
        num_steps=row.count("steps") if row.text("steps") else None,
    )
    if run.delivered > MOST_DELIVERED:
        raise RowError("more samples than the emulated chips can take")
    return run


MOST_DELIVERED = 1.02  # of what chips need; beyond it a figure is not of this run


def _dataset(row: Row) -> tuple[Dataset, str]:
    """The data set whose step was emulated on the chip; rounds differ in the batch."""
    workload, chip = row.text("workload"), CHIPS.get(row.text("accelerator_emulated"), "")
    if not chip:
        raise RowError(f'accelerator "{row.text("accelerator_emulated")}" is not modelled')
    for name in (workload, f"{workload}-{row.text('accelerator_emulated')}"):
        if load().knows("dataset", name) and chip in load().dataset(name).step_s:
            return load().dataset(name), chip
    raise RowError(f'workload "{workload}" on {chip} is not modelled')


def _predictions(row: Row, run: Run, fitted: Constants) -> Iterable[Outcome]:
    stated = predicted_utilisation(run, fitted.num_usual_readers)
    yield unless_fitted(
        row, _prediction(row, run, STATED, stated, fitted.band(run.dataset.loader, run.num_readers))
    )
    storage = named_in(row.text("system"))
    if storage is not None:
        sheet = sheet_supply(run, storage, fitted.num_usual_readers).utilisation_fraction
        yield unless_fitted(row, _prediction(row, run, FROM_SHEETS, sheet, fitted.bands[FROM_SHEETS]))


def predicted_utilisation(run: Run, num_usual_readers: float) -> float:
    """AU from the throughput of the run."""
    readers = run.num_readers or num_usual_readers
    return stated_utilisation(run.delivered, run.num_steps or LEAST_STEPS, readers, run.dataset.loader)


def named_in(system: str) -> Storage | None:
    """The drive or appliance of the catalogue whose name stands in that of a system.

    >>> named_in("Micron_9400_Gen4_Performance_NVMe/unet3d/h100").name, named_in("weka-1-client")
    ('nvme', None)
    """
    words = folded(system).replace("-", " ")
    for storage in load().storages():
        names = [alias for alias in storage.aliases if any(sign.isdigit() for sign in alias)]
        if any(f" {alias.replace('-', ' ')} " in f" {words} " for alias in names):
            return storage
    return None


def sheet_supply(run: Run, storage: Storage, num_usual_readers: float) -> Supply:
    """What one drive or appliance delivers to so many chips by its data sheet, whatever was measured."""
    one = run.dataset
    readers = run.num_readers or (num_usual_readers if one.loader == "whole batches" else one.num_readers)
    job = Pipeline(
        num_chips=run.num_chips,
        num_chips_per_host=ceil(run.num_chips / run.num_hosts),
        step_s=run.step_s,
        batch=one.batch,
        sample_bytes=one.sample_bytes,
        spread_bytes=one.spread_bytes,
        dataset_bytes=inf,
        num_samples_per_file=one.num_samples_per_file,
        format="shards" if one.num_samples_per_file > 1 else "files",
        shuffle="buffer" if one.num_samples_per_file > 1 else "random",
        num_readers=int(readers),
        num_prefetch=USUAL_PREFETCH,
        num_cores=USUAL_CORES,
        cache_stream_bytes_per_s=load().storage("page-cache").stream_bytes_per_s,
        nic_bytes_per_s=USUAL_NIC_BYTES_PER_S,
    )
    return supply(job, Store(storage=storage, num_units=1))


def _prediction(row: Row, run: Run, metric: str, predicted: float, band: tuple[float, float]) -> Prediction:
    low, high = (min(1.0, max(0.0, predicted + points / 100.0)) for points in band)
    return Prediction(
        source=f"{row.text('source')} {row.text('round')}".strip(),
        hardware=row.text("accelerator_emulated"),
        model=row.text("workload"),
        label=f"{row.text('submitter')} {row.text('workload')}, {counted(run.num_chips, 'chip')}",
        where=row.where,
        measured=run.measured_fraction,
        predicted=predicted,
        low=low,
        high=high,
        unit="fraction",
        metric=metric,
        in_points=True,
    )


FORMATS = (
    Format(
        "results of MLPerf Storage",
        frozenset(
            {"workload", "accelerator_emulated", "n_accelerators", "au_mean_pct", "throughput_samples_s"}
        ),
        predict,
    ),
)
