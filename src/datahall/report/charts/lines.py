"""Lines over an axis with named places on it, such as bandwidth over the size of a working set."""

from __future__ import annotations

import math

from datahall.answer import Axis, LineChart
from datahall.report.charts.chart import (
    FLOOR,
    HEIGHT,
    LEFT,
    LETTER,
    RIGHT,
    ROW,
    TOP,
    UNIT_LETTERS,
    WIDTH,
    Labels,
    Scale,
    colored,
    escape,
    frame,
    legend,
    legend_rows,
    line,
    path,
    picture,
    room_beside,
    text,
)
from datahall.report.charts.heads import heads


def draw(chart: LineChart) -> str:
    """Draw the lines, the named places and a legend."""
    across = _scale(chart.x, [x for one in chart.series for x in one.x], LEFT, RIGHT)
    colors = dict(colored(chart.series))
    keys = legend_rows(colored(chart.series), room_beside(chart.y.label))
    marks = [mark for mark in chart.marks if across.low <= mark.x <= across.high]
    taken = LETTER * (len(chart.y.label) + UNIT_LETTERS)
    names = heads(
        [across(mark.x) for mark in marks], [LETTER * len(mark.label) for mark in marks], LEFT, WIDTH, taken
    )
    above = ROW * (1 + max(head.row for head in names)) if names else 0.0
    top = TOP + ROW * (len(keys) - 1) + above
    up = _scale(chart.y, [y for one in chart.series for y in one.y], FLOOR + above, top)
    parts = frame(chart.x, chart.y, across, up)
    for mark, head in zip(marks, names, strict=True):
        place, base = across(mark.x), up.end - 10 - ROW * head.row
        parts.append(line(place, up.start, place, base + 4, "mark"))
        parts.append(text(head.start, base, mark.label, "label"))
    labels = Labels(across.end, up.end, across.start, up.start)
    for one in sorted(chart.series, key=lambda series: not series.dashed):  # what is whole lies on top
        places = [(across(x), up(y)) for x, y in zip(one.x, one.y, strict=True)]
        parts.append(path(places, colors[one.name], dashed=one.dashed))
        labels.avoid_line(places)
    for point in chart.points:
        x, y = across(point.x), up(point.y)
        note = f"{point.label}: {point.note}" if point.note else point.label
        parts.append(
            f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="5" fill="var(--c2)">'
            f"<title>{escape(note)}</title></circle>"
        )
        parts.append(labels.place(x, y, point.label, 5))
    return picture(chart.title, [*parts, *legend(keys)], height=HEIGHT + round(above))


def _scale(axis: Axis, values: list[float], start: float, end: float) -> Scale:
    low, high = min(values), max(values)
    if not axis.log:
        whole = axis.unit == "fraction" and high <= 1.0  # there is no more than all
        return Scale(min(0.0, low), 1.0 if whole else high * 1.05 or 1.0, start, end)
    floor, ceiling = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high * 1.2))
    return Scale(
        min(low, floor) if start > end else low, ceiling if start > end else high, start, end, log=True
    )
