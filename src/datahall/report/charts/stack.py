"""Bars cut into parts, such as what takes the memory of a chip."""

from __future__ import annotations

from datahall.answer import StackChart
from datahall.report.charts.chart import (
    BAR,
    COLORS,
    GAP,
    ROW,
    WIDTH,
    escape,
    legend,
    legend_rows,
    picture,
    text,
    width_of,
)
from datahall.units import fmt

TOP = 36
FADED = {"free": "var(--free)", "kept back": "var(--kept)"}


def draw(chart: StackChart) -> str:
    """Draw one bar per row on a common scale, with its total at the end."""
    totals = [sum(values[row] for values in chart.parts.values()) for row in range(len(chart.rows))]
    left = max(map(width_of, chart.rows)) + 14
    ends = [fmt(total, chart.unit, 3) for total in totals]
    scale = (WIDTH - left - max(map(width_of, ends)) - 10) / (max(totals) or 1.0)
    colors = dict(names(chart))
    rows = legend_rows(names(chart), WIDTH)
    parts = legend(rows, WIDTH, 14)
    top = TOP + ROW * (len(rows) - 1) if parts else GAP
    for row, name in enumerate(chart.rows):
        y = top + row * (BAR + GAP)
        parts.append(text(left - 10, y + 13, name, "tick", "end"))
        x = left
        for part, values in chart.parts.items():
            width = max(0.0, values[row]) * scale
            said = f"{name}, {part}: {fmt(values[row], chart.unit)}"
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colors[part]}">'
                f"<title>{escape(said)}</title></rect>"
            )
            x += width
        parts.append(text(x + 8, y + 13, ends[row], "tick"))
    return picture(chart.title, parts, height=int(top) + len(chart.rows) * (BAR + GAP))


def names(chart: StackChart) -> list[tuple[str, str]]:
    """Each part with its colour."""
    own = iter(COLORS)
    return [(name, FADED.get(name) or next(own, COLORS[-1])) for name in chart.parts]
