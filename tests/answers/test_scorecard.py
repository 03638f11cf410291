"""A scorecard in words: metrics apart, and what choosing by prediction cost."""

from __future__ import annotations

from datahall.answers.validation.scorecard import scorecard_answer
from datahall.validation.scorecard import Prediction, scorecard


def row(metric: str = "", label: str = "a way", predicted: float = 1.1, choice: str = "") -> Prediction:
    return Prediction(
        source="a paper", hardware="h100-sxm", model="m", label=label, where="x.csv:2", measured=1.0,
        predicted=predicted, low=0.9, high=1.2, metric=metric, choice=choice,
    )  # fmt: skip


def titles(rows: list[Prediction]) -> list[str]:
    return [table.title for table in scorecard_answer(scorecard("training", rows)).tables]


def test_one_metric_has_no_table_of_its_own() -> None:
    assert titles([row(), row()])[0] == "error by hardware"
    assert "On 2 measured rows" in scorecard_answer(scorecard("training", [row(), row()])).headline


def test_two_metrics_are_told_apart() -> None:
    rows = [row("step time"), row("peak memory", predicted=1.5)]
    assert titles(rows)[0] == "error by metric"
    headline = scorecard_answer(scorecard("training", rows)).headline
    assert "step time 10.0 %" in headline
    assert "peak memory 50.0 %" in headline


def test_regret_has_a_table_where_there_was_a_choice() -> None:
    rows = [row(label="tp 1", choice="job"), row(label="tp 2", choice="job", predicted=1.0)]
    assert "regret of choosing by prediction" in titles(rows)
    assert "regret of choosing by prediction" not in titles([row()])
