"""Dots lie where their numbers say, and on the diagonal where the two are equal."""

from __future__ import annotations

import re

import pytest

from datahall.answer import Axis, Point, ScatterChart, Series
from datahall.report.charts.chart import svg


def drawn(*pairs: tuple[float, float], points: tuple[Point, ...] = ()) -> str:
    xs, ys = (tuple(pair[place] for pair in pairs) for place in (0, 1))
    return svg(
        ScatterChart(
            title="rows",
            x=Axis("measured", "s", log=True),
            y=Axis("predicted", "s", log=True),
            series=(Series("a", xs, ys), Series("b", xs, ys)),
            points=points,
        )
    )


def dots(picture: str) -> list[tuple[float, float]]:
    (first, _) = re.findall(r'<path class="cloud" d="([^"]*)"', picture)
    return [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)h0", first)]


def test_equal_numbers_lie_on_the_diagonal_and_others_on_their_side() -> None:
    picture = drawn((1e-3, 1e-3), (0.5, 0.5), (1e-2, 1e-1), (1e-1, 1e-2))
    ends = re.findall(r'class="axis" x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', picture)
    x1, y1, x2, y2 = next(line for one in ends if (line := tuple(map(float, one))) and line[1] != line[3])

    def above(x: float, y: float) -> float:
        return (y1 + (x - x1) / (x2 - x1) * (y2 - y1)) - y

    same, also, over, under = (above(*dot) for dot in dots(picture))
    assert same == pytest.approx(0.0, abs=0.2)
    assert also == pytest.approx(0.0, abs=0.2)
    assert over > 10 > -10 > under


def test_every_row_is_drawn_and_those_that_are_named_say_more() -> None:
    pairs = [(10.0**-power, 2 * 10.0**-power) for power in range(8)]
    picture = drawn(
        *pairs, points=(Point("far off", 1e-3, 1.0, note="a lot"), Point("near", 1.0, 1.1, note="+10 %"))
    )
    assert len(dots(picture)) == len(pairs)
    assert "<title>far off: a lot</title>" in picture
    assert "<title>near: +10 %</title>" in picture
    assert ">near</text>" not in picture
    assert ">far off</text>" in picture
    assert {"measured", "predicted", "a", "b"} <= set(re.findall(r">([^<>]+)</text>", picture))


def test_one_number_has_axes_too() -> None:
    assert "nan" not in drawn((1.0, 1.0))
