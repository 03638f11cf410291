"""A fabric is drawn with a box a group, a line a bundle, and the chips below their switches."""

from __future__ import annotations

import re

from datahall.answer import Boxes, Cables, TopologyChart
from datahall.report.charts.chart import LETTER, WIDTH, svg

TREE = TopologyChart(
    title="tree",
    rows=(
        Boxes("chip", "4 chips", (2, 2)),
        Boxes("leaf switch", "2 leaf switches", (1, 1)),
        Boxes("spine switch", "1 spine switch", (1,)),
    ),
    cables=(
        Cables((0, 0), (1, 0), 2, 4e9),
        Cables((0, 1), (1, 1), 2, 4e9),
        Cables((1, 0), (1, 1), 1, 1e9),
        Cables((1, 0), (2, 0), 1, 1e9),
        Cables((1, 1), (2, 0), 1, 1e9),
    ),
)
RING = TopologyChart(
    title="ring",
    rows=(Boxes("chip", "3 chips", (1, 1, 1)),),
    cables=tuple(Cables((0, low), (0, high), 1, 1e9) for low, high in ((0, 1), (1, 2), (0, 2))),
)


def boxes(drawn: str) -> list[tuple[float, float, float, str]]:
    found = re.findall(
        r'<rect class="box" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"[^>]*><title>([^<]*)</title>', drawn
    )
    return [(float(x), float(y), float(width), title) for x, y, width, title in found]


def test_chips_stand_below_their_switches_and_no_box_covers_another() -> None:
    found = boxes(svg(TREE))
    heights = {title.partition(" ")[0]: y for _, y, _, title in found}
    assert len(found) == 5
    assert heights["chip"] > heights["leaf"] > heights["spine"]
    chips = sorted((x, width) for x, _, width, title in found if title.startswith("chip"))
    assert chips[0][0] + chips[0][1] < chips[1][0]


def test_every_bundle_is_a_line_that_says_what_it_carries() -> None:
    said = re.findall(
        r'<path class="cable" d="([^"]*)" stroke-width="([\d.]+)"><title>([^<]*)</title>', svg(TREE)
    )
    assert len(said) == len(TREE.cables)
    assert said[0][2] == "chip 1 of 2 to leaf switch 1 of 2: 2 links, 4 GB/s one way"
    assert float(said[0][1]) > float(said[2][1])
    assert ["Q" in way for way, *_ in said] == [False, False, True, False, False]  # beside each other: bent


def test_each_row_says_how_many_there_are_and_what_goes_up() -> None:
    words = re.findall(r">([^<>]+)</text>", svg(TREE))
    assert {"4 chips", "2 leaf switches", "1 spine switch", "4 links, 8 GB/s", "2 links, 2 GB/s"} <= set(
        words
    )


def test_one_row_is_a_ring() -> None:
    drawn = svg(RING)
    found = boxes(drawn)
    assert len({(x, y) for x, y, *_ in found}) == 3
    assert len({y for _, y, *_ in found}) > 1
    assert "Q" not in "".join(re.findall(r' d="([^"]*)"', drawn))
    assert ">3 chips</text>" in drawn


def test_a_drawing_stays_inside_its_picture() -> None:
    for drawn in (svg(TREE), svg(RING)):
        height = float(re.search(r'viewBox="0 0 \d+ (\d+)"', drawn)[1])  # type: ignore[index]
        for x, y, width, _ in boxes(drawn):
            assert x >= 0
            assert x + width <= WIDTH
            assert 0 <= y <= height - 26
    names = re.findall(r'<text class="label" x="0.0" [^>]*>([^<]*)<', svg(TREE))
    assert LETTER * max(map(len, names)) < min(x for x, *_ in boxes(svg(TREE)))
