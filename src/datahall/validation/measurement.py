"""Files of measured rows: read, told apart by their columns, and handed to the format that understands them."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from datahall.errors import DocumentError, Problem, nearest
from datahall.validation.scorecard import Fitted, Prediction, Replayed, Unsupported

Outcome: TypeAlias = Prediction | Fitted | Replayed | Unsupported
LARGEST = 1e12  # no size, count or time of a kernel is larger, or smaller than one over it


class Row(msgspec.Struct, frozen=True):
    """One line of a file of measurements."""

    where: str
    cells: dict[str, str]

    def text(self, column: str, default: str = "") -> str:
        return (self.cells.get(column) or default).strip()

    def number(self, column: str) -> float:
        """The number in a column; raises `RowError` where there is none."""
        text = self.text(column)
        try:
            value = float(text)
        except ValueError:
            raise RowError(f'column "{column}" is not a number') from None
        if not math.isfinite(value):
            raise RowError(f'column "{column}" is not finite')
        if abs(value) > LARGEST:
            raise RowError(f'column "{column}" is beyond {LARGEST:g}')
        return value

    def positive(self, column: str) -> float:
        """A number above zero."""
        value = self.number(column)
        if value <= 0:
            raise RowError(f'column "{column}" is not above zero')
        if value < 1 / LARGEST:
            raise RowError(f'column "{column}" is below {1 / LARGEST:g}')
        return value

    def count(self, column: str) -> float:
        """A whole number above zero."""
        value = self.positive(column)
        if value != int(value):
            raise RowError(f'column "{column}" is not a whole number')
        return value

    def fitted_on(self, metric: str = "") -> bool:
        """Whether a constant was fitted on a figure of this row: its mark names some of its metrics, or is 1 for all.

        >>> row = Row("", {"fitted": "step time; peak memory"})
        >>> row.fitted_on("peak memory"), row.fitted_on("TTFT"), Row("", {"fitted": "1"}).fitted_on("TTFT")
        (True, False, True)
        """
        marks = {mark.strip() for mark in self.text("fitted").split(";")} - {""}
        return bool(marks & {"1", "true", "yes", metric})


def unless_fitted(row: Row, one: Prediction) -> Prediction | Fitted:
    """A prediction to be scored, unless a constant was fitted on the figure."""
    return Fitted(row.where, one.metric) if row.fitted_on(one.metric) else one


class RowError(ValueError):
    """A row that cannot be read as its format; counted, with this reason."""


class Format(msgspec.Struct, frozen=True):
    """A kind of file: the columns that give it away, and the function that predicts its rows."""

    name: str
    columns: frozenset[str]
    predict: Callable[[Sequence[Row]], Iterable[Outcome]]


def read_rows(path: Path) -> tuple[tuple[str, ...], list[Row]]:
    """Read a CSV file, or a dump of Slurm's accounting; the names of its columns and its rows."""
    first = _first_line(path)
    if "\x00" in first and not _is_packed(path):
        problem = Problem(f"{path}:1", "is no text", "a CSV file, whose first line names its columns")
        raise DocumentError(str(path), [problem])
    if "|" in first or _is_packed(path):
        return _dumped(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)  # an open quote would swallow the rows after it
            columns = tuple((name or "").strip() for name in reader.fieldnames or ())
            reader.fieldnames = columns
            rows = [
                Row(f"{path.name}:{reader.line_num}", {key: cell or "" for key, cell in line.items() if key})
                for line in reader
            ]
    except OSError as error:
        raise DocumentError(str(path), [Problem(str(path), f"cannot be read: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        raise DocumentError(str(path), [Problem(str(path), f"is no UTF-8 text: {error.reason}")]) from error
    except csv.Error as error:
        raise DocumentError(str(path), [Problem(str(path), f"is not a CSV file: {error}")]) from error
    if not columns:
        raise DocumentError(str(path), [Problem(f"{path}:1", "is empty", "the first line names the columns")])
    if not rows:
        raise DocumentError(str(path), [Problem(f"{path}:1", "has a header and no rows")])
    return columns, rows


def _is_packed(path: Path) -> bool:
    return path.suffix == ".gz"


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline()
    except OSError:
        return ""  # said by whoever reads on


def _dumped(path: Path) -> tuple[tuple[str, ...], list[Row]]:
    """Rows of a file that a scheduler wrote; lines that are none have no cells, and are counted with the others."""
    from datahall.scheduling.files.read import read_table

    table = read_table(str(path))
    columns = list(table.columns)
    cells = zip(*table.columns.values(), strict=True) if table.num else iter(())
    rows = [
        Row(f"{path.name}:{line}", dict(zip(columns, row, strict=True)))
        for line, row in zip(table.lines, cells, strict=True)
    ]
    rows += [
        Row(f"{path.name}:{one.where.rpartition(':')[2]}", {})
        for one in table.left_out
        for _ in range(one.rows)
    ]
    if not rows:
        raise DocumentError(str(path), [Problem(f"{path}:1", "has a header and no rows")])
    return tuple(columns), rows


def format_of(path: Path, columns: Sequence[str], formats: Sequence[Format]) -> Format:
    """The format whose columns a file has; an error names what is missing for the nearest one."""
    present = set(columns)
    fitting = [one for one in formats if one.columns <= present]
    if fitting:
        return max(fitting, key=lambda one: len(one.columns))
    closest = max(formats, key=lambda one: len(one.columns & present) / len(one.columns))
    missing = sorted(closest.columns - present)
    guesses = [
        f'"{name}" (is it "{found[0]}"?)' if (found := nearest(name, present, 1)) else f'"{name}"'
        for name in missing
    ]
    known = "; ".join(f"{one.name}: {', '.join(sorted(one.columns))}" for one in formats)
    problem = Problem(
        f"{path}:1", f"looks like {closest.name} but lacks {', '.join(guesses)}", f"files understood: {known}"
    )
    raise DocumentError(str(path), [problem])
