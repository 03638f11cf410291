"""What happened, in columns: a bounded recorder for kernels, and a digest to tell two runs apart.

The first `capacity` rows are kept; later ones are only counted, and a digest covers that count too.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import inline

ROW = np.dtype(
    [
        ("time_s", "<f8"),
        ("kind", "<i8"),
        ("a", "<i8"),
        ("b", "<i8"),
        ("x", "<f8"),
        ("duration_s", "<f8"),
    ],
    align=True,
)


class Trace(NamedTuple):
    """The rows kept, one more that all later ones are written over, and how many were recorded."""

    kept: NDArray[np.void]
    num_recorded: NDArray[np.int64]


@inline
def new_trace(capacity: int) -> Trace:
    """An empty trace that keeps up to `capacity` rows; 0 only counts."""
    return Trace(np.zeros(capacity + 1, ROW), np.zeros(1, np.int64))


@inline
def record(
    trace: Trace, time_s: float, kind: int, a: int = 0, b: int = 0, x: float = 0.0, duration_s: float = 0.0
) -> None:
    """Add a row; without a duration it is an instant."""
    kept, num_recorded = trace
    # Without a branch: compiled, one would cost reference counts, and they more than the row.
    row = kept[min(num_recorded[0], kept.size - 1)]
    row["time_s"] = time_s
    row["kind"] = kind
    row["a"] = a
    row["b"] = b
    row["x"] = x
    row["duration_s"] = duration_s
    num_recorded[0] += 1


def rows(trace: Trace) -> NDArray[np.void]:
    """The rows kept, as a structured array: rows(trace)["time_s"] is a column."""
    return trace.kept[: min(int(trace.num_recorded[0]), trace.kept.size - 1)]


def num_dropped(trace: Trace) -> int:
    """How many rows were recorded after the trace was full."""
    return max(0, int(trace.num_recorded[0]) - trace.kept.size + 1)


def digest(trace: Trace) -> str:
    """SHA-256 of what was recorded, equal on every machine for equal traces.

    It is taken over the number of rows recorded and, row by row, the little-endian columns in the order of
    ROW, with -0.0 written as 0.0 and every NaN as one.
    """
    canonical = rows(trace).astype(ROW)
    for name in ("time_s", "x", "duration_s"):
        column = canonical[name] + 0.0
        canonical[name] = np.where(np.isnan(column), np.nan, column)
    return hashlib.sha256(int(trace.num_recorded[0]).to_bytes(8, "little") + canonical.tobytes()).hexdigest()
