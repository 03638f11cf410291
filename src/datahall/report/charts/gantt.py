"""Who had what when: rows of bars over time, such as the jobs on the nodes of a cluster."""

from __future__ import annotations

from datahall.answer import Bar, GanttChart
from datahall.report.charts.chart import COLORS, LETTER, WIDTH, escape, line, picture, steps, text
from datahall.units import fmt

TALL, SHORT, MANY = 22, 13, 16  # height of a row of a few, and of more than that
GAP, TOP, BELOW = 3, 6, 30
# of time between two lines: seconds, minutes, hours, days
EVERY_S = (1, 5, 15, 60, 300, 900, 3600, 7200, 4 * 3600, 8 * 3600, 86400, 2 * 86400, 7 * 86400, 28 * 86400)
MOST_LINES = 8


def draw(chart: GanttChart) -> str:
    """Draw a row for each thing, its bars with the names that fit in, and the axis of time."""
    left = LETTER * max(len(name) for name in chart.rows) + 14
    height = TALL if len(chart.rows) <= MANY else SHORT
    floor = TOP + len(chart.rows) * (height + GAP)
    end = chart.end or 1.0
    across = (WIDTH - left - 8) / end
    labels = list(dict.fromkeys(bar.label for bar in chart.bars))
    colors = {label: COLORS[index % len(COLORS)] for index, label in enumerate(labels)}
    parts = []
    for value in times(end):
        x, said = left + value * across, fmt(value, "s", 3)
        parts.append(line(x, TOP, x, floor, "grid"))
        parts.append(text(min(x, WIDTH - LETTER * len(said) / 2), floor + 16, said, "tick", "middle"))
    for row, name in enumerate(chart.rows):
        y = TOP + row * (height + GAP)
        parts.append(text(left - 10, y + height / 2 + 4, name, "tick", "end"))
        parts.append(line(left, y + height + GAP / 2, WIDTH - 8, y + height + GAP / 2, "grid"))
    parts += [_bar(bar, left, across, height, colors[bar.label]) for bar in chart.bars]
    parts.append(line(left, floor, WIDTH - 8, floor, "axis"))
    return picture(chart.title, parts, height=floor + BELOW)


def times(end: float) -> list[float]:
    """Round times that divide an axis [s].

    >>> times(10 * 3600.0)
    [0.0, 7200.0, 14400.0, 21600.0, 28800.0, 36000.0]
    """
    every = next((one for one in EVERY_S if 1.0 <= end / one <= MOST_LINES), None)
    return steps(0.0, end) if every is None else [float(every * one) for one in range(int(end / every) + 1)]


def _bar(bar: Bar, left: float, across: float, height: int, color: str) -> str:
    """A bar with its name, where there is room for it."""
    x, width = left + bar.start * across, (bar.end - bar.start) * across
    y = TOP + bar.row * (height + GAP) + bar.low * height
    tall = (bar.high - bar.low) * height
    said = f"{bar.label}: {fmt(bar.start, 's')} to {fmt(bar.end, 's')}"
    drawn = (
        f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.6):.1f}" height="{max(tall, 0.8):.1f}" '
        f'fill="{color}"><title>{escape(said)}</title></rect>'
    )
    if width < LETTER * len(bar.label) + 8 or tall < SHORT:
        return drawn
    return drawn + text(x + width / 2, y + tall / 2 + 4, bar.label, "in-bar", "middle")
