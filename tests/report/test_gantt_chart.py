"""Bars of a Gantt chart lie in their rows, between their times, as tall as their part, and inside the picture."""

from __future__ import annotations

import re

import pytest

from datahall.answer import Answer, Bar, GanttChart
from datahall.report.charts.chart import WIDTH, svg
from datahall.report.page import page

RECT = re.compile(r'class="bar" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="([^"]+)"')


def chart(*bars: Bar, rows: int = 2, end: float = 100.0) -> GanttChart:
    return GanttChart(title="nodes", rows=tuple(f"node {row}" for row in range(rows)), bars=bars, end=end)


def boxes(drawn: str) -> list[tuple[float, float, float, float, str]]:
    return [(float(x), float(y), float(w), float(h), fill) for x, y, w, h, fill in RECT.findall(drawn)]


def test_bars_are_where_their_time_and_their_row_are() -> None:
    first, second, third = boxes(
        svg(chart(Bar(0, 0, 50, "a"), Bar(0, 50, 100, "b"), Bar(1, 25, 75, "a", 0.5, 1.0)))
    )
    assert first[2] == pytest.approx(second[2])
    assert first[0] + first[2] == pytest.approx(second[0], abs=0.2)
    assert second[0] + second[2] <= WIDTH
    assert third[0] == pytest.approx(first[0] + first[2] / 2, abs=0.2)
    assert third[3] == pytest.approx(first[3] / 2, abs=0.1)
    assert third[1] > first[1] + first[3]
    assert first[4] == third[4] != second[4], "one job has one colour"


def test_a_name_stands_in_its_bar_where_there_is_room_and_in_its_title_always() -> None:
    drawn = svg(chart(Bar(0, 0, 90, "pretraining"), Bar(0, 90, 91, "ablation")))
    assert '"in-bar"' in drawn
    assert drawn.count(">pretraining<") == 1
    assert ">ablation<" not in drawn
    assert "ablation: 90 s to 91 s" in drawn


@pytest.mark.parametrize("end", [0.0, 1e-3, 3.0, 100.0, 36_000.0, 1e9])
def test_any_time_can_be_drawn(end: float) -> None:
    drawn = svg(chart(Bar(0, 0, end, "a & b"), end=end))
    assert "nan" not in drawn
    assert "a &amp; b" in drawn


def test_it_stands_on_a_page_with_its_note() -> None:
    gantt = GanttChart(title="jobs", rows=("node 0",), bars=(Bar(0, 0, 1, "a"),), end=1.0, note="as tall as")
    assert "as tall as" in page(Answer(kind="x", headline="y", charts=(gantt,)))
