"""Axes of a line chart begin at nothing and end above all there is, or at the whole of a share."""

from __future__ import annotations

import re

import pytest

from datahall.answer import Axis, LineChart, Series
from datahall.report.charts.chart import svg


def drawn(unit: str, *values: float) -> tuple[list[float], float]:
    """How high above the floor of the axes a line passes, number by number, and how high the axes are."""
    xs = tuple(float(place) for place in range(len(values)))
    picture = svg(LineChart(title="a", x=Axis("x"), y=Axis("y", unit), series=(Series("one", xs, values),)))
    (path,) = re.findall(r'<path class="series" d="([^"]*)"', picture)
    ys = [float(y) for y in re.findall(r"[ML]-?[\d.]+ (-?[\d.]+)", path)]
    upright = re.findall(r'class="grid" x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', picture)
    floor, top = next(sorted(map(float, (y1, y2)))[::-1] for x1, y1, x2, y2 in upright if x1 == x2)
    return [floor - y for y in ys], floor - top


@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0, 7e4])
def test_heights_are_as_the_numbers_from_nothing_up(scale: float) -> None:
    heights, whole = drawn("s", 2 * scale, 3 * scale, 4 * scale)
    assert heights[1] / heights[0] == pytest.approx(3 / 2, rel=0.01)
    assert heights[2] / heights[0] == pytest.approx(2, rel=0.01)
    assert 0.9 * whole < heights[2] < whole


def test_a_share_ends_at_all_there_is() -> None:
    heights, whole = drawn("fraction", 0.25, 0.5)
    assert heights == pytest.approx([0.25 * whole, 0.5 * whole], abs=0.2)


def test_what_is_below_nothing_is_drawn_too() -> None:
    heights, whole = drawn("s", -1.0, 1.0)
    assert heights[0] == pytest.approx(0.0, abs=0.2)
    assert 0.9 * whole < heights[1] < whole
