"""A JSON file whose every key knows its line, so that a problem can name its place."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

from datahall.catalog.document import Document, text_of, unusable
from datahall.errors import DocumentError, Problem

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+|\n')


def read(path: Path) -> Document:
    """Read a JSON object from a file; what cannot be read is a `DocumentError` with file:line."""
    return parse(text_of(path), str(path))


def parse(text: str, path: str) -> Document:
    """Read JSON text that came from `path`."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise DocumentError(path, [_syntax_problem(error, text, path)]) from error
    except (RecursionError, ValueError) as error:
        raise DocumentError(path, [Problem(path, unusable(error))]) from error
    if not isinstance(content, dict):
        raise DocumentError(path, [Problem(f"{path}:1", "must hold one JSON object, { … }")])
    lines, twice = _scan(text)
    if twice:
        problems = [Problem(f"{path}:{line}", f'"{key}" stands twice', "say it once") for key, line in twice]
        raise DocumentError(path, problems)
    return Document(path, content, partial(dict, lines))


def _syntax_problem(error: json.JSONDecodeError, text: str, path: str) -> Problem:
    last_line = text.rstrip().count("\n") + 1
    if not text.strip():
        return Problem(f"{path}:1", "is empty")
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return Problem(f"{path}:{last_line}", "the file is cut off here", "fetch it again in full")
    return Problem(f"{path}:{error.lineno}", f"is not JSON: {error.msg} at column {error.colno}")


def _scan(text: str) -> tuple[dict[tuple[str, ...], int], list[tuple[str, int]]]:
    """The line of each key path, and the keys that stand twice in one object, with the line of the second."""
    lines: dict[tuple[str, ...], int] = {}
    twice: list[tuple[str, int]] = []
    place: list[str | int | None] = []  # per open bracket the item we are at; None: a key comes next
    number = 1
    for token in _TOKEN.findall(text):
        if token == "\n":
            number += 1
        elif token == "{":
            place.append(None)
        elif token == "[":
            place.append(0)
        elif token in "}]":
            place.pop()
        elif token == ",":
            at = place[-1]
            place[-1] = at + 1 if isinstance(at, int) else None
        elif place and place[-1] is None:
            place[-1] = json.loads(token)
            path = tuple(map(str, place))
            if path in lines:
                twice.append((".".join(path), number))
            lines.setdefault(path, number)
    return lines, twice
