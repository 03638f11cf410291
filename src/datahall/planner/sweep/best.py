"""Which point of a sweep is best, by how much, and how the others follow."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from datahall.planner.compare.difference import share_of
from datahall.planner.compare.lead import Lead


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """Points with what they have of one result, from best to worst; those that lack it are left out."""

    lead: Lead
    rows: tuple[tuple[int, float], ...]

    @property
    def places(self) -> tuple[int, ...]:
        """The points."""
        return tuple(place for place, _ in self.rows)

    @property
    def values(self) -> tuple[float, ...]:
        """What they have."""
        return tuple(value for _, value in self.rows)

    @property
    def margin_fraction(self) -> float | None:
        """How much less, or more, the best has than the next that has another value, as a share of that."""
        best = self.values[0]
        other = next((one for one in self.values if one != best), None)
        return None if other is None else share_of(other, best)

    @property
    def next_place(self) -> int | None:
        """The first point that is worse than the best."""
        return next((place for place, one in self.rows if one != self.values[0]), None)

    @property
    def num_others(self) -> int:
        """How many other points have what the best has."""
        return self.values.count(self.values[0]) - 1


def ranking(lead: Lead, values: Sequence[float | None]) -> Ranking:
    """Points by one result; of several with the same the first leads."""
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    ordered = sorted(known, key=lambda row: row[1] if lead.is_least else -row[1])
    return Ranking(lead=lead, rows=tuple(ordered))
