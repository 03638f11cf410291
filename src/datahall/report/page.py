"""An answer as one HTML file: no script, no font, no picture from outside; light, dark and on paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path

from datahall.answer import (
    Answer,
    Cell,
    ChangeChart,
    Chart,
    Column,
    GanttChart,
    RooflineChart,
    Table,
    TopologyChart,
)
from datahall.breakdown import Breakdown, Source
from datahall.report.cell import asked, introduced, shown
from datahall.report.charts.chart import keys, svg
from datahall.report.tree import remark, standing

OPEN_DEPTH = 1  # levels of the breakdown that are open when the page is
CHAIN_DEPTH = 4  # of a page that is asked for the chain
FOOTER = "GB is 10⁹ bytes; peaks are dense; links are one way"
SHORT = 30  # characters of a cell that is never broken


def page(answer: Answer, *, explain: bool = False) -> str:
    """Write the answer as a whole HTML document; one that explains begins with the chain behind the answer."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(_title(answer))} · datahall</title>\n"
        "<style>html{background:#fff}@media(prefers-color-scheme:dark){html{background:#14171b}}body{margin:0}</style>\n"
        f"</head>\n<body>\n{fragment(answer, explain=explain)}\n</body>\n</html>\n"
    )


def fragment(answer: Answer, *, explain: bool = False) -> str:
    """Write the answer as an element with its own style, for a page or a notebook."""
    from datahall import __version__

    citations = answer.citations()
    shown = [_figure(chart) for chart in answer.charts] + [_table(table) for table in answer.shown_tables]
    sections = [_chain(answer, explain=True), *shown] if explain else [*shown, _chain(answer, explain=False)]
    sections += [_list("notes", "ul", answer.notes), _sources(citations), _commands(answer.next_commands)]
    return (
        f'<style>{_style()}</style>\n<main class="datahall">\n{_header(answer)}\n'
        + "\n".join(filter(None, sections))
        + f"\n<footer>datahall {escape(__version__)} · {FOOTER}</footer>\n</main>"
    )


@cache
def _style() -> str:
    return (Path(__file__).parent / "page.css").read_text(encoding="utf-8")


def _title(answer: Answer) -> str:
    names = [str(value) for value in answer.inputs.values() if isinstance(value, str) and value][:2]
    return " ".join([answer.kind, *names])


def _header(answer: Answer) -> str:
    kicker = " · ".join(f"{name} {value}".strip() for name, value in introduced(answer))
    said_so = answer.headline.startswith("No")
    no = '<p class="no">The answer is no.</p>' if answer.verdict == "no" and not said_so else ""
    binding = f'<p class="binding">{_unbroken(answer.binding)}</p>' if answer.binding else ""
    title = f"<h1>{_whole_names(_unbroken(answer.headline))}</h1>"
    return f'<header><p class="kicker">{escape(kicker)}</p>{no}{title}{binding}</header>'


def _unbroken(sentence: str) -> str:
    """Keep a number and its unit on one line."""
    return escape(re.sub(r"(?<=\d) (?=%|[A-Za-zµ][\w/]{0,7}\b)", "\N{NO-BREAK SPACE}", sentence))


def _whole_names(sentence: str) -> str:
    """Keep a name with a hyphen, such as b200-sxm, on one line."""
    return re.sub(r"(?<![\w&-])\w+(?:-\w+)+(?![\w-])", r"<span>\g<0></span>", sentence)


def _figure(chart: Chart) -> str:
    note = chart.note if isinstance(chart, RooflineChart | TopologyChart | ChangeChart | GanttChart) else ""
    caption = f"<figcaption>{escape(note)}</figcaption>" if note else ""
    figure = f'<figure>{_legend(chart)}<div class="scroll">{svg(chart)}</div>{caption}</figure>'
    return f"<section><h2>{escape(chart.title)}</h2>{figure}</section>"


def _legend(chart: Chart) -> str:
    """The names of colours in lines of their own: on a phone those of the picture would be out of sight."""
    names = "".join(
        f'<span><i style="background:{color}"></i>{escape(name)}</span>' for name, color in keys(chart)
    )
    return f'<p class="legend" aria-hidden="true">{names}</p>' if names else ""


def _table(table: Table) -> str:
    heads = "".join(
        f'<th scope="col"{_class("n" if column.numeric else "")}>{escape(column.name)}</th>'
        for column in table.columns
        if not column.aside
    )
    rows = "".join(_row(table, index, cells) for index, cells in enumerate(table.rows))
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<section><h2>{escape(table.title)}</h2><div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{note}</section>"
    )


def _row(table: Table, index: int, cells: Sequence[Cell]) -> str:
    asides = "".join(
        f'<span class="aside">{escape(shown(cell))}</span>'
        for column, cell in zip(table.columns, cells, strict=True)
        if column.aside and cell
    )
    columns = [(column, cell) for column, cell in zip(table.columns, cells, strict=True) if not column.aside]
    texts = [
        _cell(column, cell, asides if place == 0 else "") for place, (column, cell) in enumerate(columns)
    ]
    chosen = ' class="chosen" aria-label="chosen"' if index == table.marked else ""
    return f"<tr{chosen}>{''.join(texts)}</tr>"


def _cell(column: Column, cell: Cell, aside: str) -> str:
    if column.unit == "citation" and cell is not None:
        return f'<td><a href="#source-{cell}">{escape(shown(cell, "citation"))}</a></td>'
    said = shown(cell, column.unit)
    kinds = ("n" if column.numeric else "s" if len(said) <= SHORT else "t", "unknown" if cell is None else "")
    return f"<td{_class(' '.join(filter(None, kinds)))}>{_unbroken(said)}{aside}</td>"


def _chain(answer: Answer, *, explain: bool) -> str:
    """The figure and its parts, which open and close; to explain, with the defaults and the band it rests on."""
    if answer.figure is None:
        return ""
    numbers = {source: number for number, source in enumerate(answer.citations(), start=1)}
    opened = CHAIN_DEPTH if explain else OPEN_DEPTH
    tree = "".join(_tree(one, numbers, opened if one is answer.figure else 0) for one in answer.figures)
    title, notes = "how it adds up", []
    if explain:
        title = "the chain behind it"
        usual = ", ".join(f"{name} = {value}" for name, value in asked(answer, by_default=True))
        notes += [f"By default: {usual}"] if usual else []
        band = answer.figure.band
        notes += [f"The band holds eight of ten measurements: {band.basis}"] if band and band.basis else []
    said = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
    return f'<section><h2>{title}</h2><div class="tree">{tree}</div>{said}</section>'


def _tree(figure: Breakdown, numbers: dict[Source, int], opened: int) -> str:
    """A figure over its parts, of which so many levels are open."""
    said = _line(figure, numbers)
    if not figure.parts:
        return f'<div class="leaf">{said}</div>'
    parts = "".join(_tree(part, numbers, opened - 1) for part in figure.parts)
    return f"<details{' open' if opened > 0 else ''}><summary>{said}</summary>{parts}</details>"


def _line(figure: Breakdown, numbers: dict[Source, int]) -> str:
    formula = f' <span class="formula">= {escape(figure.formula)}</span>' if figure.formula else ""
    marks = [escape(word) for word in standing(figure)]
    marks += [
        f'{source.kind} <a href="#source-{numbers[source]}">[{numbers[source]}]</a>'
        for source in figure.sources
    ]
    marks += [escape(remark(figure))] if remark(figure) else []
    rest = f' <span class="rest">{", ".join(marks)}</span>' if marks else ""
    return f"{escape(figure.name)} <b>{escape(figure.shown)}</b>{formula}{rest}"


def _sources(citations: Sequence[Source]) -> str:
    if not citations:
        return ""
    items = "".join(
        f'<li id="source-{number}">{escape(source.title)}, {escape(source.date)}, {source.kind}</li>'
        for number, source in enumerate(citations, start=1)
    )
    return f"<section><h2>sources</h2><ol>{items}</ol></section>"


def _list(title: str, tag: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<section><h2>{title}</h2><{tag}>{items}</{tag}></section>"


def _commands(commands: Sequence[str]) -> str:
    if not commands:
        return ""
    lines = "".join(f"<code>{_copied(command)}\n</code>" for command in commands)
    return f"<section><h2>next</h2><pre>{lines}</pre></section>"


def _copied(command: str) -> str:
    """A command that breaks between its words only: a browser would break --tp after its hyphens."""
    return " ".join(f"<span>{escape(word)}</span>" for word in command.split(" "))


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
