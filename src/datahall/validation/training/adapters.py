"""Peaks of memory and steps of fine-tuning by adapters, from tables and logs of those who publish tools for it.

A row names model, adapters, batch, sequence and what is recomputed and sharded; how a tool keeps tensors is read from
its code of the time and stands in `BOOKS`.  No row was fitted on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from datahall.catalog import load
from datahall.cluster.cluster import cluster_of
from datahall.errors import DatahallError
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.memory.peak import peak_memory
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_band, step_times
from datahall.units import GIB
from datahall.validation.measurement import Format, Outcome, Row, RowError, unless_fitted
from datahall.validation.scorecard import Prediction, Unsupported
from datahall.validation.training.rows import MEMORY, STEP
from datahall.workload.adapters.targets import TARGETS
from datahall.workload.memory.recompute import RECOMPUTES

UNITS = {"GB": 1e9, "GiB": GIB}
Word = TypeVar("Word", bound=str)
ADAPTER_BAND = (0.968, 1.23)  # P10 and P90 of measured over predicted peaks of these rows
QUANTISED = {"": (False, True), "nf4": (True, False), "nf4-dq": (True, True)}  # whether, and whether doubly


def predict_rows(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Predict the peak of each row; what cannot be what it says is counted with its reason."""
    for row in rows:
        try:
            yield from predict(row)
        except (RowError, DatahallError) as problem:
            reason = problem.message if isinstance(problem, DatahallError) else str(problem)
            yield Unsupported(reason, row.where)


def predict(row: Row) -> Iterator[Outcome]:
    """The peak of memory that a row should have had, or the step where it states that."""
    if row.text("doubt"):
        raise RowError(row.text("doubt"))
    job, layout = task(row)
    chip, space = load().chip(row.text("chip")), Space.of(layout)
    if row.text("step_s"):
        kit = framework(row.text("framework"))
        cluster = cluster_of(chip, layout.dp)
        predicted = float(step_times(job, cluster, space, kit).step_s[0])
        measured, band = row.positive("step_s"), step_band(job, cluster, kit)
        yield unless_fitted(row, _prediction(row, job, layout, STEP, (measured, predicted), band))
    else:
        memory = peak_memory(job, chip, space, BOOKS[row.text("books")])
        predicted = float(getattr(memory, f"{row.text('measure')}_bytes")[0])
        measured = row.positive("peak") * UNITS[_word(row, "unit", tuple(UNITS))]
        yield unless_fitted(row, _prediction(row, job, layout, MEMORY, (measured, predicted), ADAPTER_BAND))


def _prediction(
    row: Row, job: Job, layout: Layout, metric: str, figures: tuple[float, float], band: tuple[float, float]
) -> Prediction:
    """What was measured and what is predicted of a row."""
    measured, predicted = figures
    assert job.adapters is not None
    words = f"{row.text('model')}, {job.adapters.words}, {layout.words}, {job.seq} tokens"
    return Prediction(
        source=row.text("source"),
        hardware=load().chip(row.text("chip")).name,
        model=row.text("model"),
        label=words,
        where=row.where,
        measured=measured,
        predicted=predicted,
        low=predicted * band[0],
        high=predicted * band[1],
        unit="s" if metric == STEP else "bytes",
        metric=metric,
    )


def task(row: Row) -> tuple[Job, Layout]:
    """What a row trained, and how."""
    replicas, batch = int(row.count("n_gpus")), int(row.count("micro_batch"))
    quantised, doubly = QUANTISED[_word(row, "quantised", tuple(QUANTISED))]
    adapters = Adapters(
        rank=int(row.count("rank")),
        targets=_word(row, "targets", TARGETS),
        quantised=quantised,
        doubly=doubly,
    )
    job = Job(
        model=load().model(row.text("model")),
        seq=int(row.count("seq")),
        global_batch=batch * replicas,
        adapters=adapters,
    )
    layout = Layout(
        dp=replicas,
        zero=int(row.number("zero")),
        micro_batch=batch,
        recompute=_word(row, "recompute", RECOMPUTES),
        offload=tuple(row.text("offload").split()),
        sequence_parallel=False,
    )
    return job, layout


def _word(row: Row, column: str, words: tuple[Word, ...]) -> Word:
    """One of some words; raises `RowError` at any other."""
    text = row.text(column)
    found = next((word for word in words if word == text), None)
    if found is None:
        raise RowError(f'{column} "{text}" is none of {", ".join(words)}')
    return found


FORMAT = Format(
    "memory of adapters",
    frozenset(
        {"model", "rank", "targets", "quantised", "seq", "micro_batch", "recompute", "books", "peak", "unit"}
    ),
    predict_rows,
)
