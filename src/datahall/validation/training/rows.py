"""Public training runs predicted again: the step of each row, and its memory where the row states it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from datahall.cluster.cluster import Cluster, cluster_of
from datahall.errors import DatahallError
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import BOOKS, Bookkeeping
from datahall.training.memory.peak import peak_memory
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_band, step_times
from datahall.validation.measurement import Outcome, Row, RowError, unless_fitted
from datahall.validation.scorecard import Prediction, Unsupported
from datahall.validation.training.completion import completed
from datahall.validation.training.layouts import laid_out
from datahall.validation.training.measured import measured, measured_memory
from datahall.validation.training.models import described, hardware
from datahall.validation.training.sources import Source, source_of
from datahall.validation.training.tpu import on_tpu, slice_shape

STEP, MEMORY = "step time", "peak memory"
MEMORY_BAND = (0.945, 1.19)  # P10 and P90 of measured over predicted on the public rows


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A row as we understand it."""

    row: Row
    source: Source
    cluster: Cluster
    layout: Layout
    job: Job

    @property
    def framework(self) -> str:
        """The name of the framework's preset, as documents state it for the row or as its source has it."""
        source = self.source
        if self.row.text("framework"):
            return self.row.text("framework")
        return source.moe_framework if source.moe_framework and self.job.model.moe else source.framework

    @property
    def label(self) -> str:
        row = self.row
        return (
            f"{row.text('model_name')} on {row.text('n_gpus')} × {row.text('hardware')}, {self.layout.words}"
        )

    @property
    def choice(self) -> str:
        """The job, whatever the layout: rows with the same are ways to do the same thing."""
        job, cluster = self.job, self.cluster
        model = job.model
        shape = (model.name, model.num_layers, model.hidden, model.num_heads)
        words = (*shape, cluster.chip.name, cluster.num_chips, job.seq, job.global_batch)
        return " ".join(map(str, (*words, self.row.text("precision"))))


def predict_rows(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Predict each row; what cannot be expressed is counted with its reason."""
    for row in rows:
        try:
            yield from predict(row)
        except (RowError, DatahallError) as problem:
            reason = problem.message if isinstance(problem, DatahallError) else str(problem)
            yield Unsupported(re.sub(r"\d[\d,.]*", "N", reason), row.where)


def predict(row: Row) -> Iterator[Outcome]:
    """The step that a row should have taken, and the memory where it states that."""
    run = understood(row)
    measured_s = measured(run.row, run.job, run.cluster, run.source)
    kit = framework(run.framework)
    predicted_s = float(step_times(run.job, run.cluster, Space.of(run.layout), kit).step_s[0])
    band = step_band(run.job, run.cluster, kit)
    yield unless_fitted(row, _prediction(run, STEP, measured_s, predicted_s, band, "s"))
    measured_bytes = measured_memory(run.row)
    if not measured_bytes:
        return
    if reason := beyond_memory(run):
        yield Unsupported(reason, row.where)
    else:
        peak = _prediction(run, MEMORY, measured_bytes, predicted_memory(run), MEMORY_BAND, "bytes")
        yield unless_fitted(row, peak)


def understood(row: Row) -> Run:
    """Read a row: chips, model, layout and job."""
    source = source_of(row)
    row = completed(row, source)
    if "time-to-train only" in row.text("notes"):
        raise RowError("the row states a time to train and no step time")
    chip = hardware(row)
    num_chips = int(row.positive("n_gpus"))
    torus: tuple[int, ...] = ()
    if chip.family == "tpu":
        if not source.states_slices:
            raise RowError("layouts of TPU runs are not stated")
        torus, row = slice_shape(row, chip, num_chips), on_tpu(row, chip)
    cluster = cluster_of(
        chip, num_chips, nic_bytes_per_s=source.nic_bytes_per_s, fabric=source.fabric, torus=torus
    )
    layout, job = laid_out(row, source, described(row), cluster)
    return Run(row=row, source=source, cluster=cluster, layout=layout, job=job)


def beyond_memory(run: Run) -> str:
    """Why our memory model cannot express what a framework keeps; empty where it can."""
    if run.layout.recompute == "selective" and run.source.every_second:
        return f"memory: {run.framework}'s selective recomputation keeps every second product"
    if run.layout.pp > 1 and run.source.gathers_stages:
        return "memory: FSDP under a pipeline keeps gathered parameters and whole gradients"
    return ""


def _books(run: Run) -> Bookkeeping:
    books = run.row.text("books") or run.source.books
    return BOOKS[books] if books else run.job.books(framework(run.framework))


def predicted_memory(run: Run) -> float:
    """Peak memory of the fullest chip in the sense of the row's source [B]."""
    found = peak_memory(run.job, run.cluster.chip, Space.of(run.layout), _books(run))
    return float(getattr(found, f"{run.source.memory}_bytes")[0])


def _prediction(
    run: Run, metric: str, truth: float, predicted: float, band: tuple[float, float], unit: str
) -> Prediction:
    return Prediction(
        source=run.row.text("source"),
        hardware=run.cluster.chip.name,
        model=run.row.text("model_name"),
        label=run.label,
        where=run.row.where,
        measured=truth,
        predicted=predicted,
        low=predicted * band[0],
        high=predicted * band[1],
        unit=unit,
        metric=metric,
        choice=run.choice if metric == STEP else "",
    )
