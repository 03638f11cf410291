"""A comparison as tables: the inputs that differ, the results by how much they matter, and all of them as data."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.answer import Cell, ChangeChart, Chart, Column, Quantity, Table, keyed
from datahall.answers.compare.side import Side
from datahall.answers.compare.spoken import spoken
from datahall.counted import counted
from datahall.planner.compare.difference import Figure
from datahall.units import unit_of

MOST_BESIDE = 5  # columns of sides, beside what they are of and which is best; more stand below each other
MOST_ROWS, MOST_COLUMNS, MOST_BARS = 16, 7, 12
Words = Sequence[tuple[str, tuple[Cell, ...]]]


def tables(sides: Sequence[Side], found: Sequence[Figure], words: Words, few: bool) -> tuple[Table, ...]:
    """All results as data, then what a person reads of them; `few`: of those that nobody judges by, none."""
    shown = [one for one in found if one.lead] if few else [one for one in found if one.differs or one.lead]
    drawn = (*(() if few else (_inputs(sides),)), _results(sides, shown, len(found)), _words(sides, words))
    return (_all(sides, found, words), *(table for table in drawn if table.rows))


def _inputs(sides: Sequence[Side]) -> Table:
    """The inputs that are not the same."""
    keys = dict.fromkeys(key for one in sides for key in one.inputs)
    rows = [
        (key, tuple(one.inputs.get(key) for one in sides))
        for key in keys
        if len({str(one.inputs.get(key)) for one in sides}) > 1
    ]
    return Table(
        title="what is asked differently",
        columns=(Column("input"), *_heads(sides)),
        rows=tuple((spoken(key), *(_cell(key, value) for value in values)) for key, values in rows)
        if len(sides) <= MOST_BESIDE
        else (),
    )


def _cell(key: str, value: Cell) -> Cell:
    """An input with its unit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return Quantity(float(value), unit_of(key) or "count")


def _heads(sides: Sequence[Side]) -> tuple[Column, ...]:
    """A column a side; one of two names that are written alike has a number."""
    keys: list[str] = []
    for one in sides:
        key = keyed(one.name)
        keys.append(key if key not in keys else f"{key}_{len(keys)}")
    return tuple(Column(one.name, key=key) for one, key in zip(sides, keys, strict=True))


def _results(sides: Sequence[Side], found: Sequence[Figure], num: int) -> Table:
    kept = found[:MOST_ROWS]
    rest = len(found) - len(kept)
    more = f"{counted(rest, 'more result')} of {num} in CSV and JSON" if rest else ""
    if len(sides) > MOST_BESIDE:
        return _below(sides, kept, more)
    best = tuple(_better(sides, one) for one in kept)
    if len(sides) == 2:
        columns: tuple[Column, ...] = (Column("difference"), Column("change", "fraction"), Column("better"))
        rows = tuple(
            (spoken(one.key), *one.values, _difference(one), one.share_fraction, name)
            for one, name in zip(kept, best, strict=True)
        )
    else:
        columns = (Column("best"),)
        rows = tuple((spoken(one.key), *one.values, name) for one, name in zip(kept, best, strict=True))
    return Table(
        title="what comes of it", columns=(Column("result"), *_heads(sides), *columns), rows=rows, note=more
    )


def _below(sides: Sequence[Side], found: Sequence[Figure], more: str) -> Table:
    """A row a side, for more than stand beside each other."""
    kept = found[: len(range(1, MOST_COLUMNS))]
    rows = tuple((side.name, *(one.values[place] for one in kept)) for place, side in enumerate(sides))
    columns = (Column("of"), *(Column(spoken(one.key), key=one.key) for one in kept))
    return Table(title="what comes of it", columns=columns, rows=rows, note=more)


def _difference(one: Figure) -> Cell:
    if one.difference is None or one.difference == 0.0:
        return None
    points = one.unit == "fraction"
    return Quantity(100 * one.difference, "points") if points else Quantity(one.difference, one.unit)


def _better(sides: Sequence[Side], one: Figure) -> str:
    return "" if one.best is None else sides[one.best].name


def _words(sides: Sequence[Side], words: Words) -> Table:
    rows = tuple((spoken(key), *values) for key, values in words) if len(sides) <= MOST_BESIDE else ()
    return Table(
        title="what is said differently", columns=(Column("of"), *_heads(sides)), rows=rows[:MOST_ROWS]
    )


def _all(sides: Sequence[Side], found: Sequence[Figure], words: Words) -> Table:
    """Every result of every side."""
    columns = (
        Column("result"), Column("unit"), *_heads(sides), Column("difference"), Column("change", "fraction"),
        Column("best"),
    )  # fmt: skip
    numbers = tuple(
        (
            one.key, one.unit, *(None if value is None else value.value for value in one.values), one.difference,
            one.share_fraction, _better(sides, one),
        )
        for one in found
    )  # fmt: skip
    texts = tuple((key, "", *values, None, None, "") for key, values in words)
    return Table(title="every result", columns=columns, rows=(*numbers, *texts), data=True)


def charts(sides: Sequence[Side], found: Sequence[Figure]) -> tuple[Chart, ...]:
    """By how much the second has more or less than the first, of what matters."""
    bars = [
        (spoken(one.key), one.share_fraction)
        for one in found
        if one.share_fraction is not None and one.differs
    ][:MOST_BARS]
    if len(sides) != 2 or not bars:
        return ()
    first, second = (one.name for one in sides)
    return (
        ChangeChart(
            title=f"what {second} has more or less than {first}",
            rows=tuple(name for name, _ in bars),
            shares=tuple(share for _, share in bars),
            note="to the right is more, to the left less; which is better stands in the table",
        ),
    )
