"""Training steps on one chip: Llama-shaped models in plain PyTorch, with their time and their peak of memory.

A row names layers, width and parameters; heads are 128 wide with eight for keys and values, the vocabulary is 32,000
with a head of its own, and the width of the MLP is what the parameters leave for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from datahall.catalog import load
from datahall.catalog.entries.model import Layer, Model
from datahall.cluster.cluster import cluster_of
from datahall.errors import DatahallError
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.memory.peak import peak_memory
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_times
from datahall.validation.measurement import Format, Outcome, Row, RowError, unless_fitted
from datahall.validation.scorecard import Prediction, Unsupported
from datahall.validation.training.rows import MEMORY, MEMORY_BAND, STEP
from datahall.workload.memory.activation import Recompute

HEAD_DIM, KV_HEADS, VOCAB = 128, 8, 32_000
CHIP = "h200-sxm"  # where a file names none
SOURCE = "one chip, PyTorch"
FRESH = "fresh processes"  # in the name of a source
# What our first runs, one after the other in one process, hold at their peak besides the tensors of a step: 1.3 GiB in
# the fitted row, whatever the batch.  Steps in fresh processes (compiled ones, second machine) do not have it.
LEFT_OVER_BYTES = 1.3 * 2**30


def predict_rows(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Predict time and memory of each row."""
    for row in rows:
        try:
            yield from predict(row)
        except (RowError, DatahallError) as problem:
            yield Unsupported(
                problem.message if isinstance(problem, DatahallError) else str(problem), row.where
            )


def predict(row: Row) -> Iterator[Outcome]:
    """The step and the peak of memory that a row should have had."""
    job, layout = task(row)
    chip = load().chip(row.text("chip") or CHIP)
    space, kit = Space.of(layout), framework(framework_of(row))
    step_s = float(step_times(job, cluster_of(chip, 1), space, kit).step_s[0])
    peak_bytes = float(peak_memory(job, chip, space, BOOKS[kit.books]).allocated_bytes[0])
    peak_bytes += 0.0 if FRESH in row.text("source") else LEFT_OVER_BYTES
    words = f"{job.model.name}, {layout.micro_batch} × {job.seq}, recompute {layout.recompute}"
    figures = [(STEP, row.positive("step_ms") * 1e-3, step_s, kit.band, "s")]
    if row.text("peak_mem_GiB"):
        peak = row.positive("peak_mem_GiB") * 2.0**30
        figures.append((MEMORY, peak, peak_bytes, MEMORY_BAND, "bytes"))
    for metric, measured, predicted, band, unit in figures:
        found = Prediction(
            source=row.text("source") or SOURCE,
            hardware=chip.name,
            model=job.model.name,
            label=words,
            where=row.where,
            measured=measured,
            predicted=predicted,
            low=predicted * band[0],
            high=predicted * band[1],
            unit=unit,
            metric=metric,
        )
        yield unless_fitted(row, found)


def framework_of(row: Row) -> str:
    """Plain PyTorch, or compiled: what lies between the products is then fused."""
    return "compiled" if _yes(row, "compile") else "eager"


def task(row: Row) -> tuple[Job, Layout]:
    """What a row trained, and how."""
    batch = int(row.count("micro_batch"))
    job = Job(model=shaped(row), seq=int(row.count("seq")), global_batch=batch)
    recompute: Recompute = "full" if _yes(row, "recompute") else "none"
    return job, Layout(micro_batch=batch, recompute=recompute, zero=0, sequence_parallel=False)


def shaped(row: Row) -> Model:
    """The model of so many layers, so wide, with so many parameters."""
    layers, hidden = int(row.count("layers")), int(row.count("hidden"))
    attention = 2 * hidden**2 + 2 * hidden * KV_HEADS * HEAD_DIM
    tables = 2 * VOCAB * hidden + hidden
    each = (row.positive("params_B") * 1e9 - tables) / layers - attention - 2 * hidden
    ffn = round(each / (3 * hidden))
    if ffn <= 0:
        raise RowError("so few parameters leave nothing for an MLP")
    return Model(
        name=row.text("model"),
        title=row.text("model"),
        family="llama",
        year=0,
        num_layers=layers,
        hidden=hidden,
        num_heads=hidden // HEAD_DIM,
        num_kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        ffn=ffn,
        vocab=VOCAB,
        max_context=int(row.count("seq")),
        layers=(Layer(mixer="full", mlp="dense"),) * layers,
    )


def _yes(row: Row, column: str) -> bool:
    return row.text(column).lower() in {"true", "1", "yes"}


FORMAT = Format(
    "training on one chip",
    frozenset(
        {
            "model",
            "params_B",
            "layers",
            "hidden",
            "seq",
            "micro_batch",
            "recompute",
            "compile",
            "step_ms",
            "peak_mem_GiB",
        }
    ),
    predict_rows,
)
