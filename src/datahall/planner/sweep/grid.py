"""The points of a sweep: every value of each input with every value of the others, the last input turning fastest."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import msgspec

MOST_POINTS = 100_000  # a gigabyte of results


class Grid(msgspec.Struct, frozen=True):
    """How many values each input has."""

    sides: tuple[int, ...]

    @property
    def num(self) -> int:
        """How many points there are.

        >>> Grid((3, 10)).num, Grid((10**6, 10**6)).num
        (30, 1000000000000)
        """
        return prod(self.sides)

    def at(self, index: int) -> tuple[int, ...]:
        """Which value each input has at a point.

        >>> [Grid((2, 3)).at(index) for index in range(4)]
        [(0, 0), (0, 1), (0, 2), (1, 0)]
        """
        return tuple(reversed(list(self._turned(index))))

    def _turned(self, index: int) -> Iterator[int]:
        for side in reversed(self.sides):
            index, place = divmod(index, side)
            yield place
