"""The entries of `catalog/` are what they were; see `record.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.recorded.record import check_calls, shipped


def entries() -> Iterator[tuple[str, object]]:
    shelf = shipped()
    kinds = {
        "chip": shelf.chips(), "link": shelf.links(), "server": shelf.servers(), "model": shelf.models(),
        "switch": shelf.switches(), "cable": shelf.cables(), "fabric": shelf.known_fabrics(),
        "transport": shelf.transports(),
    }  # fmt: skip
    for kind, found in kinds.items():
        for one in found:
            yield f"{kind} {one.name}", one
    yield "offers", shelf.offers()
    yield "reroutes", shelf.reroutes()


def test_entries(update: bool) -> None:
    check_calls("catalog", entries(), update)
