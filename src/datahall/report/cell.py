"""One cell of a table as a person reads it."""

from __future__ import annotations

import math

import msgspec

from datahall.answer import Answer, Cell, Column, Quantity, Table
from datahall.units import fmt, unit_of

UNKNOWN = "–"
MARK = "▸"
LEAST_SHARE = 1e-4
# inputs that are large counts (15T, not 15,000,000,000,000), and a share that is known by another name
SHOWN_AS = {"num_tokens": "parameters", "percentile": "percentile"}


def shown(cell: Cell, unit: str = "") -> str:
    """Write a cell for a person.

    >>> shown(8e10, "bytes"), shown(None), shown(Quantity(52428800, "bytes")), shown(2, "citation")
    ('80 GB', '–', '50 MiB', '[2]')
    >>> shown(0.0000116, "fraction")
    '< 0.01 %'
    """
    match cell:
        case None:
            return UNKNOWN
        case bool():
            return "yes" if cell else "no"
        case str():
            return cell
        case Quantity():
            return _quantity(cell)
        case _ if unit == "citation":
            return f"[{cell}]"
        case _ if unit == "fraction" and 0 < abs(cell) < 0.01:
            return f"< {fmt(LEAST_SHARE, unit)}" if abs(cell) < LEAST_SHARE else f"{cell * 100:.2f} %"
        case _:
            return fmt(float(cell), unit)


def asked(answer: Answer, *, by_default: bool = False) -> list[tuple[str, str]]:
    """The inputs that were said, or those that nobody said, each with its name and its value for a person.

    Those that say nothing are left out.
    """
    some = ((key, value) for key, value in answer.inputs.items() if value not in (None, ""))
    return [
        (_called(key, answer), shown(value, _unit(key)))
        for key, value in some
        if (key in answer.defaults) == by_default
    ]


def _called(key: str, answer: Answer) -> str:
    """A key without its unit, and without saying that it is a number unless that tells it from another."""
    name = key.removesuffix(f"_{_unit(key)}")
    short = name.removeprefix("num_")
    return (name if name != short and short in answer.inputs else short).replace("_", " ")


def _unit(key: str) -> str:
    return SHOWN_AS.get(key) or unit_of(key)


def introduced(answer: Answer) -> list[tuple[str, str]]:
    """What was asked, after the kind of answer where the first of it does not say that already."""
    said = asked(answer)
    return said if said and said[0][0] == answer.kind else [(answer.kind, ""), *said]


def asides(table: Table) -> list[tuple[str, str]]:
    """The remarks on rows, each with what its row is called."""
    return [
        (shown(row[0]), shown(cell))
        for row in table.rows
        for column, cell in zip(table.columns, row, strict=True)
        if column.aside and cell
    ]


def upright(table: Table) -> Table:
    """The table without its asides."""
    kept = [index for index, column in enumerate(table.columns) if not column.aside]
    return msgspec.structs.replace(
        table,
        columns=tuple(table.columns[index] for index in kept),
        rows=tuple(tuple(row[index] for index in kept) for row in table.rows),
    )


def row(columns: tuple[Column, ...], cells: tuple[Cell, ...]) -> list[str]:
    """Write the cells of one row."""
    return [shown(cell, column.unit) for column, cell in zip(columns, cells, strict=True)]


def _bytes(value: float) -> str:
    """Memory sizes that are round in powers of two are written so: a cache of 262,144 bytes is 256 KiB."""
    for size, word in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if math.isfinite(value) and size <= value < 1024 * size and value % size == 0:
            return f"{value / size:g} {word}"
    return fmt(value, "bytes")


def _quantity(cell: Quantity) -> str:
    text = _bytes(cell.value) if cell.unit == "bytes" else fmt(cell.value, cell.unit)
    if cell.low is None or cell.high is None:
        return text
    low, high = fmt(cell.low, cell.unit, 3), fmt(cell.high, cell.unit, 3)
    number, _, word = low.partition(" ")
    short = number if word and high.endswith(f" {word}") else low
    return f"{text} ({short}–{high})"
