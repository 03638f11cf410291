"""An answer as a page shows it: beside every number the text that all formats have for it, and charts drawn."""

from __future__ import annotations

from typing import Any

import msgspec

from datahall.answer import Answer, Cell, Chart, Column, Table, Verdict
from datahall.breakdown import Breakdown, Source
from datahall.report.cell import asked, row, shown
from datahall.report.charts.chart import keys, svg
from datahall.report.tree import remark, standing
from datahall.units import unit_of


class Said(msgspec.Struct, frozen=True):
    """An input, or a result, by its name."""

    name: str
    text: str
    value: Cell = None


class ShownTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table with the texts of its cells, and with their numbers, by which it can be sorted."""

    title: str
    columns: tuple[Column, ...]
    numeric: tuple[bool, ...]
    texts: tuple[tuple[str, ...], ...]
    cells: tuple[tuple[Cell, ...], ...]
    marked: int | None
    note: str


class ShownFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of the chain: its value, how it follows from its parts, and what it rests on."""

    name: str
    text: str
    value: float
    unit: str
    formula: str
    marks: tuple[str, ...]
    sources: tuple[int, ...]  # numbers in the list of citations
    parts: tuple[ShownFigure, ...]


class Citation(msgspec.Struct, frozen=True):
    """A source by its number."""

    number: int
    source: Source


class ShownChart(msgspec.Struct, frozen=True, kw_only=True):
    """A chart as it was drawn, and the names of its colours."""

    title: str
    svg: str
    keys: tuple[tuple[str, str], ...]  # names of colours and the colours
    note: str


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """An answer for a page."""

    kind: str
    verb: str
    given: dict[str, Any]  # as it was asked here
    question: dict[str, Any]  # as a file or a program asks it
    verdict: Verdict
    headline: str
    binding: str
    asked: tuple[Said, ...]
    defaults: tuple[Said, ...]
    results: dict[str, Said]
    tables: tuple[ShownTable, ...]
    charts: tuple[ShownChart, ...]
    figures: tuple[ShownFigure, ...]
    notes: tuple[str, ...]
    citations: tuple[Citation, ...]
    next: tuple[str, ...]


def shown_answer(answer: Answer, verb: str, given: dict[str, Any]) -> Shown:
    """Everything a page shows of an answer."""
    citations = answer.citations()
    numbers = {source: number for number, source in enumerate(citations, start=1)}
    return Shown(
        kind=answer.kind,
        verb=verb,
        given=given,
        question=answer.question,
        verdict=answer.verdict,
        headline=answer.headline,
        binding=answer.binding,
        asked=tuple(Said(name, text) for name, text in asked(answer)),
        defaults=tuple(Said(name, text) for name, text in asked(answer, by_default=True)),
        results={key: Said(key, shown(value, unit_of(key)), value) for key, value in answer.results.items()},
        tables=tuple(_table(table) for table in answer.shown_tables),
        charts=tuple(_chart(chart) for chart in answer.charts),
        figures=tuple(_figure(figure, numbers) for figure in answer.figures),
        notes=answer.notes,
        citations=tuple(Citation(number, source) for source, number in numbers.items()),
        next=answer.next_commands,
    )


def _table(table: Table) -> ShownTable:
    return ShownTable(
        title=table.title,
        columns=table.columns,
        numeric=tuple(column.numeric for column in table.columns),
        texts=tuple(tuple(row(table.columns, cells)) for cells in table.rows),
        cells=table.rows,
        marked=table.marked,
        note=table.note,
    )


def _chart(chart: Chart) -> ShownChart:
    return ShownChart(
        title=chart.title,
        svg=svg(chart),
        keys=tuple(keys(chart)),
        note=getattr(chart, "note", ""),
    )


def _figure(figure: Breakdown, numbers: dict[Source, int]) -> ShownFigure:
    marks = [*standing(figure), *([remark(figure)] if remark(figure) else [])]
    return ShownFigure(
        name=figure.name,
        text=figure.shown,
        value=figure.value,
        unit=figure.unit,
        formula=figure.formula,
        marks=tuple(marks),
        sources=tuple(numbers[source] for source in figure.sources),
        parts=tuple(_figure(part, numbers) for part in figure.parts),
    )
