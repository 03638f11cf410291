"""Looking for entries of the catalogue by words of their names and descriptions."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from datahall.catalog.index import Named


class Hit(msgspec.Struct, frozen=True):
    """One entry that a search found."""

    kind: str
    name: str
    title: str


def search(entries_by_kind: Iterable[tuple[str, Iterable[Named]]], text: str) -> tuple[Hit, ...]:
    """Entries of every kind in which all words of `text` occur, those named so first."""
    words = text.lower().split()
    if not words:
        return ()
    hits: list[tuple[bool, Hit]] = []
    for kind, entries in entries_by_kind:
        for entry in entries:
            named = " ".join((entry.name, *entry.aliases, entry.title)).lower()
            described = " ".join(
                (named, getattr(entry, "vendor", ""), getattr(entry, "family", ""), entry.note)
            )
            if all(word in described.lower() for word in words):
                hits.append((not all(word in named for word in words), Hit(kind, entry.name, entry.title)))
    return tuple(hit for _, hit in sorted(hits, key=lambda pair: pair[0]))
