"""Peaks of memory of fine-tuning by adapters, from tables and logs of those who publish tools for it.

A row names model, adapters, batch, sequence and what is recomputed and sharded; how a tool keeps tensors is read from
its code of the time and stands in `BOOKS`.  No row was fitted on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from datahall.catalog import load
from datahall.errors import DatahallError
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.memory.peak import peak_memory
from datahall.training.step.step import Job
from datahall.units import GIB
from datahall.validation.measurement import Format, Outcome, Row, RowError, unless_fitted
from datahall.validation.scorecard import Prediction, Unsupported
from datahall.validation.training.rows import MEMORY, MEMORY_BAND
from datahall.workload.memory.recompute import RECOMPUTES
from datahall.workload.targets import TARGETS

UNITS = {"GB": 1e9, "GiB": GIB}
Word = TypeVar("Word", bound=str)
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
    """The peak of memory that a row should have had."""
    if row.text("doubt"):
        raise RowError(row.text("doubt"))
    job, layout = task(row)
    chip = load().chip(row.text("chip"))
    memory = peak_memory(job, chip, Space.of(layout), BOOKS[row.text("books")])
    predicted = float(getattr(memory, f"{row.text('measure')}_bytes")[0])
    unit_bytes = UNITS.get(row.text("unit"))
    if unit_bytes is None:
        raise RowError(f'unit "{row.text("unit")}" is none of {", ".join(UNITS)}')
    assert job.adapters is not None
    words = f"{row.text('model')}, {job.adapters.words}, {layout.words}, {job.seq} tokens"
    found = Prediction(
        source=row.text("source"),
        hardware=chip.name,
        model=row.text("model"),
        label=words,
        where=row.where,
        measured=row.positive("peak") * unit_bytes,
        predicted=predicted,
        low=predicted * MEMORY_BAND[0],
        high=predicted * MEMORY_BAND[1],
        unit="bytes",
        metric=MEMORY,
    )
    yield unless_fitted(row, found)


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
