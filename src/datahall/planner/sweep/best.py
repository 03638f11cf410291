"""Which point of a sweep is best, by how much, and how the others follow."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from datahall.planner.compare.difference import share_of
from datahall.planner.compare.lead import Lead


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """Points from best to worst by one result; those that lack it are left out."""

    lead: Lead
    places: tuple[int, ...]
    values: tuple[float, ...]

    @property
    def margin_fraction(self) -> float | None:
        """How much less, or more, the best has than the next that has another value, as a share of that."""
        other = next((one for one in self.values if one != self.values[0]), None)
        return None if other is None else share_of(other, self.values[0])

    @property
    def next_place(self) -> int | None:
        """The first point that is worse than the best."""
        return next(
            (place for place, one in zip(self.places, self.values, strict=True) if one != self.values[0]),
            None,
        )

    @property
    def num_best(self) -> int:
        """How many points have what the best has."""
        return self.values.count(self.values[0])


def ranking(lead: Lead, values: Sequence[float | None]) -> Ranking:
    """Points by one result; of several with the same the first leads."""
    known = [
        (value if lead.is_least else -value, place) for place, value in enumerate(values) if value is not None
    ]
    places = tuple(place for _, place in sorted(known))
    return Ranking(lead=lead, places=places, values=tuple(values[place] or 0.0 for place in places))
