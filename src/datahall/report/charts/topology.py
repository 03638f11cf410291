"""A fabric as rows of boxes from the chips upwards, with the cables between them; one row alone as a ring."""

from __future__ import annotations

import math
from collections.abc import Iterator

from datahall.answer import Cables, TopologyChart
from datahall.counted import counted
from datahall.report.charts.chart import LETTER, RIGHT, WIDTH, escape, picture, text
from datahall.units import fmt

MARGIN, STEP = 40, 110  # above the highest row, and from one to the next
HIGH, WIDEST, GAP = 26, 64, 10  # of a box, and between two
ARC, HIGHER = 12, 9  # how high the cable between two neighbours of a row is bent, and each further one
THIN, THICK = 0.7, 5.0  # lines; the widest bundle has the thickest
RING_X, RING_Y = 0.36 * WIDTH, 120

Place = tuple[int, int]
Spots = dict[Place, tuple[float, float]]


def draw(chart: TopologyChart) -> str:
    """Draw the cables first and the boxes over them."""
    ring = len(chart.rows) == 1
    spots, height = _ring(chart) if ring else _rows(chart)
    widest = max((one.bytes_per_s for one in chart.cables), default=1.0)
    parts = [_cable(chart, one, spots, widest, bent=not ring) for one in chart.cables]
    parts += [_box(chart, place, spots[place]) for place in spots]
    parts += _ring_words(chart, height) if ring else _row_words(chart, spots)
    return picture(chart.title, parts, height=height)


def _ring(chart: TopologyChart) -> tuple[Spots, int]:
    count = len(chart.rows[0].sizes)
    height = 2 * (RING_Y + MARGIN)
    angles = [2 * math.pi * (index + 0.5) / count for index in range(count)]
    return {
        (0, index): (WIDTH / 2 + RING_X * math.sin(angle), height / 2 - RING_Y * math.cos(angle))
        for index, angle in enumerate(angles)
    }, height


def _rows(chart: TopologyChart) -> tuple[Spots, int]:
    left = LETTER * max(len(words) for row in range(len(chart.rows)) for words in _said(chart, row)) + 20
    top = MARGIN + _arched(chart)
    spots = {
        (row, index): (
            left + (RIGHT - left) * (index + 0.5) / len(boxes.sizes),
            top + STEP * (len(chart.rows) - 1 - row),
        )
        for row, boxes in enumerate(chart.rows)
        for index in range(len(boxes.sizes))
    }
    return spots, int(top + STEP * (len(chart.rows) - 1) + HIGH + 10)


def _arched(chart: TopologyChart) -> float:
    """What cables inside the highest row rise above it."""
    last = len(chart.rows) - 1
    spans = [abs(one.high[1] - one.low[1]) for one in chart.cables if one.low[0] == one.high[0] == last]
    return ARC + HIGHER * max(spans) if spans else 0.0


def _cable(chart: TopologyChart, one: Cables, spots: Spots, widest: float, *, bent: bool) -> str:
    (x1, y1), (x2, y2) = spots[one.low], spots[one.high]
    way = f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
    if bent and one.low[0] == one.high[0]:
        top = y1 - HIGH / 2 - 2 * (ARC + HIGHER * (abs(one.high[1] - one.low[1]) - 1))
        way = f"M{x1:.1f} {y1 - HIGH / 2:.1f}Q{(x1 + x2) / 2:.1f} {top:.1f} {x2:.1f} {y2 - HIGH / 2:.1f}"
    width = THIN + (THICK - THIN) * math.sqrt(one.bytes_per_s / widest) if widest else THIN
    said = (
        f"{_name(chart, one.low)} to {_name(chart, one.high)}: {_carried(one.num, one.bytes_per_s)} one way"
    )
    return f'<path class="cable" d="{way}" stroke-width="{width:.1f}"><title>{escape(said)}</title></path>'


def _box(chart: TopologyChart, place: Place, spot: tuple[float, float]) -> str:
    row, index = place
    size, (x, y) = chart.rows[row].sizes[index], spot
    room = RIGHT / len(chart.rows[row].sizes) - GAP
    width = min(WIDEST, room) if size > 1 else HIGH
    box = (
        f'<rect class="box" x="{x - width / 2:.1f}" y="{y - HIGH / 2:.1f}" width="{width:.1f}" height="{HIGH}" rx="4">'
        f"<title>{escape(_name(chart, place))}: {size:,}</title></rect>"
    )
    return box + (text(x, y + 4, f"{size:,}", "in-box", "middle") if size > 1 else "")


def _name(chart: TopologyChart, place: Place) -> str:
    row, index = place
    return f"{chart.rows[row].name} {index + 1} of {len(chart.rows[row].sizes)}"


def _carried(num: int, rate: float) -> str:
    return f"{counted(num, 'link')}, {fmt(rate, 'bytes_per_s', 3)}"


def _said(chart: TopologyChart, row: int) -> Iterator[str]:
    """What stands beside a row: its things counted, and all that goes up from it."""
    yield chart.rows[row].label
    up = [one for one in chart.cables if one.low[0] == row and one.high[0] != row]
    if up:
        yield _carried(sum(one.num for one in up), sum(one.bytes_per_s for one in up))


def _row_words(chart: TopologyChart, spots: Spots) -> list[str]:
    parts = []
    for row in range(len(chart.rows)):
        name, *rest = _said(chart, row)
        y = spots[row, 0][1]
        parts.append(text(0, y + 4, name, "label"))
        parts += [text(0, y - STEP / 2 + 4, words, "tick") for words in rest]
    return parts


def _ring_words(chart: TopologyChart, height: int) -> list[str]:
    (name,) = _said(chart, 0)
    return [text(WIDTH / 2, height / 2 + 4, name, "label", "middle")]
