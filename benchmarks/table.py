"""One measured figure, its budget where it has one, and the table they are printed in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Line(NamedTuple):
    """A figure; seconds and rates are written for a person."""

    what: str
    value: float
    unit: str
    budget: float | None = None
    more_is_better: bool = False

    @property
    def verdict(self) -> str:
        """Whether the budget is met; nothing where there is none."""
        if self.budget is None:
            return ""
        met = self.value >= self.budget if self.more_is_better else self.value <= self.budget
        sign = "≥" if self.more_is_better else "≤"
        return f"{'met' if met else 'missed'} ({sign} {_shown(self.budget, self.unit)})"


def printed(lines: Iterable[Line]) -> str:
    """The lines as a table."""
    rows = [(line.what, _shown(line.value, line.unit), line.verdict) for line in lines]
    what, value = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(f"{row[0]:{what}}  {row[1]:>{value}}  {row[2]}".rstrip() for row in rows)


def _shown(value: float, unit: str) -> str:
    if unit == "s":
        return f"{value * 1e3:,.1f} ms"
    return f"{value:,.0f}{unit}" if unit == "/s" else f"{value:,.3g} {unit}"
