"""What the parts of a catalogue ask of the whole: an entry of a kind by name, and all of a kind."""

from __future__ import annotations

from typing import Any

from datahall.catalog.index import Index


class Shelves:
    """A catalogue seen by one of its parts."""

    def _entry(self, kind: str, name: str) -> Any:
        """The entry of a kind that has a name; of those that ship, only its file is read."""
        raise NotImplementedError

    def _all(self, kind: str) -> Index[Any]:
        """Every entry of a kind, read once."""
        raise NotImplementedError
