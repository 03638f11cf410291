"""The page that is shipped is that of the sources beside it, small, and whole."""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

import pytest

from datahall.studio.bundle import page_files

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 200 * 1024  # gzipped, of what the page loads at once


@pytest.fixture(scope="module")
def built() -> dict[str, bytes]:
    return {path: file.body for path, file in page_files().items()}


def test_the_page_was_built_from_the_sources_that_lie_here(built: dict[str, bytes]) -> None:
    sys.path.insert(0, str(ROOT / "release"))
    try:
        from studio import digest  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    assert json.loads(built["/BUILD.json"])["sources"] == digest(), "make studio-build"


def test_what_it_loads_at_once_is_there_and_small(built: dict[str, bytes]) -> None:
    page = built["/index.html"].decode()
    loaded = re.findall(r'(?:src|href)="\./([^"]+)"', page)
    assert len(loaded) >= 2
    assert sum(len(gzip.compress(built[f"/{path}"])) for path in loaded) + len(page) < MOST_BYTES


def test_the_licences_of_what_is_in_it_are_beside_it(built: dict[str, bytes]) -> None:
    said = built["/licences.txt"].decode()
    packages = json.loads((ROOT / "studio-ui" / "package.json").read_text())["dependencies"]
    assert all(re.search(rf"^{re.escape(name)} \d", said, re.M) for name in packages)
    assert "Permission is hereby granted" in said
