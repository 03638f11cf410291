"""What the parts of a catalogue ask of the whole: an entry of a kind by name, and all of a kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from datahall.catalog.index import Index


class Shelves(Protocol):
    """A catalogue as its parts see it."""

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where entries lie, those that ship first."""

    def name_of(self, kind: str, name: str) -> str:
        """The name of an entry by any of its names."""

    def _entry(self, kind: str, name: str) -> Any:
        """The entry of a kind that has a name; of those that ship, only its file is read."""

    def _all(self, kind: str) -> Index[Any]:
        """Every entry of a kind, read once."""
