"""Dots around the diagonal on which two numbers are equal, such as what was predicted against what was measured."""

from __future__ import annotations

import math

from datahall.answer import Point, ScatterChart, Series
from datahall.report.charts.chart import (
    FLOOR,
    LEFT,
    RIGHT,
    ROW,
    TOP,
    Labels,
    Scale,
    colored,
    escape,
    frame,
    legend,
    legend_rows,
    line,
    picture,
    room_beside,
)

APART = 30  # from the diagonal, beyond which a dot has its name beside it and not in the hover alone


def draw(chart: ScatterChart) -> str:
    """Draw the diagonal, a cloud of dots for each series and the named ones over them."""
    keys = legend_rows(colored(chart.series), room_beside(chart.y.label))
    low, high = _ends(chart)
    across = Scale(low, high, LEFT, RIGHT, log=True)
    up = Scale(low, high, FLOOR, TOP + ROW * (len(keys) - 1), log=True)
    parts = frame(chart.x, chart.y, across, up)
    parts.append(line(across(low), up(low), across(high), up(high), "axis"))
    for (_, color), one in zip(colored(chart.series), chart.series, strict=True):
        places = (f"M{across(x):.1f} {up(y):.1f}h0" for x, y in zip(one.x, one.y, strict=True))
        parts.append(f'<path class="cloud" d="{"".join(places)}" stroke="{color}"/>')
    labels = Labels(across.end, up.end, across.start, up.start)
    labels.avoid_line([(across(low), up(low)), (across(high), up(high))])
    for dots in (*chart.series, *(Series(one.label, (one.x,), (one.y,)) for one in chart.points)):
        for x, y in zip(dots.x, dots.y, strict=True):
            labels.avoid(across(x), up(y))
    for point in sorted(chart.points, key=_outwards):
        x, y = across(point.x), up(point.y)
        parts.append(
            f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="5">'
            f"<title>{escape(point.label)}: {escape(point.note)}</title></circle>"
        )
        if abs(up(point.x) - y) > APART:
            own_side = 1 if y > up(point.x) else -1  # of the diagonal, along which most dots lie
            parts.append(labels.place_clear(x, y, point.label, 5, own_side))
    return picture(chart.title, [*parts, *legend(keys, round_dots=True)])


def _outwards(point: Point) -> tuple[bool, float]:
    """From which end dots get their names: those below the diagonal go to the left, each below the one before it."""
    above = point.y > point.x
    return above, -point.x if above else point.x


def _ends(chart: ScatterChart) -> tuple[float, float]:
    """The powers of ten around all numbers, the same on both axes."""
    values = [value for one in chart.series for value in (*one.x, *one.y)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)
