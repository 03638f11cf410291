"""Entries of one kind under their names and aliases, read from layers of TOML files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from datahall.breakdown import Source
from datahall.catalog import document
from datahall.catalog.document import Document, Table, Value
from datahall.catalog.fact import Entry, read_source
from datahall.catalog.kinds import KINDS
from datahall.errors import DocumentError, Problem, UnknownNameError, nearest


class Named(Protocol):
    """What every entry of the catalogue has."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...
    @property
    def note(self) -> str: ...


T_co = TypeVar("T_co", bound=Named, covariant=True)
T = TypeVar("T", bound=Named)


class Reader(Protocol[T_co]):
    """Reads one table of an entry; problems go into the entry."""

    def __call__(self, entry: Entry, name: str, table: Table, /) -> T_co | None: ...


def reader_of(kind: str) -> Reader[Named]:
    """The function that reads an entry of a kind, loaded when one is read."""
    module = import_module(f"datahall.catalog.entries.{KINDS[kind].home}")
    found: Reader[Named] = getattr(module, f"read_{kind}")
    return found


@lru_cache(maxsize=8192)  # the catalogue's own names, each of which is asked for several times
def folded(name: str) -> str:
    """Return a name as it is compared: lower case, words joined by hyphens.

    >>> folded("H100 SXM"), folded("a100_sxm_80GB")
    ('h100-sxm', 'a100-sxm-80gb')
    """
    return re.sub(r"[\s_/]+", "-", name.strip().lower())


class Index(Generic[T]):
    """The entries of one kind; a later entry of the same name replaces an earlier one."""

    def __init__(self, kind: str, entries: Iterable[T]) -> None:
        self.kind = kind
        self.entries = {entry.name: entry for entry in entries}
        self._index: dict[str, str] = {}
        for entry in self.entries.values():
            for alias in (*entry.aliases, entry.title):
                self._index[folded(alias)] = entry.name
        self._index |= {folded(name): name for name in self.entries}

    def __iter__(self) -> Iterator[T]:
        return iter(self.entries.values())

    def get(self, name: str, *, where: str = "") -> T:
        """Return the entry called `name`, in any spelling; an unknown name is an error that offers three."""
        found = self._index.get(folded(name))
        if found is None:
            raise unknown(self.kind, name, self.entries, where=where)
        return self.entries[found]

    def __contains__(self, name: str) -> bool:
        return folded(name) in self._index


def unknown(kind: str, name: str, known: Iterable[str], where: str = "") -> UnknownNameError:
    """The error of a name that no entry of a kind has."""
    names = list(dict.fromkeys(known))
    hint = "" if KINDS[kind].listed else f"known: {', '.join(names)}"
    return UnknownNameError(KINDS[kind].called or kind, name, names, where=where, hint=hint)


def read_document(path: Path) -> Document:
    """Read a catalogue file; a table of a kind the catalogue does not have is a problem."""
    read = document.read(path)
    problems = [
        Problem(read.where(key), f'unknown table "{key}"', _kind_hint(key))
        if key not in {*KINDS, "source"}
        else Problem(read.where(key), f'"{key}" must hold tables', f"[{key}.NAME]")
        for key, value in read.content.items()
        if key not in {*KINDS, "source"} or not _is_table_of_tables(value)
    ]
    if problems:
        raise DocumentError(str(path), problems)
    return read


def _kind_hint(key: str) -> str:
    close = nearest(key, (*KINDS, "source"), 1)
    return f'did you mean "[{close[0]}.NAME]"?' if close else f"tables are {', '.join((*KINDS, 'source'))}"


def _is_table_of_tables(value: Value) -> bool:
    return isinstance(value, dict) and all(isinstance(item, dict) for item in value.values())


def tables(read: Document, kind: str) -> Iterator[tuple[str, Table]]:
    """Yield name and table of each entry of `kind` in a file."""
    group = read.content.get(kind, {})
    assert isinstance(group, dict)
    for name, table in group.items():
        assert isinstance(table, dict)
        yield name, table


def read_sources(read: Document, problems: list[Problem]) -> dict[str, Source]:
    """Read the `[source.ID]` tables of a file."""
    sources: dict[str, Source] = {}
    for name, table in tables(read, "source"):
        source = read_source(Entry(read, ("source", name), {}, problems=problems), table)
        if source is not None:
            sources[name] = source
    return sources
