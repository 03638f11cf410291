"""How much the score of serving rests on what benchmarks are taken to have done: each assumption left out in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from datahall.errors import DatahallError
from datahall.validation.inference.assumptions import ASSUMPTIONS, Assumption
from datahall.validation.inference.predict import outcomes_of, replayed, replayed_without
from datahall.validation.inference.replay import Replayed
from datahall.validation.inference.run import Run
from datahall.validation.inference.sources import read_run
from datahall.validation.measurement import Row, RowError
from datahall.validation.scorecard import Prediction, Score, Unsupported, score


class Reliance(msgspec.Struct, frozen=True):
    """The scored rows that an assumption touches, with it and without it; by metric."""

    assumption: Assumption
    rows: int
    scored: dict[str, Score]
    without: dict[str, Score]


def reliances(rows: Sequence[Row]) -> tuple[Reliance, ...]:
    """For each assumption the errors of the rows that it touches and that nothing was fitted on."""
    runs = [run for row in rows if not row.fitted_on() and (run := _run(row)) is not None]
    touched = [run for run in runs if any(one.touches(run.traffic) for one in ASSUMPTIONS)]
    again = replayed([run.row for run in touched], read_run)
    usual = {one[0].row.where: one[1] for one in again if not isinstance(one, Unsupported)}
    return tuple(_reliance(one, touched, usual) for one in ASSUMPTIONS)


def _reliance(assumption: Assumption, runs: Sequence[Run], usual: Mapping[str, Replayed]) -> Reliance:
    own = [run for run in runs if assumption.touches(run.traffic) and run.row.where in usual]
    plain = replayed_without((assumption,), own)
    return Reliance(assumption, len(own), _scores(own, usual), _scores(own, plain))


def _scores(runs: Sequence[Run], figures: Mapping[str, Replayed]) -> dict[str, Score]:
    groups: dict[str, list[Prediction]] = {}
    for run in runs:
        for one in outcomes_of(run, figures[run.row.where]):
            if isinstance(one, Prediction):
                groups.setdefault(one.metric, []).append(one)
    return {metric: score(group) for metric, group in groups.items()}


def _run(row: Row) -> Run | None:
    try:
        return read_run(row)
    except (RowError, DatahallError):
        return None
