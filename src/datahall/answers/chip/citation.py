"""Sources numbered as they are first used, for the column that points to them."""

from __future__ import annotations

from datahall.answer import Cell, Quantity
from datahall.breakdown import Breakdown, Source
from datahall.breakdown import fact as leaf
from datahall.catalog.fact import Fact


class Citations:
    """A list of sources that grows as facts are cited."""

    def __init__(self) -> None:
        self._numbers: dict[Source, int] = {}

    def number(self, source: Source) -> int:
        """The number of a source, counting from 1."""
        return self._numbers.setdefault(source, len(self._numbers) + 1)

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(self._numbers)


def quantity(fact: Fact) -> Quantity:
    """The value of a fact with its unit and, where sources differ, their range."""
    return Quantity(fact.value, fact.unit, fact.low, fact.high)


def figure(fact: Fact, name: str = "") -> Breakdown:
    """A fact as the leaf of a breakdown."""
    return leaf(name or fact.label, fact.value, fact.unit, fact.source, note=fact.note)


def known(value: float) -> Cell:
    """A number of the catalogue, or None where nobody published it (NaN, or 0 for a count)."""
    return value if value == value and value != 0 else None
