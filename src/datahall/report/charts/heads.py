"""Names of places on an axis, in lines above the axes, where neither curves nor each other cover them.

A name stands to the left or to the right of its place, in the lowest line in which it is free: the names of places
inside it stand below it, so that no upright line crosses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

GAP = 4.0  # between an upright line and the name at its head


class Head(NamedTuple):
    """Where a name begins, and its line, counted from the axes up."""

    start: float
    row: int


def heads(
    places: Sequence[float], widths: Sequence[float], left: float, right: float, taken: float = 0.0
) -> list[Head]:
    """The names of places between two ends, in as few lines as it takes; the lowest is `taken` for so much.

    >>> heads([100.0, 120.0], [60.0, 60.0], 0.0, 300.0)
    [Head(start=36.0, row=0), Head(start=124.0, row=0)]
    >>> heads([100.0, 110.0, 120.0], [60.0, 60.0, 60.0], 0.0, 300.0)
    [Head(start=36.0, row=0), Head(start=114.0, row=1), Head(start=124.0, row=0)]
    """
    order = sorted(range(len(places)), key=lambda one: places[one])
    tries = []
    for cut in range(len(order) + 1):
        to_left = [(one, max(left, places[one] - GAP - widths[one])) for one in order[:cut]]
        to_right = [(one, min(right - widths[one], places[one] + GAP)) for one in reversed(order[cut:])]
        found: dict[int, Head] = {}
        for one, start in (*to_left, *to_right):
            found[one] = Head(start, _row(found, places, widths, one, start, left + taken))
        ordered = [found[one] for one in range(len(places))]
        tries.append(
            (_crossed(ordered, places, widths), max((head.row for head in ordered), default=0), ordered)
        )
    return min(tries, key=lambda one: one[:2])[2]


def _row(
    found: dict[int, Head],
    places: Sequence[float],
    widths: Sequence[float],
    one: int,
    start: float,
    free_from: float,
) -> int:
    """The lowest line in which a name covers no other, nor an upright line that goes higher."""
    end, row = start + widths[one], 1 if start < free_from else 0
    while any(
        (start < places[other] < end and head.row >= row)
        or (head.row == row and start < head.start + widths[other] + GAP and head.start < end + GAP)
        for other, head in found.items()
    ):
        row += 1
    return row


def _crossed(found: Sequence[Head], places: Sequence[float], widths: Sequence[float]) -> int:
    """How many upright lines go through a name."""
    return sum(
        head.start < place < head.start + width and other.row > head.row
        for head, width in zip(found, widths, strict=True)
        for other, place in zip(found, places, strict=True)
        if other is not head
    )
