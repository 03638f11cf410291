"""The entries of `catalog/` are what they were; see `record.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.recorded.record import check_calls, shipped

from datahall.catalog.kinds import KINDS


def entries() -> Iterator[tuple[str, object]]:
    shelf = shipped()
    for kind in (kind for kind in KINDS if kind not in ("offer", "reroute")):
        for one in shelf.every(kind):
            yield f"{kind} {one.name}", one
    yield "offers", shelf.offers()
    yield "reroutes", shelf.every("reroute")


def test_entries(update: bool) -> None:
    check_calls("catalog", entries(), update)
