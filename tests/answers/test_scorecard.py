"""A scorecard in words: metrics apart, and what choosing by prediction cost."""

from __future__ import annotations

import msgspec

from datahall.answer import ScatterChart
from datahall.answers.validation.scorecard import scorecard_answer
from datahall.report.charts.chart import COLORS
from datahall.validation.scorecard import Coverage, Fitted, Prediction, scorecard, scorecard_json


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


def test_each_metric_has_a_picture_of_all_its_rows() -> None:
    rows = [
        row("step time"),
        row("step time", predicted=0.8),
        row("peak memory", label="far off", predicted=1.5),
    ]
    charts = scorecard_answer(scorecard("training", rows)).charts
    assert [chart.title.partition(",")[0] for chart in charts] == ["step time", "peak memory"]
    step, memory = charts
    assert isinstance(step, ScatterChart)
    assert isinstance(memory, ScatterChart)
    assert [(one.name, one.x, one.y) for one in step.series] == [("h100-sxm", (1.0, 1.0), (1.1, 0.8))]
    assert [(point.label, point.y) for point in memory.points] == [("far off", 1.5)]
    assert "charts" not in scorecard_json(scorecard("training", rows))


def test_hardware_beyond_what_colours_tell_apart_is_put_together() -> None:
    rows = [
        msgspec.structs.replace(row(), hardware=f"chip {number}")
        for number in range(31)
        for _ in range(31 - number)
    ]
    (chart,) = scorecard_answer(scorecard("kernels", [*rows, Fitted("x.csv:9")])).charts
    assert isinstance(chart, ScatterChart)
    names = [one.name for one in chart.series]
    assert (names[0], names[-1]) == ("chip 0", "others")
    assert len(set(names)) == len(names) <= len(COLORS)
    assert sum(len(one.x) for one in chart.series) == len(rows)


def test_nothing_scored_is_no_picture() -> None:
    assert scorecard_answer(scorecard("kernels", [])).charts == ()


def test_one_share_is_not_said_as_a_range() -> None:
    card = scorecard("power", [row()], apart={"a": Coverage(20, 80.0, 0.0), "b": Coverage(20, 80.0, 0.2)})
    note = next(one for one in scorecard_answer(card).notes if "made of the other" in one)
    assert "they hold 0 % of the rows" in note
    far = scorecard("power", [row()], apart={"a": Coverage(20, 80.0, 9.0), "b": Coverage(20, 80.0, 40.0)})
    assert any("they hold 9 to 40 % of the rows" in one for one in scorecard_answer(far).notes)
