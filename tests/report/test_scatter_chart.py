"""Dots lie where their numbers say, and on the diagonal where the two are equal."""

from __future__ import annotations

import re

import pytest
from tests.report.test_line_chart import apart, words_of

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


def grid(picture: str) -> list[tuple[float, float, float, float, str]]:
    """The lines of the grid from end to end, each with the number that stands at it."""
    found = re.findall(
        r'class="grid" x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"/><text [^>]*>([^<]*)<', picture
    )
    return [(float(x1), float(y1), float(x2), float(y2), said) for x1, y1, x2, y2, said in found]


def dots(picture: str) -> list[tuple[float, float]]:
    (first, _) = re.findall(r'<path class="cloud" d="([^"]*)"', picture)
    return [(float(x), float(y)) for x, y in re.findall(r"M(-?[\d.]+) (-?[\d.]+)h0", first)]


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


def test_dots_lie_at_the_numbers_of_both_axes() -> None:
    """1 ms across and 100 ms up; the axes have the same numbers, from corner to corner."""
    picture = drawn((1e-3, 1e-1), (1.0, 1e-2))
    upright = {said: x1 for x1, _, x2, _, said in grid(picture) if x1 == x2}
    level = {said: y1 for _, y1, _, y2, said in grid(picture) if y1 == y2}
    assert list(upright) == list(level) == ["1 ms", "10 ms", "100 ms", "1 s"]
    assert dots(picture) == [(upright["1 ms"], level["100 ms"]), (upright["1 s"], level["10 ms"])]
    for x1, y1, x2, y2, _ in grid(picture):
        ends = {x1, x2} if y1 == y2 else {y1, y2}
        assert ends == ({upright["1 ms"], upright["1 s"]} if y1 == y2 else {level["1 ms"], level["1 s"]})


@pytest.mark.parametrize("far", [30.0, 1 / 30.0])
def test_every_dot_is_inside_the_frame_however_far_one_number_is_from_the_other(far: float) -> None:
    pairs = [(x, x * far) for x in (1e-2, 3e-2, 1e-1)]
    picture = drawn(*pairs)
    lines = grid(picture)
    found = dots(picture)
    assert len(found) == len(pairs)
    for x, y in found:
        assert min(line[0] for line in lines) <= x <= max(line[2] for line in lines)
        assert min(line[1] for line in lines) <= y <= max(line[3] for line in lines)


def test_names_of_many_clouds_stand_above_the_axes() -> None:
    names = [f"source {number} of the measurements" for number in range(12)]
    one = Axis("time", "s", log=True)
    clouds = tuple(Series(name, (1.0,), (2.0,)) for name in names)
    picture = svg(ScatterChart(title="rows", x=one, y=one, series=clouds))
    bases = {
        words: float(y)
        for y, words in re.findall(r'<text [^>]*y="([\d.]+)"[^>]*>([^<]*)<', picture)
        if words in names
    }
    assert set(bases) == set(names)
    assert len(set(bases.values())) > 1  # lines of them
    assert max(bases.values()) < min(min(y1, y2) for _, y1, _, y2, _ in grid(picture))


def test_names_of_dots_lie_on_no_dot_and_on_no_other_name() -> None:
    """Three far below the diagonal, at its upper end: to the left of them are the dots of the others."""
    pairs = [(10.0 ** (-place / 40), 10.0 ** (-place / 40)) for place in range(200)]
    worst = tuple(
        Point(f"all_reduce 1 GB on {n}, tree Simple", x, y)
        for n, x, y in ((2, 0.3, 0.05), (4, 0.2, 0.02), (8, 0.1, 0.01))
    )
    picture = drawn(*pairs, points=worst)
    places = [
        *dots(picture),
        *((float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', picture)),
    ]
    boxes = list(words_of(picture, "label").values())
    assert len(boxes) == len(worst)
    for number, box in enumerate(boxes):
        assert all(apart(box, other) for other in boxes[:number])
        assert not [at for at in places if box[0] < at[0] < box[2] and box[1] < at[1] < box[3]]
