"""A table on a terminal: the chosen row marked, long text wrapped, and never a number cut short."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import msgspec
from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from datahall.answer import Cell, Table
from datahall.report.cell import MARK, row, upright

UNBROKEN = 26  # characters of a text that is kept on one line while there is room
NARROWEST = 16  # characters that a column of long text keeps while there is room
GAP = 2


class Room(msgspec.Struct):
    """How wide a column is now, how wide it must be, and how wide its longest cell and its head in one line are."""

    width: int
    least: int
    cell: int
    head: int


def draw(table: Table, width: int) -> RichTable:
    """Draw a table for a screen of so many columns; only text and heads wrap."""
    table = upright(table)
    words = [row(table.columns, cells) for cells in table.rows]
    if table.marked is not None:
        for index, line in enumerate(words):
            line[0] = f"{MARK if index == table.marked else ' '} {line[0]}"
    heads = [column.name for column in table.columns]
    if table.marked is not None:
        heads[0] = f"  {heads[0]}"
    sizes = _widths(table, heads, words, width)
    if table.marked is not None:
        for line in words:
            line[0] = fill(line[0], sizes[0], subsequent_indent="  ", break_on_hyphens=False)
    drawn = RichTable(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0)
    )
    drawn.width = sum(sizes) + GAP * (len(sizes) - 1)
    for column, head, size in zip(table.columns, heads, sizes, strict=True):
        drawn.add_column(
            Text(head),
            justify="right" if column.numeric else "left",
            width=size,
            overflow="fold",
            vertical="top",
        )
    for index, (line, cells) in enumerate(zip(words, table.rows, strict=True)):
        drawn.add_row(*map(_cell, line, cells), style="bold" if index == table.marked else "")
    return drawn


def _widths(table: Table, heads: Sequence[str], words: Sequence[Sequence[str]], width: int) -> list[int]:
    """What every column needs; what is left goes to long text, then to heads that then fit in one line.

    Where the screen is too narrow even for that, text is broken between any two words.
    """
    rooms = []
    for place, (column, head) in enumerate(zip(table.columns, heads, strict=True)):
        cells = [line[place] for line in words]
        longest, word = _longest(cells), _longest(" ".join(cells).split())
        title = _longest(head.split()) + len(head) - len(head.lstrip())
        least = max(title, longest if column.numeric else min(longest, word + (2 if place == 0 else 0)))
        kept = longest if column.numeric or longest <= UNBROKEN else NARROWEST
        rooms.append(Room(max(kept, least), least, longest, len(head)))
    spare = width - GAP * (len(rooms) - 1) - sum(room.width for room in rooms)
    while spare < 0 and any(room.width > room.least for room in rooms):
        max(rooms, key=lambda room: (room.width > room.least, room.width)).width -= 1
        spare += 1
    while spare > 0 and any(room.width < room.cell for room in rooms):
        max(rooms, key=lambda room: room.cell - room.width).width += 1
        spare -= 1
    for room in sorted(rooms, key=lambda room: room.head - room.width):
        if room.width < room.head <= room.width + spare:
            spare -= room.head - room.width
            room.width = room.head
    return [room.width for room in rooms]


def _longest(texts: Sequence[str]) -> int:
    return max(map(len, texts), default=0)


def _cell(text: str, cell: Cell) -> Text:
    return Text(text, style="dim" if cell is None or cell == "" else "")
