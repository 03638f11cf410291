"""An answer in the order a person reads it on a terminal.

The sentence with the answer, what binds, the tables, how it adds up, what it rests on, what to ask next.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from datahall.answer import Answer, Table
from datahall.breakdown import Source
from datahall.report import table, tree
from datahall.report.cell import asides, asked, introduced

WIDTH = 100
SHORT = 1  # levels of the breakdown shown under a table


def table_text(answer: Answer, *, width: int = WIDTH, color: bool = False, quiet: bool = False) -> str:
    """The answer as tables, with the first levels of its breakdown; figures beside it are for those who explain."""
    answer = msgspec.structs.replace(answer, beside=())
    console = _console(width, color)
    _opening(console, answer)
    for one in answer.shown_tables:
        _table(console, one)
    if answer.figure is not None:
        _heading(console, "how it adds up" if answer.figure.parts else "what it rests on")
        console.print(tree.draw(answer.figure, answer.citations(), SHORT, notes=False))
    if answer.citations() and _cites(answer):
        _sources(console, answer.citations())
    _closing(console, answer, quiet=quiet)
    return _text(console)


def tree_text(answer: Answer, *, width: int = WIDTH, color: bool = False, quiet: bool = False) -> str:
    """The answer as the chain behind its figure, down to numbered sources."""
    console = _console(width, color)
    _opening(console, answer)
    for figure in answer.figures:
        console.print()
        console.print(tree.draw(figure, answer.citations()))
    if not answer.figures:
        for one in answer.shown_tables:
            _table(console, one)
    _sources(console, answer.citations())
    _closing(console, answer, quiet=quiet)
    return _text(console)


def explain_text(answer: Answer, *, width: int = WIDTH, color: bool = False, quiet: bool = False) -> str:
    """Everything behind the answer: what was asked, the whole chain, the tables and every source."""
    console = _console(width, color)
    _opening(console, answer)
    said = [f"{name} = {value}" if value else name for name, value in introduced(answer)]
    if answer.inputs:
        console.print(Text(f"Asked: {', '.join(said)}", style="dim"))
    usual = ", ".join(f"{name} = {value}" for name, value in asked(answer, by_default=True))
    if usual:
        console.print(Text(f"By default: {usual}", style="dim"))
    if answer.figure is not None:
        _heading(console, "the chain behind it")
        console.print(tree.draw(answer.figure, answer.citations()))
        if answer.figure.band is not None and answer.figure.band.basis:
            console.print(Text(f"The band holds eight of ten measurements: {answer.figure.band.basis}"))
    for figure in answer.beside:
        console.print()
        console.print(tree.draw(figure, answer.citations()))
    for one in answer.shown_tables:
        _table(console, one)
    _sources(console, answer.citations())
    _closing(console, answer, quiet=quiet)
    return _text(console)


def _console(width: int, color: bool) -> Console:
    """A console that writes to memory, so that a broken pipe or a full disk meets one place only."""
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        no_color=not color,
        highlight=False,
        emoji=False,
        color_system="standard" if color else None,
        legacy_windows=False,
        markup=False,
    )


def _text(console: Console) -> str:
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def _opening(console: Console, answer: Answer) -> None:
    console.print(Text(answer.headline, style="bold"))
    if answer.binding:
        console.print(Text(answer.binding))


def _heading(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold cyan"))


def _table(console: Console, one: Table) -> None:
    _heading(console, one.title)
    console.print(table.draw(one, console.width), crop=False, no_wrap=True, overflow="ignore")
    for name, remark in asides(one):
        console.print(_hanging("·", f"{name}: {remark}"))
    if one.note:
        console.print(Text(one.note, style="dim"))


def _hanging(lead: str, text: str) -> RichTable:
    """A line whose continuation is set in under its own text."""
    grid = RichTable.grid(padding=(0, 1))
    grid.add_column(style="dim")
    grid.add_column(style="dim", overflow="fold")
    grid.add_row(Text(lead), Text(text))
    return grid


def _sources(console: Console, citations: Sequence[Source]) -> None:
    if not citations:
        return
    _heading(console, "sources")
    for number, source in enumerate(citations, start=1):
        console.print(_hanging(f"{f'[{number}]':>{len(str(len(citations))) + 2}}", tree.described(source)))


def _closing(console: Console, answer: Answer, *, quiet: bool) -> None:
    if answer.notes:
        _heading(console, "notes")
        for note in answer.notes:
            console.print(_hanging("·", note))
    if answer.next_commands and not quiet:
        _heading(console, "next")
        for command in answer.next_commands:
            console.print(Text(f"  {command}"), soft_wrap=True)


def _cites(answer: Answer) -> bool:
    """Whether a table or the breakdown points into the list of sources."""
    return bool(answer.figure and answer.figure.citations()) or any(
        column.unit == "citation" for one in answer.shown_tables for column in one.columns
    )
