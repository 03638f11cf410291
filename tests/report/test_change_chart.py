"""Bars of changes lie on the side of their sign, as long as they are large, and inside the picture."""

from __future__ import annotations

import re

import pytest

from datahall.answer import Answer, ChangeChart
from datahall.report import render
from datahall.report.charts.chart import LETTER, WIDTH, svg


def bars(shares: tuple[float, ...]) -> tuple[float, list[tuple[float, float, str]]]:
    drawn = svg(ChangeChart(title="step", rows=tuple(f"change {share}" for share in shares), shares=shares))
    zero = re.search(r'class="axis" x1="([\d.]+)"', drawn)
    assert zero is not None
    found = re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)" height="18" fill="([^"]+)"', drawn)
    for x, anchor, words in re.findall(r'x="([\d.]+)" y="[\d.]+" text-anchor="(\w+)">([^<]*)<', drawn):
        width = LETTER * len(words)
        assert float(x) >= width if anchor == "end" else float(x) + width <= WIDTH + 0.1, words
    return float(zero[1]), [(float(x), float(width), color) for x, width, color in found]


def test_more_is_right_of_the_line_and_less_is_left() -> None:
    zero, (more, less, none) = bars((0.2, -0.1, 0.0))
    assert more[0] == pytest.approx(zero, abs=0.1)
    assert less[0] + less[1] == pytest.approx(zero, abs=0.1)
    assert more[1] == pytest.approx(2 * less[1], abs=0.2)
    assert none[1] == 0
    assert more[2] != less[2]


@pytest.mark.parametrize("shares", [(0.1,), (-0.1,), (0.0,), (3.0, -0.5)])
def test_one_sided_changes_fill_the_picture(shares: tuple[float, ...]) -> None:
    zero, found = bars(shares)
    assert 0 < zero < WIDTH
    assert max(width for _, width, _ in found) > 300 or shares == (0.0,)


def test_what_takes_more_has_the_colour_of_a_no_and_what_takes_less_a_green() -> None:
    """In the light and in the dark."""
    _, (more, less, none) = bars((0.2, -0.1, 0.0))
    style = render(Answer(kind="example", headline="It does."), "html")
    assert re.search(r"p\.no \{ color: ([^;]+);", style)[1] == more[2] == none[2]  # type: ignore[index]
    shades = re.findall(re.escape(less[2][4:-1]) + r": #(\w\w)(\w\w)(\w\w);", style)
    assert len(shades) == 2
    for red, green, blue in shades:
        assert int(green, 16) > max(int(red, 16), int(blue, 16))
