"""Measured collectives: what the fabric room's closed forms are judged on.

One format, that of public runs: a library's algorithm on named hardware, a size, and a time or a bus bandwidth.  Runs
of a sick fabric and figures rounded beyond use are counted with that reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from datahall.errors import DatahallError
from datahall.fabric.collectives.constants import library
from datahall.units import fmt
from datahall.validation.collectives.health import has_cliff, reported_fault
from datahall.validation.collectives.run import Known, read_run
from datahall.validation.measurement import Format, Outcome, Row, RowError, unless_fitted
from datahall.validation.scorecard import Prediction, Unsupported

SICK = "outside the healthy model: "
RUN = (
    "source",
    "hardware",
    "interconnect",
    "n_gpus",
    "collective",
    "algorithm",
)  # cells that rows of one run share


def predict(rows: Sequence[Row], level: str | None = None) -> Iterable[Outcome]:
    """Predict rows; those of one run are looked at together to tell whether its fabric works."""
    known: dict[int, Known] = {}
    reasons: dict[int, str] = {}
    runs: dict[tuple[str, ...], list[int]] = {}
    for index, row in enumerate(rows):
        try:
            known[index] = read_run(row, level)
        except (RowError, DatahallError) as problem:
            reasons[index] = problem.message if isinstance(problem, DatahallError) else str(problem)
            continue
        if reported_fault(row) is not None:
            reasons[index] = SICK + "the source reports a fault"
            continue
        runs.setdefault(tuple(row.text(cell) for cell in RUN), []).append(index)
    for members in runs.values():
        if _falls_off([known[index] for index in members]):
            reasons |= dict.fromkeys(members, SICK + "bandwidth halves as messages grow")
    for index, row in enumerate(rows):
        yield (
            Unsupported(reasons[index], row.where)
            if index in reasons
            else unless_fitted(row, _prediction(known[index]))
        )


def _falls_off(run: Sequence[Known]) -> bool:
    """Whether a run over sizes, each measured once, has a cliff; by what was measured alone."""
    if run[0].engine not in {"nccl", "message"} or len({one.size_bytes for one in run}) < len(run):
        return False
    sizes = [one.size_bytes for one in run]
    return has_cliff(sizes, [one.size_bytes / one.measured_s for one in run])


def _prediction(one: Known) -> Prediction:
    row = one.row
    low, high = library().bands[one.band]
    ranks = row.text("n_gpus").removesuffix(".0")
    return Prediction(
        source=row.text("source").removeprefix("GitHub issue "),
        hardware=one.system,
        model=one.engine,
        label=f"{row.text('collective')} {fmt(one.size_bytes, 'bytes')} on {ranks}, {one.algorithm}",
        where=row.where,
        measured=one.measured_s,
        predicted=one.predicted_s,
        low=one.predicted_s * low,
        high=one.predicted_s * high,
    )


FORMATS = (
    Format(
        "collectives",
        frozenset(
            {"hardware", "n_gpus", "interconnect", "collective", "algorithm", "message_bytes", "busbw_GBps"}
        ),
        predict,
    ),
)
