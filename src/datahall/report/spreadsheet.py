"""The main table of an answer as CSV: SI numbers under keys that name their unit."""

from __future__ import annotations

import csv
import io

from datahall.answer import Answer, Cell, Column, Quantity


def spreadsheet(answer: Answer) -> str:
    """Write the first table as CSV; a cell that is not known is empty."""
    if not answer.tables:
        keys = list(answer.results)
        return _lines([keys, [_plain(answer.results[key]) for key in keys]])
    table = answer.tables[0]
    wide = [
        any(isinstance(row[index], Quantity) for row in table.rows) for index in range(len(table.columns))
    ]
    head = [key for column, spread in zip(table.columns, wide, strict=True) for key in _keys(column, spread)]
    body = [
        [text for cell, spread in zip(row, wide, strict=True) for text in _texts(cell, spread)]
        for row in table.rows
    ]
    return _lines([head, *body])


def _keys(column: Column, spread: bool) -> list[str]:
    return [column.key, f"{column.key}_unit"] if spread else [column.key]


def _texts(cell: Cell, spread: bool) -> list[str]:
    if isinstance(cell, Quantity):
        return [repr(cell.value), cell.unit]
    return [_plain(cell), ""] if spread else [_plain(cell)]


def _plain(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case bool():
            return "true" if cell else "false"
        case Quantity():
            return repr(cell.value)
        case float():
            return repr(cell)
        case _:
            return str(cell)


def _lines(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
