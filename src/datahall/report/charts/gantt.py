"""Who had what when: rows of bars over time, such as the jobs on the nodes of a cluster."""

from __future__ import annotations

from datahall.answer import Bar, GanttChart
from datahall.report.charts.chart import COLORS, LETTER, WIDTH, escape, line, picture, text, times
from datahall.units import fmt

TALL, SHORT, MANY = 22, 13, 16  # height of a row of a few, and of more than that
GAP, TOP, BELOW = 3, 6, 30


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
    for value in times(0.0, end):
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
