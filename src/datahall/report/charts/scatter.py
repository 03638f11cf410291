"""Dots around the diagonal on which two numbers are equal, such as what was predicted against what was measured."""

from __future__ import annotations

import math

from datahall.answer import ScatterChart
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
    for point in chart.points:
        x, y = across(point.x), up(point.y)
        parts.append(
            f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="5">'
            f"<title>{escape(point.label)}: {escape(point.note)}</title></circle>"
        )
        if abs(up(point.x) - y) > APART:
            parts.append(labels.place(x, y, point.label, 5))
    return picture(chart.title, [*parts, *legend(keys, round_dots=True)])


def _ends(chart: ScatterChart) -> tuple[float, float]:
    """The powers of ten around all numbers, the same on both axes."""
    values = [value for one in chart.series for value in (*one.x, *one.y)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)
