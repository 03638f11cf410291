"""The map of the house names places that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.test_house import ORDER

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PLACES = sorted(set(re.findall(r"`([a-z_]+(?:/[a-z0-9_.]+)*(?:/|\.(?:py|toml|csv|md)))`", PAGE)))
ELSEWHERE = ("src", "tests", "docs", "calibration", "release")
# a row of a table or a point of a list, whole
POINTS = [
    " ".join(point.split())
    for point in re.findall(r"^(?:\| .*|- .*(?:\n  .*)*)", PAGE, re.MULTILINE)
    if re.search(r"`[\w/]+(?:/|\.py)`", point)
]
NAME = re.compile(r"`([A-Za-z_]\w*)=?`")


@pytest.mark.parametrize("place", PLACES)
def test_a_place_on_the_map_exists(place: str) -> None:
    base = ROOT if place.split("/")[0] in ELSEWHERE else ROOT / "src" / "datahall"
    assert (base / place).exists()


def text_of(place: str) -> str:
    """What stands in a file, or in all files of a folder."""
    base = ROOT if place.split("/")[0] in ELSEWHERE else ROOT / "src" / "datahall"
    files = sorted((base / place).rglob("*.py")) if place.endswith("/") else [base / place]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize(
    "point", [point for point in POINTS if NAME.search(point)], ids=lambda point: point[:40]
)
def test_a_name_on_the_map_stands_in_a_file_beside_it(point: str) -> None:
    texts = [text_of(place) for place in PLACES if f"`{place}`" in point]
    for name in NAME.findall(point):
        assert any(re.search(rf"\b{name}\b", text) for text in texts), name


@pytest.mark.parametrize(
    ("name", "place"),
    [
        found
        for point in POINTS
        for found in re.findall(r"`([A-Za-z_]\w*)` (?:of |in |\()`([\w/.]+\.py)`", point)
    ],
)
def test_a_name_that_is_said_to_be_in_a_file_is_there(name: str, place: str) -> None:
    assert re.search(rf"\b{name}\b", text_of(place))


def test_every_room_is_on_the_map() -> None:
    house = ROOT / "src" / "datahall"
    rooms = [path.name for path in house.iterdir() if (path / "__init__.py").exists()]
    assert [room for room in rooms if f"{room}/" not in PAGE] == []
    assert len(PLACES) > 40, "the page still speaks of places"


def test_the_picture_has_the_rooms_in_the_order_of_the_house() -> None:
    """A room stands on those that it imports: the last of the order on top."""
    drawn = re.findall(r"^ │  ([a-z]+)/ ", PAGE, re.MULTILINE)
    assert len(drawn) > 5
    assert drawn == sorted(drawn, key=ORDER.index, reverse=True)


def test_the_map_is_one_page() -> None:
    assert len(PAGE.splitlines()) <= 120
