"""A file of jobs as columns of text, with the line that each row stands on and what was left out of it."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.csv_document import CUT_OFF, csv_rows
from datahall.errors import DocumentError, Problem

BROKEN = "not as many values as columns"


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
    found = csv_rows(path, text)
    wrong = broken(path, [one.line for one in found.wrong], cut_off=found.is_cut_off)
    return Table(path, found.columns, found.lines, wrong)


def broken(path: str, lines: Sequence[int], *, cut_off: bool) -> tuple[LeftOut, ...]:
    """Lines that are no rows; a file that ends with one has lost its end."""
    if cut_off:
        raise DocumentError(path, [Problem(f"{path}:{lines[-1]}", BROKEN, CUT_OFF)])
    return (LeftOut(BROKEN, len(lines), f"{path}:{lines[0]}"),) if lines else ()


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
