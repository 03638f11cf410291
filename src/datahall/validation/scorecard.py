"""How far predictions fell from measurements, in numbers that can be compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """One measured row and what we say it should have been; times in seconds, rates in SI."""

    source: str
    hardware: str
    model: str
    label: str  # the row in a few words
    where: str  # file:line
    measured: float
    predicted: float
    low: float  # P10 of what we expect
    high: float  # P90
    unit: str = "s"
    fitted: bool = False  # constants were fitted on this row: shown, never scored

    @property
    def error_percent(self) -> float:
        return (self.predicted / self.measured - 1.0) * 100.0


class Unsupported(msgspec.Struct, frozen=True):
    """A row that our models cannot express, and why."""

    reason: str
    where: str


class Score(msgspec.Struct, frozen=True):
    """Errors of one group of rows, in percent."""

    rows: int
    median_ape: float
    mean_ape: float
    p90_ape: float
    bias: float  # median signed error
    band_coverage: float  # share of rows inside their P10–P90 band


class Reason(msgspec.Struct, frozen=True):
    """Why rows could not be predicted, and how many."""

    reason: str
    rows: int


class Worst(msgspec.Struct, frozen=True):
    """One of the rows furthest from its prediction."""

    where: str
    label: str
    source: str
    hardware: str
    model: str
    unit: str
    measured: float
    predicted: float
    error_percent: float


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """All errors of one domain."""

    domain: str
    rows: int
    scored: int
    fitted: int
    unsupported: tuple[Reason, ...]
    overall: Score
    by_source: dict[str, Score]
    by_hardware: dict[str, Score]
    by_model: dict[str, Score]
    worst: tuple[Worst, ...]


EMPTY = Score(0, math.nan, math.nan, math.nan, math.nan, math.nan)


def score(predictions: Sequence[Prediction]) -> Score:
    """Errors of a group of rows.

    >>> row = Prediction(source="", hardware="", model="", label="", where="", measured=1.0, predicted=1.1,
    ...                  low=0.9, high=1.2)
    >>> round(score([row]).median_ape, 6), score([row]).band_coverage
    (10.0, 100.0)
    """
    if not predictions:
        return EMPTY
    errors = np.array([one.error_percent for one in predictions])
    inside = np.array([one.low <= one.measured <= one.high for one in predictions])
    size = np.abs(errors)
    return Score(
        rows=len(predictions),
        median_ape=float(np.median(size)),
        mean_ape=float(size.mean()),
        p90_ape=float(np.quantile(size, 0.9)),
        bias=float(np.median(errors)),
        band_coverage=float(inside.mean() * 100.0),
    )


def scorecard(domain: str, outcomes: Iterable[Prediction | Unsupported], num_worst: int = 10) -> Scorecard:
    """Sum up the outcomes of a domain; every row is counted somewhere."""
    outcomes = list(outcomes)
    predictions = [one for one in outcomes if isinstance(one, Prediction)]
    judged = [one for one in predictions if not one.fitted]
    reasons: dict[str, int] = {}
    for one in outcomes:
        if isinstance(one, Unsupported):
            reasons[one.reason] = reasons.get(one.reason, 0) + 1
    worst = sorted(judged, key=lambda one: -abs(one.error_percent))[:num_worst]
    return Scorecard(
        domain=domain,
        rows=len(outcomes),
        scored=len(judged),
        fitted=len(predictions) - len(judged),
        unsupported=tuple(
            Reason(reason, rows)
            for reason, rows in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        ),
        overall=score(judged),
        by_source=_grouped(judged, lambda one: one.source),
        by_hardware=_grouped(judged, lambda one: one.hardware),
        by_model=_grouped(judged, lambda one: one.model),
        worst=tuple(_worst(one) for one in worst),
    )


def _grouped(predictions: Sequence[Prediction], key: Callable[[Prediction], str]) -> dict[str, Score]:
    groups: dict[str, list[Prediction]] = {}
    for one in predictions:
        groups.setdefault(key(one), []).append(one)
    return {name: score(groups[name]) for name in sorted(groups)}


def _worst(one: Prediction) -> Worst:
    return Worst(
        one.where, one.label, one.source, one.hardware, one.model, one.unit, one.measured, one.predicted,
        one.error_percent,
    )  # fmt: skip
