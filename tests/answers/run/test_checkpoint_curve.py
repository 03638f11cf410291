"""The curve of an interval and the point on it: of the same failures."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.answer import LineChart

RUN: dict[str, Any] = {
    "model": "llama-3.1-70b", "chips": 2048, "chip": "h100-sxm", "storage": "200GB/s", "dp": 128, "tp": 8, "pp": 2,
    "zero": 1, "shard": 16,
}  # fmt: skip


@pytest.mark.parametrize("elastic", [{}, {"elastic": "linear"}])
def test_the_best_interval_lies_at_the_top_of_the_curve(elastic: dict[str, Any]) -> None:
    (chart,) = dh.show_checkpoint(**RUN, **elastic).charts
    assert isinstance(chart, LineChart)
    ((point,), (line,)) = chart.points, chart.series
    assert max(line.y) <= point.y + 1e-4
    near = min(range(len(line.x)), key=lambda place: abs(line.x[place] / point.x - 1.0))
    assert line.y[near] == pytest.approx(point.y, abs=2e-4)
