"""What the points of a sweep are judged by, over one or two of the inputs that move."""

from __future__ import annotations

from datahall.answer import Axis, Chart, Column, LineChart, Series, StackChart
from datahall.answers.compare.spoken import spoken
from datahall.answers.sweep.asked import Swept
from datahall.answers.sweep.judged import Judged, number
from datahall.answers.sweep.tables import unit

MOST_LINES, MOST_BARS, LEAST_DOTS = 8, 40, 2


def charts(swept: Swept, judged: Judged) -> tuple[Chart, ...]:
    """Lines over the input with the most numbers, one for each value of another; bars over one of words."""
    key = judged.columns[0] if judged.columns else ""
    if not swept.moving or not key or not judged.answered:
        return ()
    numeric = [place for place in swept.moving if _is_numeric(swept, place)]
    if not numeric:
        return _bars(swept, judged, key)
    along = max(numeric, key=lambda place: len(set(swept.cells[place])))
    return _lines(swept, judged, key, along)


def _is_numeric(swept: Swept, place: int) -> bool:
    return all(isinstance(one, int | float) and not isinstance(one, bool) for one in swept.cells[place])


def _lines(swept: Swept, judged: Judged, key: str, along: int) -> tuple[Chart, ...]:
    others = [place for place in swept.moving if place != along]
    by = max(others, key=lambda place: len(swept.cells[place]), default=None)
    if by is not None and len(swept.cells[by]) > MOST_LINES:
        by = None
    fixed = [place for place in others if place != by]
    base = swept.grid.at(judged.ranking.places[0] if judged.ranking else judged.answered[0])
    lines: dict[str, list[tuple[float, float]]] = {}
    for place in judged.answered:
        at, value = swept.grid.at(place), number(judged.points[place], key)
        if value is None or any(at[axis] != base[axis] for axis in fixed):
            continue
        name = (
            f"{swept.fields[by].name.replace('_', ' ')} {swept.axes[by].at(at[by])}"
            if by is not None
            else spoken(key)
        )
        x = swept.cells[along][at[along]]
        assert isinstance(x, int | float)
        lines.setdefault(name, []).append((float(x), value))
    series = tuple(
        Series(name, tuple(x for x, _ in sorted(dots)), tuple(y for _, y in sorted(dots)))
        for name, dots in lines.items()
        if len(dots) >= LEAST_DOTS
    )
    if not series:
        return ()
    field = swept.fields[along]
    beside = ", ".join(
        f"{swept.fields[place].name.replace('_', ' ')} {swept.axes[place].at(base[place])}" for place in fixed
    )
    column = Column(field.name.replace("_", " "))
    kind = str(getattr(field.kind, "unit", ""))
    return (
        LineChart(
            title=f"{spoken(key)} over {column.name}" + (f", at {beside}" if beside else ""),
            x=Axis(column.name, kind, log=swept.axes[along].grows),
            y=Axis(spoken(key), unit(key, judged)),
            series=series,
        ),
    )


def _bars(swept: Swept, judged: Judged, key: str) -> tuple[Chart, ...]:
    """A bar a point, where no input that moves is a number."""
    dots = [
        (swept.called(place), value)
        for place in judged.answered[:MOST_BARS]
        if (value := number(judged.points[place], key)) is not None
    ]
    if not dots or any(value < 0 for _, value in dots):
        return ()
    return (
        StackChart(
            title=f"{spoken(key)} by point",
            unit=unit(key, judged),
            rows=tuple(name for name, _ in dots),
            parts={spoken(key): tuple(value for _, value in dots)},
        ),
    )
