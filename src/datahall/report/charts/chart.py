"""Charts as SVG, drawn here so that a page needs nothing from outside.

Colours are CSS variables of the page, so a chart follows its light or dark theme.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape as escape
from itertools import pairwise

import msgspec

from datahall.answer import (
    Axis,
    ChangeChart,
    Chart,
    GanttChart,
    LineChart,
    RooflineChart,
    ScatterChart,
    Series,
    StackChart,
    TopologyChart,
)
from datahall.units import DAY_S, fmt

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, FLOOR, TOP = 92, WIDTH - 20, HEIGHT - 46, 28  # where two axes begin and end
COLORS = tuple(f"var(--c{number})" for number in range(1, 11))
KEY, ROW = 34.0, 17.0  # of a legend: what a name takes beside its letters, and the height of a line
SHORT_UNIT = 4  # letters, e.g. of GB/s: longer ones would not fit beside every number
LETTER = 6.9  # width of a letter of a label, for placing; generous, for fonts differ
DIGIT, WIDE = 7.4, 11.5  # that of a digit, and of a letter in WIDEST
WIDEST = "MWm%@"
UNIT_LETTERS = 12  # that the title of an axis may get besides, for its unit
# of time between two lines: seconds, minutes, hours, days
EVERY_S = (
    1, 2, 5, 15, 30, 60, 120, 300, 900, 1800, 3600, 7200, 4 * 3600, 8 * 3600, 86400, 2 * 86400, 7 * 86400, 28 * 86400,
)  # fmt: skip
MOST_LINES = 8
BAR, GAP = 18, 9  # height of a bar, and between two
FAR = 240  # how far below or above its point a label may stand, in steps of a line
DOT = 5.0  # around a point of a cloud or a curve that no label should cover

Box = tuple[float, float, float, float]


def svg(chart: Chart) -> str:
    """Draw a chart."""
    match chart:
        case RooflineChart():
            from datahall.report.charts.roofline import draw as draw_roofline

            return draw_roofline(chart)
        case LineChart():
            from datahall.report.charts.lines import draw as draw_lines

            return draw_lines(chart)
        case StackChart():
            from datahall.report.charts.stack import draw as draw_stack

            return draw_stack(chart)
        case ScatterChart():
            from datahall.report.charts.scatter import draw as draw_scatter

            return draw_scatter(chart)
        case TopologyChart():
            from datahall.report.charts.topology import draw as draw_topology

            return draw_topology(chart)
        case ChangeChart():
            from datahall.report.charts.changes import draw as draw_changes

            return draw_changes(chart)
        case GanttChart():
            from datahall.report.charts.gantt import draw as draw_gantt

            return draw_gantt(chart)


def keys(chart: Chart) -> list[tuple[str, str]]:
    """The names that a chart tells apart by colour, for a legend that stands beside it; none where there is one."""
    match chart:
        case RooflineChart():
            from datahall.report.charts.roofline import names as names_of_roofline

            found = names_of_roofline(chart)
        case StackChart():
            from datahall.report.charts.stack import names as names_of_stack

            found = names_of_stack(chart)
        case LineChart() | ScatterChart():
            found = colored(chart.series)
        case TopologyChart() | ChangeChart() | GanttChart():
            found = []
    return found if len(found) > 1 else []


def picture(title: str, body: Iterable[str], *, width: int = WIDTH, height: int = HEIGHT) -> str:
    """Wrap drawn parts as one accessible picture that scales with the page."""
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(body)}</svg>"
    )


class Scale(msgspec.Struct, frozen=True):
    """Where a value lies between two pixels, linearly or by its logarithm."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        if self.log:
            value = max(value, 1e-300)
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def decades(low: float, high: float) -> list[float]:
    """The powers of ten (every third where there are many) from `low` to `high`."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, math.ceil((last - first) / 9))
    return [10.0**power for power in range(first, last + 1, step)]


def steps(low: float, high: float, count: int = 6) -> list[float]:
    """Round values that divide a linear axis."""
    rough = (high - low) / count or 1.0
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    first = math.ceil(low / step)
    return [step * index for index in range(first, math.floor(high / step + 1e-9) + 1)]


def times(low: float, high: float) -> list[float]:
    """Round times that divide an axis [s]: whole minutes, hours and days, not so many seconds.

    >>> times(0.0, 10 * 3600.0)
    [0.0, 7200.0, 14400.0, 21600.0, 28800.0, 36000.0]
    >>> times(-90.0, 380.0)
    [-60.0, 0.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0]
    """
    every = next((one for one in EVERY_S if 1.0 <= (high - low) / one <= MOST_LINES), None)
    if every is not None:
        return [
            float(every * one) for one in range(math.ceil(low / every), math.floor(high / every + 1e-9) + 1)
        ]
    unit = EVERY_S[0] if high - low < EVERY_S[0] else DAY_S
    return [unit * one for one in steps(low / unit, high / unit)]


def width_of(words: str) -> float:
    """What a label takes across, in the widest of usual fonts."""
    return sum(WIDE if one in WIDEST else DIGIT if one.isdigit() else LETTER for one in words)


def frame(x: Axis, y: Axis, across: Scale, up: Scale) -> list[str]:
    """Grid, numbers and titles of two axes."""
    parts = []
    (below, x_label), (beside, y_label) = (
        _said(axis, _ticks(axis, scale)) for axis, scale in ((x, across), (y, up))
    )
    for value, said in below:
        place = across(value)
        parts.append(line(place, up.start, place, up.end, "grid"))
        inside = min(place, WIDTH - width_of(said) / 2)  # the last number, where it is long
        parts.append(text(inside, up.start + 18, said, "tick", "middle"))
    for value, said in beside:
        place = up(value)
        parts.append(line(across.start, place, across.end, place, "grid"))
        parts.append(text(across.start - 8, place + 4, said, "tick", "end"))
    parts.append(line(across.start, up.start, across.end, up.start, "axis"))
    parts.append(text((across.start + across.end) / 2, up.start + 38, x_label, "axis-title", "middle"))
    parts.append(text(across.start, up.end - 10, y_label, "axis-title", "start"))
    return parts


def _said(axis: Axis, ticks: Sequence[float]) -> tuple[list[tuple[float, str]], str]:
    """Each tick with its number, and the title; a long unit that all have stands in the title instead."""
    texts = [fmt(value, axis.unit, 3) for value in ticks]
    units = {said.partition(" ")[2] for said in texts}
    unit = units.pop() if len(units) == 1 else ""
    if len(unit) <= SHORT_UNIT:
        return list(zip(ticks, texts, strict=True)), axis.label
    numbers = [said.removesuffix(f" {unit}") for said in texts]
    return list(zip(ticks, numbers, strict=True)), f"{axis.label} [{unit}]"


def _ticks(axis: Axis, scale: Scale) -> list[float]:
    if scale.log:
        return decades(scale.low, scale.high)
    return (times if axis.unit == "s" else steps)(scale.low, scale.high)


def line(x1: float, y1: float, x2: float, y2: float, name: str) -> str:
    """A straight line of a class."""
    return f'<line class="{name}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def text(x: float, y: float, words: str, name: str, anchor: str = "start", extra: str = "") -> str:
    """Words at a place."""
    return (
        f'<text class="{name}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'
    )


def path(points: Iterable[tuple[float, float]], color: str, *, dashed: bool = False) -> str:
    """A line through points."""
    places = " ".join(f"{'M' if index == 0 else 'L'}{x:.1f} {y:.1f}" for index, (x, y) in enumerate(points))
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<path class="series" d="{places}" stroke="{color}"{dash}/>'


class Labels:
    """Puts words beside points so that none covers another; what finds no room is left to the hover.

    Curves and dots are covered only where there is no other room, be it further off with a line to the point.
    """

    def __init__(self, right: float, top: float, left: float, bottom: float) -> None:
        self._bounds = (left, top, right, bottom)
        self._taken: list[Box] = []
        self._drawn: list[Box] = []

    def take(self, x: float, y: float, width: float, height: float) -> None:
        """Keep a box free of words."""
        self._taken.append((x, y, x + width, y + height))

    def avoid(self, x: float, y: float) -> None:
        """A dot that words should not cover."""
        self._drawn.append((x - DOT, y - DOT, x + DOT, y + DOT))

    def avoid_line(self, places: Sequence[tuple[float, float]]) -> None:
        """A curve through points that words should not cover."""
        for (x1, y1), (x2, y2) in pairwise(places):
            pieces = max(1, math.ceil(math.hypot(x2 - x1, y2 - y1) / DOT))
            for piece in range(pieces + 1):
                self.avoid(x1 + (x2 - x1) * piece / pieces, y1 + (y2 - y1) * piece / pieces)

    def place(self, x: float, y: float, words: str, radius: float) -> str:
        """The words near a point, beside what is drawn where they can be, or nothing where they would cover others."""
        gap = radius + 4
        spots: list[tuple[float, float, str]] = []
        for down in (4, -10, 18, -24, 32, 46, 60):
            spots += [(x + gap, y + down, "start"), (x - gap, y + down, "end")]
        spots += [(x, y - gap - 4, "middle"), (x, y + gap + 12, "middle")]
        found = [(self._box(*spot, words), spot) for spot in spots]
        free = [(box, spot) for box, spot in found if self.free(box)]
        if not free:
            return ""
        box, (at, base, anchor) = next((one for one in free if not self._covers(one[0])), free[0])
        self._taken.append(box)
        return text(at, base, words, "label", anchor)

    def place_clear(self, x: float, y: float, words: str, radius: float, way: int) -> str:
        """The words beside a point, or below (1) or above it (-1) with a line to it, where they cover nothing."""
        gap = radius + 4
        sides = ((x - gap, "end"), (x + gap, "start"))[::way]
        for down in range(0, FAR, int(ROW)):
            for at, anchor in sides:
                base, led = y + 4 + way * down, down > ROW
                box = self._box(at, base, anchor, words)
                lead = (x, y + way * 2 * DOT), (at, base - 12 if way > 0 else base + 4)
                if not self.free(box) or self._covers(box) or (led and self._crosses(*lead)):
                    continue
                self._taken.append(box)
                if led:
                    self.avoid_line(lead)
                leader = line(*lead[0], *lead[1], "mark") if led else ""
                return leader + text(at, base, words, "label", anchor)
        return ""

    def _covers(self, box: Box) -> bool:
        """Whether a box lies on a dot or a curve."""
        return any(_overlap(box, other) for other in self._drawn)

    def _crosses(self, start: tuple[float, float], end: tuple[float, float]) -> bool:
        """Whether a line goes over words, a dot or a curve."""
        (x1, y1), (x2, y2) = start, end
        pieces = max(1, math.ceil(math.hypot(x2 - x1, y2 - y1) / DOT))
        spots = [(x1 + (x2 - x1) * one / pieces, y1 + (y2 - y1) * one / pieces) for one in range(pieces + 1)]
        return any(_overlap((x, y, x, y), other) for x, y in spots for other in (*self._taken, *self._drawn))

    @staticmethod
    def _box(at: float, base: float, anchor: str, words: str) -> Box:
        width = LETTER * len(words)
        start = {"start": at, "end": at - width, "middle": at - width / 2}[anchor]
        return start, base - 11, start + width, base + 3

    def free(self, box: Box) -> bool:
        """Whether a box lies inside and covers no words."""
        left, top, right, bottom = self._bounds
        if box[0] < left or box[2] > right or box[1] < top or box[3] > bottom:
            return False
        return not any(_overlap(box, other) for other in self._taken)


def _overlap(box: Box, other: Box) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def room_beside(title: str) -> float:
    """What the title of an upright axis, with its unit, leaves of a line for the legend."""
    return RIGHT - LEFT - LETTER * (len(title) + UNIT_LETTERS)


def legend_rows(names: Sequence[tuple[str, str]], room: float) -> list[list[tuple[str, str]]]:
    """Names with their colours, in as many lines as it takes."""
    rows: list[list[tuple[str, str]]] = [[]]
    for name in names:
        if rows[-1] and _length([*rows[-1], name]) > room:
            rows.append([])
        rows[-1].append(name)
    return rows


def colored(series: Sequence[Series]) -> list[tuple[str, str]]:
    """The name of each series with its colour."""
    return [(one.name, COLORS[index % len(COLORS)]) for index, one in enumerate(series)]


def _length(names: Sequence[tuple[str, str]]) -> float:
    return sum(KEY + LETTER * len(name) for name, _ in names)


def legend(
    rows: Sequence[Sequence[tuple[str, str]]],
    right: float = RIGHT,
    y: float = TOP - 10,
    *,
    round_dots: bool = False,
) -> list[str]:
    """Names with their colours in lines that end at `right`, the first at `y`: above two axes, unless told where."""
    if len(rows) == 1 and len(rows[0]) <= 1:  # nothing to tell apart
        return []
    parts = []
    radius = 5 if round_dots else 2
    for line, names in enumerate(rows):
        x, base = right - _length(names) + 18, y + ROW * line
        for name, color in names:
            parts.append(
                f'<rect x="{x:.1f}" y="{base - 9:.1f}" width="10" height="10" rx="{radius}" fill="{color}"/>'
            )
            parts.append(text(x + 16, base, name, "tick"))
            x += KEY + LETTER * len(name)
    return ['<g class="legend">', *parts, "</g>"]
