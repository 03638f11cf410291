"""A table on a terminal: at most seven columns, the chosen row marked."""

from __future__ import annotations

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from datahall.answer import Cell, Table
from datahall.report.cell import MARK, row, upright

SHORT = 26  # characters of a cell that is never broken


def draw(table: Table) -> RichTable:
    """Draw a table; text wraps only where a cell is long."""
    table = upright(table)
    drawn = RichTable(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", title_justify="left",
        padding=(0, 1),
    )  # fmt: skip
    has_mark = table.marked is not None
    texts = [row(table.columns, cells) for cells in table.rows]
    for index, column in enumerate(table.columns):
        longest = max((len(one[index]) for one in texts), default=0)
        lead = "  " if has_mark and index == 0 else ""
        drawn.add_column(
            Text(lead + column.name),
            justify="right" if column.numeric else "left",
            no_wrap=column.numeric or longest <= SHORT,
            overflow="fold",
        )
    for index, (cells, words) in enumerate(zip(table.rows, texts, strict=True)):
        chosen = index == table.marked
        if has_mark:
            words[0] = f"{MARK if chosen else ' '} {words[0]}"
        drawn.add_row(*map(_cell, words, cells), style="bold" if chosen else "")
    return drawn


def _cell(text: str, cell: Cell) -> Text:
    return Text(text, style="dim" if cell is None or cell == "" else "")
