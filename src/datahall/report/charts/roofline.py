"""The roofline chart: roofs of arithmetic, slopes of bandwidth, and a point per operator."""

from __future__ import annotations

import math

from datahall.answer import Axis, Point, RooflineChart
from datahall.report.charts.chart import (
    FLOOR,
    LEFT,
    LETTER,
    RIGHT,
    TOP,
    Labels,
    Scale,
    escape,
    frame,
    legend,
    line,
    picture,
)
from datahall.report.charts.chart import text as words
from datahall.units import fmt

COLOR = {"compute": "var(--c2)", "memory": "var(--c1)", "launch": "var(--c3)"}
NAMED, FEW = 0.01, 8  # where there are many points, those of a smaller share are named by the hover only


def draw(chart: RooflineChart) -> str:
    """Draw roofs, slopes and points on logarithmic axes."""
    across, up = _scales(chart)
    x, y = (
        Axis("arithmetic intensity", "flop_per_byte", log=True),
        Axis("achieved arithmetic", "flop_per_s", log=True),
    )
    parts = frame(x, y, across, up)
    labels = Labels(across.end, up.end, across.start, up.start)
    for point in chart.points:
        radius = _radius(point)
        labels.take(across(point.x) - radius * 0.7, up(point.y) - radius * 0.7, 1.4 * radius, 1.4 * radius)
    top = max(chart.roofs.values())
    for name, peak in chart.roofs.items():
        parts += _roof(name, peak, chart, across, up, labels)
    for index, (name, rate) in enumerate(chart.slopes.items()):
        parts += _slope(name, rate, top, across, up, labels, main=index == 0)
    parts += _points(chart.points, across, up, labels)
    parts += legend([names(chart)], round_dots=True)
    return picture(chart.title, parts)


def names(chart: RooflineChart) -> list[tuple[str, str]]:
    """What binds the operators that are drawn, each with its colour."""
    groups = [name for name in COLOR if any(point.group == name for point in chart.points)]
    return [(f"{name}-bound", COLOR[name]) for name in groups]


def _scales(chart: RooflineChart) -> tuple[Scale, Scale]:
    ridge = max(chart.roofs.values()) / min(chart.slopes.values())
    xs = [point.x for point in chart.points] + [ridge * 4]
    ys = [point.y for point in chart.points] + [max(chart.roofs.values()) * 2.2]
    low_x, high_x = 10 ** math.floor(math.log10(0.7 * min(xs))), max(xs) * 1.6
    floor = min([*ys, low_x * min(chart.slopes.values())])
    low_y, high_y = 10 ** math.floor(math.log10(floor)), max(ys)
    return (
        Scale(low_x, high_x, LEFT, RIGHT, log=True),
        Scale(low_y, high_y, FLOOR, TOP, log=True),
    )


def _slope(
    name: str, rate: float, top: float, across: Scale, up: Scale, labels: Labels, *, main: bool
) -> list[str]:
    """The line below which a bandwidth holds arithmetic: FLOP/s = FLOP/B × B/s."""
    start = max(across.low, up.low / rate)
    ridge = min(across.high, top / rate)
    x1, y1, x2, y2 = across(start), up(start * rate), across(ridge), up(ridge * rate)
    said = f"{name} {fmt(rate, 'bytes_per_s')}"
    for share in (0.3, 0.6, 0.45, 0.75, 0.15):
        at, high = x1 + share * (x2 - x1), y1 + share * (y2 - y1) + (16 if main else -8)
        if labels.free((at - 48, high - 32, at + 48, high + 30)):
            break
    labels.take(at - 40, high - 24, 80, 40)
    angle = math.degrees(math.atan2(y2 - y1, x2 - x1))
    turned = f' transform="rotate({angle:.1f} {at:.1f} {high:.1f})"'
    return [
        line(x1, y1, x2, y2, "roof" if main else "roof faint"),
        words(at, high, said, "roof-label", "middle", turned),
    ]


def _roof(
    name: str, peak: float, chart: RooflineChart, across: Scale, up: Scale, labels: Labels
) -> list[str]:
    start = min(max(peak / max(chart.slopes.values()), across.low), across.high)
    high = up(peak)
    said = f"{name} {fmt(peak, 'flop_per_s')}"
    corner = across(start) - 12
    labels.take(corner - LETTER * len(said), high - 11, LETTER * len(said), 15)
    labels.take(across(start), high - 1, across.end - across(start), 2)
    return [
        line(across(start), high, across.end, high, "roof"),
        words(corner, high + 3, said, "roof-label", "end"),
    ]


def _points(points: tuple[Point, ...], across: Scale, up: Scale, labels: Labels) -> list[str]:
    """Heaviest first, so that their names find room; the area of a dot grows with its share of the time."""
    dots, names = [], []
    for point in sorted(points, key=lambda one: -one.weight):
        x, y, radius = across(point.x), up(point.y), _radius(point)
        color = COLOR.get(point.group, "var(--c4)")
        dots.append(
            f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{color}">'
            f"<title>{escape(point.label)}: {escape(point.note)}</title></circle>"
        )
        if point.weight >= NAMED or len(points) <= FEW:
            names.append(labels.place(x, y, point.label, radius))
    return [*dots, *names]


def _radius(point: Point) -> float:
    return 3.5 + 11 * math.sqrt(point.weight)
