"""A file of jobs as columns of text, with the line that each row stands on and what was left out of it."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import DocumentError, Problem

BROKEN = "not as many values as columns"
CUT_OFF = "the file seems cut off: fetch it again, or remove its last line"


class LeftOut(msgspec.Struct, frozen=True):
    """Why rows are no jobs of the queue, how many, and where the first stands."""

    reason: str
    rows: int
    where: str


class Table(msgspec.Struct, frozen=True):
    """Columns of text by name, and the line of each row."""

    path: str
    columns: dict[str, list[str]]
    lines: list[int]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def num(self) -> int:
        return len(self.lines)

    def column(self, *names: str) -> list[str]:
        """The first column of these names that there is; empty words where there is none."""
        found = next((self.columns[name] for name in names if name in self.columns), None)
        return found if found is not None else [""] * self.num

    def has(self, *names: str) -> bool:
        """Whether there is a column of any of these names."""
        return any(name in self.columns for name in names)

    def where(self, row: int) -> str:
        """The place of a row."""
        return f"{self.path}:{self.lines[row]}"


class Sieve:
    """Which rows of a table are jobs; each row that is none is counted once, with the first reason it meets."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.kept = np.ones(table.num, np.bool_)
        self.left_out = list(table.left_out)

    def drop(self, rows: NDArray[np.bool_], reason: str) -> None:
        """Leave rows out."""
        gone = np.flatnonzero(rows & self.kept)
        if gone.size:
            self.left_out.append(LeftOut(reason, int(gone.size), self.table.where(int(gone[0]))))
            self.kept &= ~rows

    def check_any(self) -> None:
        """Raise where no row is left, with every reason."""
        if self.kept.any():
            return
        path = self.table.path
        problems = [Problem(one.where, f"{one.reason} ({one.rows:,} rows)") for one in self.left_out]
        raise DocumentError(path, problems or [Problem(f"{path}:1", "columns but no rows", CUT_OFF)])


def text_of(path: str) -> str:
    """The text of a file, be it packed; bytes that are no UTF-8 are replaced, for names may have them."""
    try:
        data = Path(path).read_bytes()
        if path.endswith(".gz") or data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise DocumentError(path, [Problem(path, f"cannot be read: {why}")]) from error
    text = data.decode("utf-8-sig", errors="replace")
    if "\x00" in text[:4096]:
        raise DocumentError(path, [Problem(f"{path}:1", "is no text", "a sacct dump or a CSV trace")])
    if not text.strip():
        raise DocumentError(path, [Problem(f"{path}:1", "the file is empty")])
    return text


def csv_table(path: str, text: str) -> Table:
    """A CSV file with a head; rows with too few or too many values are left out."""
    reader = csv.reader(io.StringIO(text), strict=True)  # an open quote would swallow the rows after it
    rows, lines, wrong = [], [], []
    try:
        head = [column.strip() for column in next(row for row in reader if row)]
        for row in reader:
            if len(row) == len(head):
                rows.append(row)
                lines.append(reader.line_num)
            elif row:
                wrong.append(reader.line_num)
    except csv.Error as error:
        raise DocumentError(path, [Problem(f"{path}:{reader.line_num}", f"not CSV: {error}")]) from error
    columns = dict(zip(head, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
    return Table(path, columns or {name: [] for name in head}, lines, broken(path, wrong))


def broken(path: str, lines: Iterable[int]) -> tuple[LeftOut, ...]:
    """Lines that are no rows."""
    found = list(lines)
    return (LeftOut(BROKEN, len(found), f"{path}:{found[0]}"),) if found else ()


def numbers(texts: list[str]) -> NDArray[np.float64]:
    """Numbers of words; NaN where one is none."""
    try:
        return np.array(texts, np.float64)
    except ValueError:
        return np.array([_number(text) for text in texts])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def numbered(texts: list[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Distinct words in order, and the number of each row's."""
    known, index = np.unique(np.array(texts, dtype=np.str_), return_inverse=True)
    return tuple(str(one) for one in known), index.astype(np.int64)
