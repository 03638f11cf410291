"""How far predictions fell from measurements, in numbers that can be compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean

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
    metric: str = ""  # what was measured, where a domain has several: "step time", "peak memory"
    choice: str = ""  # rows of one source with the same words here are ways to do the same job
    basis: str = ""  # on what its kernels rest: measured, a family's constants, a data sheet
    # to `predicted`: without what its benchmark is taken to have done and does not state, where that is anything
    as_stated_ratio: float | None = None
    in_points: bool = False  # a share, of which the error is a difference in points and no percentage of it

    @property
    def error_percent(self) -> float:
        """Predicted over measured, less 1, in percent; of a share in points their difference."""
        if self.in_points:
            return (self.predicted - self.measured) * 100.0
        return (self.predicted / self.measured - 1.0) * 100.0

    def away(self, value: float) -> float:
        """How far a value is from the prediction: as a ratio, or in points as a difference."""
        return value - self.predicted if self.in_points else value / self.predicted


class Fitted(msgspec.Struct, frozen=True):
    """A measured figure that a constant was fitted on: counted, and never scored."""

    where: str
    metric: str = ""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that follows from what the row itself gave us: held against it as a check, and never scored."""

    metric: str
    where: str
    measured: float
    predicted: float  # as it comes out again

    @property
    def error_percent(self) -> float:
        """What comes out over what was measured, less 1, in percent."""
        return (self.predicted / self.measured - 1.0) * 100.0


class Unsupported(msgspec.Struct, frozen=True):
    """A row that our models cannot express, and why."""

    reason: str
    where: str


class Score(msgspec.Struct, frozen=True):
    """Errors of one group of rows, in percent, or in points where its metric is a share."""

    rows: int
    median_ape: float
    mean_ape: float
    p90_ape: float
    bias: float  # median signed error
    band_coverage: float  # share of rows inside their P10–P90 band


class Check(msgspec.Struct, frozen=True):
    """Figures of one metric that were played again from what their rows say, in percent."""

    rows: int
    p90_ape: float
    worst_ape: float


class Reason(msgspec.Struct, frozen=True):
    """Why rows could not be predicted, and how many."""

    reason: str
    rows: int


class Regret(msgspec.Struct, frozen=True):
    """What it costs to take the way we predict to be fastest, over jobs that were measured in several ways."""

    jobs: int
    ways: int
    mean_percent: float  # measured time of the chosen way over the best measured one, less 1
    worst_percent: float


class Noise(msgspec.Struct, frozen=True):
    """How far runs of one configuration lie from the median of their group, in percent: nothing predicts better."""

    groups: int
    rows: int
    median_ape: float
    mean_ape: float
    p90_ape: float


class Coverage(msgspec.Struct, frozen=True):
    """The rows of a source and a metric inside their bands, in percent."""

    rows: int
    stated_percent: float  # inside the bands that answers carry
    apart_percent: float  # inside bands that are made of the rows of other sources


class AsStated(msgspec.Struct, frozen=True):
    """Our error if benchmarks had done what their sources state and no more; groups as those of the scorecard."""

    figures: int  # that an assumption touches
    by_metric: dict[str, Score]
    by_source: dict[str, Score]


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
    metric: str = ""
    in_points: bool = False


class Cloud(msgspec.Struct, frozen=True, kw_only=True):
    """Measured figures of one metric on one hardware, and what was predicted of each."""

    metric: str
    unit: str
    hardware: str
    measured: tuple[float, ...]
    predicted: tuple[float, ...]


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """All errors of one domain."""

    domain: str
    rows: int
    scored: int
    fitted: int
    unsupported: tuple[Reason, ...]
    overall: Score
    by_metric: dict[str, Score]
    by_source: dict[str, Score]
    by_hardware: dict[str, Score]
    by_model: dict[str, Score]
    by_basis: dict[str, Score]  # where a domain says on what its predictions rest
    regret: dict[str, Regret]  # by source
    worst: tuple[Worst, ...]
    noise: dict[str, Noise] = {}  # of repeated measurements, by metric
    apart: dict[
        str, Coverage
    ] = {}  # by source and metric: what bands are worth on rows they were not made of
    as_stated: AsStated | None = None  # where benchmarks are taken to have done more than their sources state
    checks: dict[str, Check] = {}  # by metric: what was played again, and is no prediction
    notes: tuple[str, ...] = ()  # what a domain says of its figures: what is input, what is predicted
    in_points: tuple[str, ...] = ()  # metrics that are shares, whose errors are in points and not in percent
    clouds: tuple[Cloud, ...] = ()  # every scored row, for a picture; not in JSON

    @property
    def unit(self) -> str:
        """What its errors are in: points where every metric is a share, else percent."""
        return "points" if self.in_points and set(self.in_points) == set(self.by_metric) else "percent"

    @property
    def num_unsupported(self) -> int:
        """Rows that cannot be expressed."""
        return sum(reason.rows for reason in self.unsupported)

    @property
    def num_replayed(self) -> int:
        """Figures that were played again as a check."""
        return sum(check.rows for check in self.checks.values())


RIGHT_COVERAGE_PERCENT = 80.0  # of rows that lie in a P10–P90 band, where the band is right
MOST_CLOUDS, OTHERS = 8, "others"  # as many as can be told apart by colour
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


def scorecard(
    domain: str,
    outcomes: Iterable[Prediction | Fitted | Replayed | Unsupported],
    num_worst: int = 10,
    noise: Mapping[str, Noise] | None = None,
    apart: Mapping[str, Coverage] | None = None,
    notes: Sequence[str] = (),
) -> Scorecard:
    """Sum up the outcomes of a domain; every row is counted somewhere."""
    outcomes = list(outcomes)
    judged = [one for one in outcomes if isinstance(one, Prediction)]
    reasons: dict[str, int] = {}
    for one in outcomes:
        if isinstance(one, Unsupported):
            reasons[one.reason] = reasons.get(one.reason, 0) + 1
    figures = (one.metric for one in outcomes if isinstance(one, (Prediction, Fitted)))
    usual = next(figures, "")  # a format gives a row's main figure first

    def named(key: Callable[[Prediction], str]) -> Callable[[Prediction], str]:
        """Errors of different metrics are not averaged: a group of another than the usual one says which."""
        return lambda one: key(one) if one.metric == usual else f"{key(one)}, {one.metric}"

    worst = sorted(judged, key=lambda one: -abs(one.error_percent))[:num_worst]
    return Scorecard(
        domain=domain,
        rows=len(outcomes),
        scored=len(judged),
        fitted=sum(isinstance(one, Fitted) for one in outcomes),
        unsupported=tuple(
            Reason(reason, rows)
            for reason, rows in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        ),
        overall=score(judged),
        by_metric=_grouped(judged, lambda one: one.metric),
        by_source=_grouped(judged, named(lambda one: one.source)),
        by_hardware=_grouped(judged, named(lambda one: one.hardware)),
        by_model=_grouped(judged, named(lambda one: one.model)),
        by_basis=_grouped([one for one in judged if one.basis], named(lambda one: one.basis)),
        regret=regrets(judged),
        worst=tuple(_worst(one) for one in worst),
        noise=dict(noise or {}),
        apart=dict(apart or {}),
        checks=_checks([one for one in outcomes if isinstance(one, Replayed)]),
        as_stated=_as_stated(judged, named(lambda one: one.source)),
        notes=tuple(notes),
        in_points=tuple(dict.fromkeys(one.metric for one in judged if one.in_points)),
        clouds=tuple(_clouds(judged)),
    )


def _checks(replayed: Sequence[Replayed]) -> dict[str, Check]:
    sizes: dict[str, list[float]] = {}
    for one in replayed:
        sizes.setdefault(one.metric, []).append(abs(one.error_percent))
    return {
        metric: Check(len(found), float(np.quantile(found, 0.9)), max(found))
        for metric, found in sizes.items()
    }


def _as_stated(judged: Sequence[Prediction], source: Callable[[Prediction], str]) -> AsStated | None:
    touched = [one for one in judged if one.as_stated_ratio is not None]
    if not touched:
        return None
    sources = {source(one) for one in touched}
    plain = [_plain(one, 1.0 if one.as_stated_ratio is None else one.as_stated_ratio) for one in judged]
    grouped = _grouped([one for one in plain if source(one) in sources], source)
    return AsStated(len(touched), _grouped(plain, lambda one: one.metric), grouped)


def _plain(one: Prediction, ratio: float) -> Prediction:
    predicted, low, high = (value * ratio for value in (one.predicted, one.low, one.high))
    return msgspec.structs.replace(one, predicted=predicted, low=low, high=high)


def _clouds(predictions: Sequence[Prediction]) -> Iterator[Cloud]:
    """The pairs of each metric by hardware, that with the most rows first; what is rare is put together."""
    metrics: dict[tuple[str, str], dict[str, list[Prediction]]] = {}
    for one in predictions:
        metrics.setdefault((one.metric, one.unit), {}).setdefault(one.hardware or "–", []).append(one)
    for (metric, unit), found in metrics.items():
        ranked = sorted(found, key=lambda name: (-len(found[name]), name))
        own = ranked if len(ranked) <= MOST_CLOUDS else ranked[: MOST_CLOUDS - 1]
        groups = {name: found[name] for name in own}
        rest = [one for name in ranked[len(own) :] for one in found[name]]
        for name, rows in {**groups, **({OTHERS: rest} if rest else {})}.items():
            yield Cloud(
                metric=metric,
                unit=unit,
                hardware=name,
                measured=tuple(one.measured for one in rows),
                predicted=tuple(one.predicted for one in rows),
            )


def regrets(predictions: Sequence[Prediction]) -> dict[str, Regret]:
    """For each source, what it costs to choose by prediction among the ways in which each job was measured.

    Rows with the same label are the same way, measured again; their mean counts.

    >>> row = Prediction(source="", hardware="", model="", label="", where="", measured=2.0, predicted=1.0, low=0,
    ...                  high=9, choice="a job")
    >>> other = msgspec.structs.replace(row, label="another way", measured=1.0, predicted=1.5)
    >>> regrets([row, other])[""].mean_percent
    100.0
    """
    jobs: dict[tuple[str, str], dict[str, list[Prediction]]] = {}
    for one in predictions:
        if one.choice:
            jobs.setdefault((one.source, one.choice), {}).setdefault(one.label, []).append(one)
    lost: dict[str, list[tuple[int, float]]] = {}
    for (source, _), ways in jobs.items():
        if len(ways) > 1:
            means = {label: fmean(one.measured for one in same) for label, same in ways.items()}
            chosen = min(ways, key=lambda label: ways[label][0].predicted)
            percent = (means[chosen] / min(means.values()) - 1.0) * 100.0
            lost.setdefault(source, []).append((len(ways), percent))
    return {
        source: Regret(
            jobs=len(found),
            ways=sum(ways for ways, _ in found),
            mean_percent=sum(percent for _, percent in found) / len(found),
            worst_percent=max(percent for _, percent in found),
        )
        for source, found in sorted(lost.items())
    }


def _grouped(predictions: Sequence[Prediction], key: Callable[[Prediction], str]) -> dict[str, Score]:
    groups: dict[str, list[Prediction]] = {}
    for one in predictions:
        groups.setdefault(key(one), []).append(one)
    return {name: score(groups[name]) for name in sorted(groups)}


def _worst(one: Prediction) -> Worst:
    return Worst(
        one.where, one.label, one.source, one.hardware, one.model, one.unit, one.measured, one.predicted,
        one.error_percent, one.metric, one.in_points,
    )  # fmt: skip


def fraction(percent: float) -> float | None:
    """A percentage as a share of 1; None where there is none.

    >>> fraction(12.5), fraction(math.nan)
    (0.125, None)
    """
    return None if math.isnan(percent) else percent / 100.0


def scorecard_json(card: Scorecard) -> str:
    """A scorecard as JSON under a schema of its own; errors are in percent, those of `in_points` in points."""
    named = {"schema": "datahall/scorecard", "version": 1, **msgspec.to_builtins(card)}
    del named["clouds"]
    return msgspec.json.format(msgspec.json.encode(named), indent=2).decode() + "\n"
