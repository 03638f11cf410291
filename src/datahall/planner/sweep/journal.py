"""A file to which points are added as they end, from which a sweep that was stopped goes on.

Its first line says of which sweep it is, by a hash of all that an answer depends on.  A line that was torn when the
machine stopped is cut off, with what stands after it: that point is answered again.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from datahall.errors import OutputError

T = TypeVar("T")


class _Head(msgspec.Struct):
    sweep: str
    points: int


class _Line(msgspec.Struct):
    point: int
    found: msgspec.Raw


class Journal:
    """The points that are known, and the file that is open to keep more; without a path nothing is kept."""

    def __init__(self, path: Path | None, key: str, num_points: int) -> None:
        self.found: dict[int, bytes] = {}
        self.path = path
        self._file = -1
        if path is None:
            return
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            self._read(key, num_points)
        except OSError as error:
            raise self._unwritten(error) from error

    def keep(self, point: int, found: bytes) -> None:
        """Add a point."""
        self.found[point] = found
        if self._file >= 0:
            self._write(b'{"point":%d,"found":%s}\n' % (point, found))

    def _read(self, key: str, num_points: int) -> None:
        with open(self._file, "rb", closefd=False) as file:
            data = file.read()
        lines = data.splitlines(keepends=True)
        head = _decoded(lines[0], _Head) if lines else None
        if head is None:
            self._begin(key, num_points, data)
            return
        if (head.sweep, head.points) != (key, num_points):
            raise OutputError(
                f"{self.path} holds points of another sweep: other inputs, another version or another catalogue",
                hint="remove it, or write to another file",
            )
        whole = len(lines[0])
        for line in lines[1:]:
            one = _decoded(line, _Line)
            if one is None or not 0 <= one.point < num_points:
                break
            self.found[one.point] = bytes(one.found)
            whole += len(line)
        os.ftruncate(self._file, whole)

    def _begin(self, key: str, num_points: int, data: bytes) -> None:
        """Begin a new one; of a head that was torn nothing is lost, and any other file is somebody's."""
        head = msgspec.json.encode(_Head(key, num_points)) + b"\n"
        if not head.startswith(data):
            raise OutputError(f"{self.path} is not a sweep's", hint="remove it, or write to another file")
        os.ftruncate(self._file, 0)
        self._write(head)

    def _write(self, line: bytes) -> None:
        try:
            written = os.write(self._file, line)
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError as error:
            raise self._unwritten(error) from error

    def _unwritten(self, error: OSError) -> OutputError:
        kept = f"; {len(self.found):,} points are kept there" if self.found else ""
        hint = (
            "make room and ask again: it goes on from there" if self.found else "choose another place with -o"
        )
        return OutputError(f"{self.path} could not be written: {error.strerror or error}{kept}", hint=hint)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _decoded(line: bytes, kind: type[T]) -> T | None:
    """What a line says; None where it was torn."""
    if not line.endswith(b"\n"):
        return None
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError:
        return None
