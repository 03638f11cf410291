"""Points of power by the scope that they state: chips that serve, servers at the wall, phases on one chip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from datahall.validation.measurement import Outcome, Row
from datahall.validation.power.chips import predict_phase
from datahall.validation.power.guard import Reader, guarded
from datahall.validation.power.serving import predict_serving
from datahall.validation.power.walls import predict_wall
from datahall.validation.scorecard import Prediction, Unsupported

# what a scope begins with, and who reads it; first match wins
READERS: tuple[tuple[str, Reader], ...] = (
    ("GPU sum", predict_serving),
    ("server wall (PTDaemon", predict_wall),
    ("GPU (NVML, 20 ms", predict_phase),
)


def predict_points(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Predict each row; what cannot be expressed is counted with its reason."""
    for row in rows:
        yield from guarded(row, _reader(row))


def _reader(row: Row) -> Reader:
    scope = row.text("scope")
    return next((read for begin, read in READERS if scope.startswith(begin)), _other)


def _other(row: Row) -> Iterator[Prediction | Unsupported]:
    scope = row.text("scope") or "no scope"
    yield Unsupported(f"no load is stated from which to predict it: {scope}", row.where)
