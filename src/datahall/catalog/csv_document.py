"""CSV files with a head: their rows, the line of each, and the lines that are no rows."""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

from datahall.errors import DocumentError, Problem

CUT_OFF = "the file seems cut off: fetch it again, or remove its last line"


class WrongLine(NamedTuple):
    """A line with more or fewer values than there are columns."""

    line: int
    num_values: int


class CsvRows(NamedTuple):
    """What a file says, row by row."""

    head: list[str]
    rows: list[list[str]]
    lines: list[int]
    wrong: list[WrongLine]
    last_line: int

    @property
    def is_cut_off(self) -> bool:
        """Whether the last line of the file is no whole row."""
        return bool(self.wrong) and self.wrong[-1].line == self.last_line

    @property
    def columns(self) -> dict[str, list[str]]:
        """The values of each column."""
        found = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.head)
        return {name: list(values) for name, values in zip(self.head, found, strict=True)}


def csv_rows(path: str, text: str) -> CsvRows:
    """Read the text of a file; a quote that is never closed, which would swallow rows, is a `DocumentError`."""
    reader = csv.reader(io.StringIO(text), strict=True)
    head: list[str] = []
    found = CsvRows(head, [], [], [], 0)
    begins, last = 1, 0  # the line that a row begins on, and the last that is not empty
    try:
        for row in reader:
            if not head:
                head += [column.strip() for column in row]
            elif len(row) == len(head):
                found.rows.append(row)
                found.lines.append(reader.line_num)
            elif row:
                found.wrong.append(WrongLine(reader.line_num, len(row)))
            begins = reader.line_num + 1
            last = reader.line_num if row else last
    except csv.Error as error:
        raise DocumentError(path, [Problem(f"{path}:{begins}", f"not CSV: {error}")]) from error
    return found._replace(last_line=last)
