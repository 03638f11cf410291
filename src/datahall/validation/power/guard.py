"""Rows that cannot be expressed are counted with the reason, and those that were fitted on apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from datahall.errors import DatahallError
from datahall.validation.measurement import Outcome, Row, RowError, unless_fitted
from datahall.validation.scorecard import Prediction, Unsupported

Reader: TypeAlias = Callable[[Row], Iterator[Prediction | Unsupported]]


def guarded(row: Row, read: Reader) -> Iterator[Outcome]:
    """The figures of a row, or why there are none."""
    try:
        for one in read(row):
            yield unless_fitted(row, one) if isinstance(one, Prediction) else one
    except (RowError, DatahallError) as problem:
        reason = problem.message if isinstance(problem, DatahallError) else str(problem)
        yield Unsupported(re.sub(r"\b\d[\d,.]*(?= )", "N", reason), row.where)
