"""The map of the house and the page of what to add name places that exist, and can be read in any window."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.test_house import MOST_MODULES, ORDER

ROOT = Path(__file__).parents[2]
NAMES = ["architecture", "how-to-add", "operations-map"]
PAGES = [(ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in NAMES]
MAP, HOW_TO_ADD, OPERATIONS = PAGES
each_page = pytest.mark.parametrize("text", PAGES, ids=NAMES)
BOTH = "\n".join(PAGES)
PLACES = sorted(set(re.findall(r"`([a-z_]+(?:/[a-z0-9_.]+)*(?:/|\.(?:py|toml|csv|json|md)))`", BOTH)))
ELSEWHERE = ("src", "tests", "docs", "calibration", "release")
MOST_LINES, MOST_CHARACTERS = 120, 12_000  # of a page
LONGEST, LONGEST_ROW = 120, 300  # characters of a line, and of a row of a table, which cannot be broken
# a row of a table or a point of a list, whole
POINTS = [
    " ".join(point.split())
    for point in re.findall(r"^(?:\| .*|- .*(?:\n  .*)*)", BOTH, re.MULTILINE)
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


HOMES = sorted(
    set(
        re.findall(
            r"(?:a|the) (?:file|module)[\w ]{0,20} (?:in|of|below) `([\w/]+/)`", " ".join(HOW_TO_ADD.split())
        )
    )
)


def test_the_folders_that_get_a_file_for_what_is_added_are_known() -> None:
    assert {"scenario/sections/", "answers/verbs/", "fabric/topology/", "catalog/entries/"} <= set(HOMES)


@pytest.mark.parametrize("folder", HOMES)
def test_what_is_added_next_finds_room(folder: str) -> None:
    """A file as the page says does not end in a folder of too many."""
    modules = [
        path for path in (ROOT / "src" / "datahall" / folder).glob("*.py") if path.name != "__init__.py"
    ]
    assert len(modules) < MOST_MODULES, "give some of them a folder of their own first"


def test_every_room_is_on_the_map() -> None:
    house = ROOT / "src" / "datahall"
    rooms = [path.name for path in house.iterdir() if (path / "__init__.py").exists()]
    assert [room for room in rooms if f"{room}/" not in MAP] == []


@each_page
def test_a_page_speaks_of_places(text: str) -> None:
    assert len([place for place in PLACES if f"`{place}`" in text]) > 40


def test_the_picture_has_the_rooms_in_the_order_of_the_house() -> None:
    """A room stands on those that it imports: the last of the order on top."""
    drawn = re.findall(r"^ │  ([a-z]+)/ ", MAP, re.MULTILINE)
    assert len(drawn) > 5
    assert drawn == sorted(drawn, key=ORDER.index, reverse=True)


@each_page
def test_a_page_is_one_page(text: str) -> None:
    """Not by long lines: what does not fit is shortened or gets a page of its own."""
    assert len(text.splitlines()) <= MOST_LINES
    assert len(text) <= MOST_CHARACTERS


@each_page
def test_lines_can_be_read_in_any_window(text: str) -> None:
    longest = {line: LONGEST_ROW if line.startswith("| ") else LONGEST for line in text.splitlines()}
    assert [line for line, most in longest.items() if len(line) > most] == []


def test_the_pages_lead_to_each_other() -> None:
    assert "(how-to-add.md)" in MAP
    assert "(operations-map.md)" in MAP
    assert "(architecture.md)" in HOW_TO_ADD
    assert "(architecture.md)" in OPERATIONS
    assert "(how-to-add.md)" in OPERATIONS
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(docs/architecture.md)" in readme
    assert "(docs/how-to-add.md)" in readme
