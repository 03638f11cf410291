"""The points of a sweep as tables: the best for a person, every one with every result for a program."""

from __future__ import annotations

import re
from collections.abc import Sequence

from datahall.answer import Cell, Column, Quantity, Table
from datahall.answers.compare.spoken import spoken
from datahall.answers.compare.tables import MOST_COLUMNS
from datahall.answers.sweep.asked import Swept
from datahall.answers.sweep.judged import Judged, cell
from datahall.counted import counted
from datahall.scenario.field import Field
from datahall.units import unit_of

MOST_INPUTS, MOST_ROWS, MOST_REASONS = 4, 24, 6
NUMBER = re.compile(r"\d[\d.,]*")  # reasons that differ in numbers alone are one


def tables(swept: Swept, judged: Judged) -> tuple[Table, ...]:
    """All points as data, those that a person reads, and why the others have no answer."""
    return tuple(
        table for table in (_all(swept, judged), _best(swept, judged), _without(swept, judged)) if table.rows
    )


def _all(swept: Swept, judged: Judged) -> Table:
    """Every point with every input and every result."""
    inputs = tuple(_column(field, cells) for field, cells in zip(swept.fields, swept.cells, strict=True))
    taken = {column.key for column in inputs} | {"point", "verdict", "says"}
    results = tuple(
        Column(spoken(key), unit(key, judged), key=f"result_{key}" if key in taken else key)
        for key in judged.keys
    )
    rows = tuple(
        (place, *swept.point_cells(place), one.verdict, *(cell(one, key) for key in judged.keys), one.said)
        for place, one in enumerate(judged.points)
    )
    columns = (Column("point", "count"), *inputs, Column("verdict"), *results, Column("says"))
    return Table(title="every point", columns=columns, rows=rows, data=True)


def _best(swept: Swept, judged: Judged) -> Table:
    """As many as a screen holds: all in their order, or the best."""
    moving = swept.moving[:MOST_INPUTS] or range(len(swept.axes))[:1]
    inputs = [_column(swept.fields[place], swept.cells[place]) for place in moving]
    kept = judged.columns[: len(range(len(inputs), MOST_COLUMNS))]
    places: Sequence[int] = judged.answered
    few = len(places) <= MOST_ROWS
    if not few:
        places = (judged.ranking.places if judged.ranking else places)[:MOST_ROWS]
    rows = tuple(
        (
            *(swept.point_cells(place)[axis] for axis in moving),
            *(cell(judged.points[place], key) for key in kept),
        )
        for place in places
    )
    all_of_them = counted(len(judged.answered), "point")
    best = judged.ranking.places[0] if judged.ranking and judged.ranking.places else None
    return Table(
        title=all_of_them
        if few
        else f"{'the best' if judged.ranking else 'the first'} {len(places)} of {all_of_them}",
        columns=(*inputs, *(Column(spoken(key), unit(key, judged), key=key) for key in kept)),
        rows=rows,
        marked=places.index(best) if best in places else None,
        note="CSV and JSON have every point with all of its results",
    )


def _without(swept: Swept, judged: Judged) -> Table:
    """Why points have no answer, with how many have the same reason."""
    reasons: dict[str, list[int]] = {}
    for place in judged.without:
        reasons.setdefault(NUMBER.sub("#", judged.points[place].said), []).append(place)
    rows = tuple(
        (swept.called(first), len((first, *others)), judged.points[first].verdict, judged.points[first].said)
        for first, *others in list(reasons.values())[:MOST_REASONS]
    )
    more = len(reasons) - len(rows)
    return Table(
        title="points without an answer",
        columns=(
            Column("the first"),
            Column("points", "count"),
            Column("verdict"),
            Column("why", aside=True),
        ),
        rows=rows,
        note=f"and {counted(more, 'other reason')}" if more else "",
    )


def _column(field: Field, cells: Sequence[Cell]) -> Column:
    """The column of an input, with its unit where its values are numbers."""
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in cells)
    own = str(getattr(field.kind, "unit", "")) or unit_of(field.attribute) or "count"
    return Column(field.name.replace("_", " "), own if numbers else "", key=field.attribute)


def unit(key: str, judged: Judged) -> str:
    """The unit of a result; nothing where it is a word."""
    for one in judged.points:
        value = one.results.get(key)
        if isinstance(value, Quantity):
            return value.unit
        if isinstance(value, str | bool):
            return ""
        if value is not None:
            return "parameters" if key.endswith("parameters") else unit_of(key) or "count"
    return ""
