"""The map of the house names places that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PLACES = sorted(set(re.findall(r"`([a-z_]+(?:/[a-z0-9_.]+)*(?:/|\.(?:py|toml|csv|md)))`", PAGE)))
ELSEWHERE = ("src", "tests", "docs", "calibration")


@pytest.mark.parametrize("place", PLACES)
def test_a_place_on_the_map_exists(place: str) -> None:
    base = ROOT if place.split("/")[0] in ELSEWHERE else ROOT / "src" / "datahall"
    assert (base / place).exists()


def test_every_room_is_on_the_map() -> None:
    house = ROOT / "src" / "datahall"
    rooms = [path.name for path in house.iterdir() if (path / "__init__.py").exists()]
    assert [room for room in rooms if f"{room}/" not in PAGE] == []
    assert len(PLACES) > 40, "the page still speaks of places"


def test_the_map_is_one_page() -> None:
    assert len(PAGE.splitlines()) <= 120
