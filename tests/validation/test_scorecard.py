"""Errors added up: against plain Python, and no row lost."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.validation.measurement import Outcome
from datahall.validation.scorecard import EMPTY, Fitted, Prediction, Unsupported, score, scorecard

few = settings(max_examples=80, deadline=None)
times = st.floats(1e-9, 1e3)
names = st.sampled_from(["a", "b", "c"])


@st.composite
def predictions(draw: st.DrawFn) -> Prediction:
    measured, predicted = draw(times), draw(times)
    low, high = draw(st.floats(0.1, 1.0)), draw(st.floats(1.0, 3.0))
    return Prediction(
        source=draw(names), hardware=draw(names), model=draw(names), label="", where="x.csv:1",
        measured=measured, predicted=predicted, low=predicted * low, high=predicted * high,
    )  # fmt: skip


unsupported = st.builds(Unsupported, st.sampled_from(["why", "because", "so"]), st.just("x.csv:2"))
fitted = st.builds(Fitted, st.just("x.csv:3"))
outcomes = st.lists(predictions() | fitted | unsupported, max_size=40)


def quantile(values: list[float], share: float) -> float:
    """The value below which a share of the others lie, between neighbours by straight lines."""
    ranked = sorted(values)
    place = share * (len(ranked) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (ranked[above] - ranked[below]) * (place - below)


@few
@given(st.lists(predictions(), min_size=1, max_size=40))
def test_a_score_is_what_plain_arithmetic_gives(rows: list[Prediction]) -> None:
    errors = [(row.predicted / row.measured - 1) * 100 for row in rows]
    found = score(rows)
    assert found.rows == len(rows)
    assert found.median_ape == pytest.approx(statistics.median(map(abs, errors)))
    assert found.mean_ape == pytest.approx(statistics.fmean(map(abs, errors)))
    assert found.p90_ape == pytest.approx(quantile([abs(error) for error in errors], 0.9))
    assert found.bias == pytest.approx(statistics.median(errors), abs=1e-12)
    inside = sum(row.low <= row.measured <= row.high for row in rows)
    assert found.band_coverage == pytest.approx(100 * inside / len(rows))


@few
@given(outcomes)
def test_every_row_is_counted_once(rows: list[Outcome]) -> None:
    card = scorecard("kernels", rows)
    assert card.rows == len(rows)
    assert card.rows == card.scored + card.fitted + sum(reason.rows for reason in card.unsupported)
    assert len({reason.reason for reason in card.unsupported}) == len(card.unsupported)
    for groups in (card.by_source, card.by_hardware, card.by_model):
        assert sum(group.rows for group in groups.values()) == card.scored == card.overall.rows


@few
@given(outcomes)
def test_rows_that_were_fitted_on_change_no_error(rows: list[Outcome]) -> None:
    judged = [row for row in rows if not isinstance(row, Fitted)]
    whole, part = scorecard("kernels", rows), scorecard("kernels", judged)
    assert repr(whole.overall) == repr(part.overall)  # NaN of no rows is NaN
    assert whole.worst == part.worst
    assert part.fitted == 0


@few
@given(outcomes, st.integers(0, 12))
def test_the_worst_rows_are_the_furthest_off(rows: list[Outcome], count: int) -> None:
    judged = [row for row in rows if isinstance(row, Prediction)]
    worst = scorecard("kernels", rows, count).worst
    assert len(worst) == min(count, len(judged))
    expected = sorted((abs(row.error_percent) for row in judged), reverse=True)[:count]
    assert [abs(row.error_percent) for row in worst] == pytest.approx(expected)


def test_a_group_is_scored_as_if_it_stood_alone() -> None:
    rows = [
        Prediction(
            source=source, hardware="x", model="", label="", where="", measured=1.0, predicted=predicted,
            low=0.9, high=1.1,
        )
        for source, predicted in (("a", 1.1), ("a", 0.8), ("b", 2.0))
    ]  # fmt: skip
    card = scorecard("kernels", rows)
    assert card.by_source == {"a": score(rows[:2]), "b": score(rows[2:])}
    assert card.by_source["b"].bias == pytest.approx(100)
    assert card.by_source["a"].median_ape == pytest.approx(15)


def test_nothing_scored_is_no_number() -> None:
    assert score([]) == EMPTY
    card = scorecard(
        "kernels", [Unsupported("why", "x:1"), Unsupported("why", "x:2"), Unsupported("so", "x:3")]
    )
    assert math.isnan(card.overall.median_ape)
    assert [(reason.reason, reason.rows) for reason in card.unsupported] == [("why", 2), ("so", 1)]


def row(**cells: object) -> Prediction:
    given = {
        "source": "a",
        "hardware": "h",
        "model": "m",
        "label": "",
        "where": "x:1",
        "low": 0.0,
        "high": 9.0,
    }
    return Prediction(**(given | {"measured": 1.0, "predicted": 1.1} | cells))  # type: ignore[arg-type]


def test_errors_of_different_metrics_are_not_averaged() -> None:
    rows = [
        row(metric="step time"),
        row(metric="step time", source="b"),
        row(metric="peak memory", predicted=1.5),
    ]
    card = scorecard("training", rows)
    assert card.by_metric == {"peak memory": score(rows[2:]), "step time": score(rows[:2])}
    assert set(card.by_source) == {"a", "b", "a, peak memory"}
    assert card.by_source["a"].mean_ape == pytest.approx(10)
    assert card.by_source["a, peak memory"].mean_ape == pytest.approx(50)


def test_one_metric_leaves_the_groups_their_names() -> None:
    assert set(scorecard("kernels", [row(), row(source="b")]).by_source) == {"a", "b"}


def test_regret_is_what_the_way_predicted_fastest_took_over_the_best() -> None:
    rows = [
        row(choice="job 1", label="tp 1", measured=1.9, predicted=1.0),
        row(choice="job 1", label="tp 1", measured=2.1, predicted=1.0),  # again
        row(choice="job 1", label="tp 2", measured=1.6, predicted=1.5),
        row(choice="job 2", label="tp 1", measured=1.0, predicted=1.0),
        row(choice="job 2", label="tp 2", measured=3.0, predicted=2.0),
        row(choice="job 3"),
        row(measured=9.0, predicted=0.1),
    ]
    (found,) = scorecard("training", rows).regret.values()
    assert (found.jobs, found.ways) == (2, 4)
    assert found.mean_percent == pytest.approx(12.5)
    assert found.worst_percent == pytest.approx(25)


@few
@given(outcomes)
def test_every_row_has_a_metric(rows: list[Outcome]) -> None:
    card = scorecard("kernels", rows)
    assert sum(group.rows for group in card.by_metric.values()) == card.scored
