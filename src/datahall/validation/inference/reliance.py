"""How much the score of serving rests on what benchmarks are taken to have done: each assumption left out in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from datahall.validation.inference.assumptions import ASSUMPTIONS, Assumption
from datahall.validation.inference.predict import is_scored, outcomes_of, replayed, runs_of, without
from datahall.validation.inference.replay import Replayed
from datahall.validation.inference.run import Run
from datahall.validation.inference.sources import read_run
from datahall.validation.measurement import Row
from datahall.validation.scorecard import Prediction, Score, Unsupported, score


class Reliance(msgspec.Struct, frozen=True):
    """The scored rows that an assumption touches, with it and without it; by metric."""

    assumption: Assumption
    rows: int
    scored: dict[str, Score]
    without: dict[str, Score]


def reliances(rows: Sequence[Row]) -> tuple[Reliance, ...]:
    """For each assumption the errors of the rows that it touches and that nothing was fitted on."""
    known = (run for run in runs_of(rows, read_run) if isinstance(run, Run) and is_scored(run))
    runs = [run for run in known if without(ASSUMPTIONS, run) != run]
    usual = _figures(runs)
    return tuple(_reliance(one, runs, usual) for one in ASSUMPTIONS)


def _figures(runs: Sequence[Run]) -> dict[str, Replayed]:
    """By where their rows stand."""
    found = zip(runs, replayed(runs), strict=True)
    return {run.row.where: one for run, one in found if not isinstance(one, Unsupported)}


def _reliance(assumption: Assumption, runs: Sequence[Run], usual: Mapping[str, Replayed]) -> Reliance:
    own = [run for run in runs if assumption.touches(run.traffic) and run.row.where in usual]
    plain = _figures([without((assumption,), run) for run in own])
    return Reliance(assumption, len(own), _scores(own, usual), _scores(own, plain))


def _scores(runs: Sequence[Run], figures: Mapping[str, Replayed]) -> dict[str, Score]:
    groups: dict[str, list[Prediction]] = {}
    for run in runs:
        for one in outcomes_of(run, figures[run.row.where]):
            if isinstance(one, Prediction):
                groups.setdefault(one.metric, []).append(one)
    return {metric: score(group) for metric, group in groups.items()}
