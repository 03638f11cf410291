"""An answer as JSON, versioned, and back.

Numbers are SI under keys that end in their unit (`memory_bytes`), or stand beside a `unit`; what is not known
is null.  A key is what Python calls it; it is never renamed within a version; new ones may appear.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from datahall.answer import SCHEMA, VERSION, Answer, Cell, Chart, Column, Table, Verdict
from datahall.basis import Basis
from datahall.breakdown import Band, Breakdown, Operation, Origin, Source
from datahall.errors import DocumentError, Problem


class _Heading(msgspec.Struct):
    key: str
    name: str
    unit: str = ""


class _Sheet(msgspec.Struct):
    title: str
    columns: list[_Heading]
    rows: list[dict[str, Cell]]
    marked: int | None = None
    note: str = ""


class _Citation(msgspec.Struct):
    number: int
    source: Source


class _Node(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A figure: its value, how it follows from its parts, and what it is where it has none."""

    name: str
    value: float
    unit: str
    origin: Origin
    operation: Operation = ""
    formula: str = ""
    parts: tuple[_Node, ...] = ()
    band: Band | None = None
    sources: tuple[Source, ...] = ()
    basis: Basis = ""
    note: str = ""


class _Head(msgspec.Struct, kw_only=True):
    """What says whether the rest can be read."""

    schema: str
    version: int


class _Wire(_Head, kw_only=True):
    """The shape of the document."""

    kind: str
    inputs: dict[str, Cell]
    defaults: list[str] = []
    question: dict[str, Any] = {}
    verdict: Verdict
    headline: str
    binding: str
    results: dict[str, Cell]
    tables: list[_Sheet]
    figure: _Node | None
    beside: list[_Node] | msgspec.UnsetType = msgspec.UNSET  # figures of its other numbers, where there are
    charts: list[Chart]
    notes: list[str]
    citations: list[_Citation]
    next_commands: list[str]


def encode(answer: Answer) -> str:
    """Write an answer as JSON."""
    wire = _Wire(
        schema=SCHEMA,
        version=VERSION,
        kind=answer.kind,
        inputs=answer.inputs,
        defaults=list(answer.defaults),
        question=answer.question,
        verdict=answer.verdict,
        headline=answer.headline,
        binding=answer.binding,
        results=answer.results,
        tables=[_sheet(table) for table in answer.tables],
        figure=_node(answer.figure) if answer.figure is not None else None,
        beside=[_node(one) for one in answer.beside] or msgspec.UNSET,
        charts=list(answer.charts),
        notes=list(answer.notes),
        citations=[_Citation(number, source) for number, source in enumerate(answer.citations(), start=1)],
        next_commands=list(answer.next_commands),
    )
    return msgspec.json.format(msgspec.json.encode(wire), indent=2).decode() + "\n"


def decode(text: str | bytes, name: str = "answer") -> Answer:
    """Read an answer that `encode` wrote; anything else is a `DocumentError`."""
    try:
        head = msgspec.json.decode(text, type=_Head)
        wire = msgspec.json.decode(text, type=_Wire) if _is_known(head) else None
    except msgspec.DecodeError as error:
        raise DocumentError(name, [Problem(name, f"is not an answer of datahall: {error}")]) from error
    if wire is None:
        seen = f"{head.schema} version {head.version}"
        raise DocumentError(
            name, [Problem(name, f"is {seen}", f"this datahall reads {SCHEMA} version {VERSION}")]
        )
    return Answer(
        kind=wire.kind,
        inputs=wire.inputs,
        defaults=tuple(wire.defaults),
        question=wire.question,
        headline=wire.headline,
        binding=wire.binding,
        verdict=wire.verdict,
        results=wire.results,
        tables=tuple(_table(sheet) for sheet in wire.tables),
        figure=_figure(wire.figure) if wire.figure is not None else None,
        beside=() if isinstance(wire.beside, msgspec.UnsetType) else tuple(map(_figure, wire.beside)),
        charts=tuple(wire.charts),
        notes=tuple(wire.notes),
        sources=tuple(citation.source for citation in wire.citations),
        next_commands=tuple(wire.next_commands),
    )


def _is_known(head: _Head) -> bool:
    return (head.schema, head.version) == (SCHEMA, VERSION)


def json_schema() -> dict[str, object]:
    """The JSON Schema of an answer, for those who check what they read."""
    return cast("dict[str, object]", msgspec.json.schema(_Wire))


def _node(figure: Breakdown) -> _Node:
    own = {
        name: getattr(figure, name) for name in _Node.__struct_fields__ if name not in ("formula", "parts")
    }
    return _Node(**own, formula=figure.formula, parts=tuple(_node(part) for part in figure.parts))


def _figure(node: _Node) -> Breakdown:
    return msgspec.convert(msgspec.to_builtins(node), Breakdown)


def _sheet(table: Table) -> _Sheet:
    headings = [_Heading(column.key, column.name, column.unit) for column in table.columns]
    return _Sheet(table.title, headings, table.records(), table.marked, table.note)


def _table(sheet: _Sheet) -> Table:
    columns = tuple(Column(heading.name, heading.unit, heading.key) for heading in sheet.columns)
    rows = tuple(tuple(record.get(column.key) for column in columns) for record in sheet.rows)
    return Table(title=sheet.title, columns=columns, rows=rows, marked=sheet.marked, note=sheet.note)
