"""A row of measured kernels predicted again, with the band of its kind of kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.errors import DatahallError
from datahall.silicon.kernel import KernelTime, time_operators
from datahall.validation.measurement import Outcome, Row, RowError, unless_fitted
from datahall.validation.scorecard import Prediction, Unsupported
from datahall.workload.operator import Operator

FORMATS_OF_TABLES = {"bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp8": "fp8", "nvfp4": "nvfp4"}


def each(rows: Sequence[Row], predict: Callable[[Row], Prediction]) -> Iterator[Outcome]:
    """Predict row by row; what cannot be expressed becomes a counted reason."""
    for row in rows:
        try:
            yield unless_fitted(row, predict(row))
        except (RowError, DatahallError) as problem:
            reason = problem.message if isinstance(problem, DatahallError) else str(problem)
            yield Unsupported(reason, row.where)


class Timed(msgspec.Struct, frozen=True):
    """A predicted time with its P10 and P90."""

    time_s: float
    low_s: float
    high_s: float


def timed(
    chip: Chip, operators: Sequence[Operator], band: str, stack: str, *, sustained: bool = False,
    block_scaled: bool = False, warm: bool = False, graph: bool = True,
) -> Timed:  # fmt: skip
    """Time operators on a chip and put the band of a kind of kernel around them."""
    passed = time_operators(
        chip, operators, stack=stack, sustained=sustained, block_scaled=block_scaled, warm=warm, graph=graph
    )
    total = float(sum((_scalar(kernel) for kernel in passed.kernels), 0.0))
    low, high = passed.calibration.constants.bands[band]
    return Timed(total, total * low, total * high)


def _scalar(kernel: KernelTime) -> float:
    return float(kernel.operator.count * kernel.time_s)


def prediction(
    row: Row, *, source: str, hardware: str, label: str, measured_s: float, found: Timed, model: str = ""
) -> Prediction:
    return Prediction(
        source=row.text("source") + ": " + source if row.text("source") else source,
        hardware=hardware,
        model=model or row.text("model", "–"),
        label=label,
        where=row.where,
        measured=measured_s,
        predicted=found.time_s,
        low=found.low_s,
        high=found.high_s,
    )


def check_experts(top_k: float, num_experts: float) -> None:
    if top_k > num_experts:
        raise RowError("more experts per token than experts")
