"""What two or more answers to one question have of each result: who has the better one, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isfinite, log

import msgspec

from datahall.answer import Cell, Quantity
from datahall.planner.compare.lead import Lead
from datahall.units import unit_of

Results = Mapping[str, Cell]
SAME = 1e-12  # relative distance within which two floats are one number, written down and read again


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One result of each of several answers; None where an answer lacks it."""

    key: str
    unit: str
    values: tuple[Quantity | None, ...]
    lead: Lead | None = None

    @property
    def known(self) -> list[float]:
        """The numbers of those that have it."""
        return [one.value for one in self.values if one is not None]

    @property
    def differs(self) -> bool:
        """Whether any two are not the same, or one lacks it."""
        return len(self.known) < len(self.values) or not all(_same(one, self.known[0]) for one in self.known)

    @property
    def best(self) -> int | None:
        """The place of the one that is better than all others; None where none is, or nobody says what is better."""
        if self.lead is None or len(self.known) < 2:
            return None
        ends = min if self.lead.is_least else max
        first = ends(self.known)
        places = [
            place for place, one in enumerate(self.values) if one is not None and _same(one.value, first)
        ]
        return places[0] if len(places) == 1 else None

    @property
    def margin_fraction(self) -> float | None:
        """By which share of the next best the best is better."""
        if self.best is None or self.lead is None:
            return None
        first, second = sorted(self.known, reverse=not self.lead.is_least)[:2]
        return share_of(second, first)

    @property
    def difference(self) -> float | None:
        """The second less the first; nothing of what is one number in another last digit."""
        one, other = self.values[:2]
        if one is None or other is None:
            return None
        return 0.0 if _same(one.value, other.value) else other.value - one.value

    @property
    def share_fraction(self) -> float | None:
        """The same as a share of the first; None of nothing."""
        one, other = self.values[:2]
        return None if one is None or other is None else share_of(one.value, other.value)

    @property
    def bands_meet(self) -> bool:
        """Whether the band of the first and that of the second have anything in common."""
        one, other = self.values[:2]
        if one is None or other is None or None in (one.low, one.high, other.low, other.high):
            return False
        lows, highs = (one.low or 0.0, other.low or 0.0), (one.high or 0.0, other.high or 0.0)
        return max(lows) <= min(highs)

    @property
    def weight(self) -> float:
        """How far apart they are, whichever way: the logarithm of the largest over the smallest."""
        sizes = [abs(one) for one in self.known]
        if not self.differs or len(sizes) < 2:
            return 0.0
        return log(max(sizes) / min(sizes)) if min(sizes) > 0.0 else inf


def share_of(one: float, other: float) -> float | None:
    """By which share of one another is more.

    >>> share_of(8.0, 10.0), share_of(8.0, 6.0), share_of(0.0, 1.0)
    (0.25, -0.25, None)
    """
    if one == other:
        return 0.0
    return (other - one) / abs(one) if one and isfinite(one) and isfinite(other) else None


def figures(results: Sequence[Results], leads: Mapping[str, Lead]) -> list[Figure]:
    """All numbers that any answer has: the main ones in their order, the others by how far apart they are."""
    keys = list(dict.fromkeys(key for one in results for key in one))
    found = [
        Figure(
            key=key,
            unit=_unit(key, results),
            values=tuple(_number(key, one) for one in results),
            lead=leads.get(key),
        )
        for key in keys
        if any(_number(key, one) is not None for one in results) and not _is_end(key, results)
    ]
    main, order = [one for one in found if one.lead], list(leads)
    main.sort(key=lambda one: (not one.differs, order.index(one.key)))
    return [*main, *sorted((one for one in found if not one.lead), key=lambda one: -one.weight)]


def worded(results: Sequence[Results]) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    """What answers say in words and do not say alike: a layout, what binds, yes or no."""
    for key in dict.fromkeys(key for one in results for key in one):
        values = tuple(one.get(key) for one in results)
        if any(isinstance(one, str | bool) for one in values) and len(set(map(str, values))) > 1:
            yield key, values


def _number(key: str, results: Results) -> Quantity | None:
    """A result as a number with its unit, and its band where the answer has one."""
    value = results.get(key)
    if isinstance(value, Quantity):
        return value
    if value is None or isinstance(value, str | bool):
        return None
    low, high = (results.get(name) for name in _ends(key))
    if isinstance(low, int | float) and isinstance(high, int | float):
        return Quantity(value, _unit(key, [results]), low, high)
    return Quantity(value, _unit(key, [results]))


def _unit(key: str, results: Sequence[Results]) -> str:
    own = next((one[key] for one in results if isinstance(one.get(key), Quantity)), None)
    if isinstance(own, Quantity):
        return own.unit
    return "parameters" if key.endswith("parameters") else unit_of(key)


def _ends(key: str) -> tuple[str, str]:
    """The keys of the ends of a band beside that of its value: pass_low_s of pass_s, num_chips_low of num_chips."""
    stem, unit = key.removesuffix(f"_{unit_of(key)}"), unit_of(key)
    return (f"{key}_low", f"{key}_high") if stem == key else (f"{stem}_low_{unit}", f"{stem}_high_{unit}")


def _is_end(key: str, results: Sequence[Results]) -> bool:
    """Whether a result is an end of the band of another one."""
    return any(key in _ends(other) for one in results if key in one for other in one)


def _same(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= SAME * max(abs(one), abs(other))
