"""A TOML file whose every value knows its line, so that a problem can name its place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from datahall.errors import DocumentError, Problem

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value]"
Table: TypeAlias = dict[str, Value]

_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(#.*)?$")
_NAME = r"""(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)"""
_KEY = re.compile(rf"\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""")


Lines: TypeAlias = dict[tuple[str, ...], int]


class Document(msgspec.Struct, frozen=True, dict=True):
    """The content of a TOML file and the line of each key path in it."""

    path: str
    content: Table
    find_lines: Callable[[], Lines] = dict  # asked where there is a problem to place: few files have one

    @cached_property
    def lines(self) -> Lines:
        return self.find_lines()

    def where(self, *keys: str) -> str:
        """Return `file:line` of a key path, or of the nearest table above it."""
        for length in range(len(keys), 0, -1):
            line = self.lines.get(keys[:length])
            if line is not None:
                return f"{self.path}:{line}"
        return self.path


def read(path: Path) -> Document:
    """Read a TOML file; a syntax error is a `DocumentError` with file:line."""
    return parse(text_of(path), str(path))


def text_of(path: Path) -> str:
    """The text of a file, less the mark that Windows editors begin with; what cannot be read is a `DocumentError`."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DocumentError(str(path), [Problem(str(path), f"cannot be read: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        raise DocumentError(str(path), [Problem(str(path), f"is not UTF-8 text: {error.reason}")]) from error


def parse(text: str, path: str) -> Document:
    """Read TOML text that came from `path`."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DocumentError(path, [_syntax_problem(error, text, path)]) from error
    except (RecursionError, ValueError) as error:
        raise DocumentError(path, [Problem(path, unusable(error))]) from error
    return Document(path, content, partial(line_index, text))


def unusable(error: RecursionError | ValueError) -> str:
    """Why a text that is well formed cannot be read all the same."""
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return "has a number of thousands of digits"  # Python converts no more than 4,300


def _syntax_problem(error: tomllib.TOMLDecodeError, text: str, path: str) -> Problem:
    message = str(error)
    match = re.search(r"\(at line (\d+), column \d+\)", message)
    line = match[1] if match else str(text.count("\n") + 1)
    return Problem(f"{path}:{line}", re.sub(r"\s*\(at .*\)$", "", message))


def line_index(text: str) -> Lines:
    """Map each key path of a TOML text to its line; items of an array of tables count from "0".

    >>> lines = line_index("[chip.x]\\nmemory = 1\\n[[chip.x.level]]\\nname = 'l2'")
    >>> lines["chip", "x", "level", "0", "name"]
    4
    """
    lines: Lines = {}
    table: tuple[str, ...] = ()
    counts: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _absolute(_path(header[2]), counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                lines.setdefault(table, number)
                table = (*table, str(counts[table]))
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_path(key[1])), number)
    return lines


def _path(dotted: str) -> tuple[str, ...]:
    return tuple(double or single or bare for double, single, bare in _PART.findall(dotted))


def _absolute(path: tuple[str, ...], counts: dict[tuple[str, ...], int]) -> tuple[str, ...]:
    """Insert the index of the current item where a header passes through an array of tables."""
    absolute: tuple[str, ...] = ()
    for depth, part in enumerate(path):
        absolute = (*absolute, part)
        if absolute in counts and depth < len(path) - 1:
            absolute = (*absolute, str(counts[absolute]))
    return absolute
