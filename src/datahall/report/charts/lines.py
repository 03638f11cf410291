"""Lines over an axis with named places on it, such as bandwidth over the size of a working set."""

from __future__ import annotations

import math

from datahall.answer import Axis, LineChart
from datahall.report.charts.chart import (
    FLOOR,
    LEFT,
    LETTER,
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
    path,
    picture,
    room_beside,
    text,
)


def draw(chart: LineChart) -> str:
    """Draw the lines, the named places and a legend."""
    across = _scale(chart.x, [x for one in chart.series for x in one.x], LEFT, RIGHT)
    colors = dict(colored(chart.series))
    keys = legend_rows(colored(chart.series), room_beside(chart.y.label))
    top = TOP + ROW * (len(keys) - 1)
    up = _scale(chart.y, [y for one in chart.series for y in one.y], FLOOR, top)
    parts = frame(chart.x, chart.y, across, up)
    labels = Labels(across.end, 0, across.start, up.start)
    for mark in chart.marks:
        if across.low <= mark.x <= across.high:
            place = across(mark.x)
            parts.append(line(place, up.start, place, up.end, "mark"))
            parts.append(_mark_label(labels, place, up.end, mark.label))
    for one in sorted(chart.series, key=lambda series: not series.dashed):  # what is whole lies on top
        places = [(across(x), up(y)) for x, y in zip(one.x, one.y, strict=True)]
        parts.append(path(places, colors[one.name], dashed=one.dashed))
    for point in chart.points:
        x, y = across(point.x), up(point.y)
        note = f"{point.label}: {point.note}" if point.note else point.label
        parts.append(
            f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="5" fill="var(--c2)">'
            f"<title>{escape(note)}</title></circle>"
        )
        parts.append(labels.place(x, y, point.label, 5))
    return picture(chart.title, [*parts, *legend(keys)])


def _mark_label(labels: Labels, place: float, top: float, said: str) -> str:
    """A name at the head of a place, as near to it as there is room."""
    width = LETTER * len(said)
    for high in (top + 12, top + 27, top + 42):
        for anchor, start in (("start", place + 4), ("end", place - 4 - width)):
            if labels.free((start, high - 11, start + width, high + 3)):
                labels.take(start, high - 11, width, 14)
                at = place + 4 if anchor == "start" else place - 4
                return text(at, high, said, "label", anchor)
    return f"<title>{escape(said)}</title>"


def _scale(axis: Axis, values: list[float], start: float, end: float) -> Scale:
    low, high = min(values), max(values)
    if not axis.log:
        whole = axis.unit == "fraction" and high <= 1.0  # there is no more than all
        return Scale(min(0.0, low), 1.0 if whole else high * 1.05 or 1.0, start, end)
    floor, ceiling = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high * 1.2))
    return Scale(
        min(low, floor) if start > end else low, ceiling if start > end else high, start, end, log=True
    )
