"""Axes of a line chart begin at nothing and end above all there is, or at the whole of a share."""

from __future__ import annotations

import re

import pytest

from datahall.answer import Axis, LineChart, Mark, Point, Series
from datahall.report.charts.chart import LETTER, WIDTH, svg


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


def words_of(picture: str, name: str) -> dict[str, tuple[float, float, float, float]]:
    """The boxes of the words of a class, as they are placed."""
    found = re.findall(
        rf'<text class="{name}" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]*)<', picture
    )
    boxes = {}
    for x, y, anchor, words in found:
        width = LETTER * len(words)
        start = float(x) - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        boxes[words] = (start, float(y) - 11, start + width, float(y) + 3)
    return boxes


def apart(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


@pytest.mark.parametrize("step", [0.02, 0.2, 1.0])
def test_names_of_places_lie_on_no_curve_and_on_no_other_name(step: float) -> None:
    xs = tuple(place / 10 for place in range(101))
    curves = tuple(Series(f"chip {one}", xs, tuple(x**one for x in xs)) for one in (1, 2))
    marks = tuple(Mark(f"simulated, chip-{place}", 2.0 + step * place) for place in range(8))
    picture = svg(LineChart(title="a", x=Axis("x"), y=Axis("TPOT P95", "s"), series=curves, marks=marks))
    boxes = words_of(picture, "label")
    assert set(boxes) == {mark.label for mark in marks}
    names = list(boxes.values())
    assert all(apart(one, other) for place, one in enumerate(names) for other in names[:place])
    curve = [
        (float(x), float(y))
        for path in re.findall(r'<path class="series" d="([^"]*)"', picture)
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)
    ]
    highest = min(y for _, y in curve)
    assert all(box[3] < highest for box in names)
    title = words_of(picture, "axis-title")["TPOT P95"]
    assert all(apart(title, box) for box in names)
    assert all(box[0] >= 0.0 and box[2] <= WIDTH for box in names)
    uprights = re.findall(r'class="mark" x1="([\d.]+)" y1="[\d.]+" x2="[\d.]+" y2="([\d.]+)"', picture)
    crossed = [
        box for x, top in uprights for box in names if box[0] < float(x) < box[2] and float(top) < box[1]
    ]
    assert not crossed


def test_a_dot_on_a_curve_has_its_name_beside_the_curve() -> None:
    flat = Series("one", (0.0, 10.0), (5.0, 5.0))
    picture = svg(
        LineChart(title="a", x=Axis("x"), y=Axis("y"), series=(flat,), points=(Point("yours", 5.0, 5.0),))
    )
    (box,) = words_of(picture, "label").values()
    (y,) = set(re.findall(r"[ML][\d.]+ ([\d.]+)", picture))
    assert not box[1] <= float(y) <= box[3]


@pytest.mark.parametrize(
    ("span_s", "said"),
    [
        (10 * 3600.0, ["0 s", "2 h", "4 h", "6 h", "8 h", "10 h"]),
        (1200.0, ["0 s", "5 min", "10 min", "15 min", "20 min"]),
    ],
)
def test_a_long_axis_of_time_is_round_on_a_clock(span_s: float, said: list[str]) -> None:
    chart = LineChart(
        title="t",
        x=Axis("time", "s"),
        y=Axis("share", "fraction"),
        series=(Series("a", (0.0, span_s), (0.0, 1.0)),),
    )
    drawn = re.findall(r">([^<]+)</text>", svg(chart))
    assert [one for one in drawn if one in said] == said
    assert not any("2.78" in one or "3.33" in one for one in drawn)
