"""Bars on both sides of what is, such as how much longer a step takes with one choice changed."""

from __future__ import annotations

from datahall.answer import ChangeChart
from datahall.report.cell import shown
from datahall.report.charts.chart import BAR, GAP, WIDTH, escape, line, picture, text, width_of

TOP = 8
MORE, LESS = "var(--c2)", "var(--c4)"


def draw(chart: ChangeChart) -> str:
    """Draw one bar per row from the line of no change, with its share at the end."""
    left = max(map(width_of, chart.rows)) + 14
    words = [shown(share, "fraction") for share in chart.shares]
    beside = max(map(width_of, words)) + 10
    low, high = min(0.0, *chart.shares), max(0.0, *chart.shares)
    start, end = left + (beside if low else 0.0), WIDTH - beside
    scale = (end - start) / ((high - low) or 1.0)
    zero = start - low * scale
    height = TOP + len(chart.rows) * (BAR + GAP)
    parts = []
    for row, (name, share) in enumerate(zip(chart.rows, chart.shares, strict=True)):
        y, width = TOP + row * (BAR + GAP), abs(share) * scale
        x = zero if share >= 0 else zero - width
        parts.append(text(left - 10, y + 13, name, "tick", "end"))
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{MORE if share >= 0 else LESS}">'
            f"<title>{escape(f'{name}: {words[row]}')}</title></rect>"
        )
        at, anchor = (x + width + 6, "start") if share >= 0 else (x - 6, "end")
        parts.append(text(at, y + 13, words[row], "tick", anchor))
    parts.append(line(zero, 0, zero, height - GAP + TOP, "axis"))
    return picture(chart.title, parts, height=height)
