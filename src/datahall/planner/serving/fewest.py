"""The fewest that keep the limits, found so that looser limits never find more.

Whether a number keeps the limits is a draw near the edge: 107 may keep them, 108 not and 109 again.  A search that
begins where the limits say ends in another of these for other limits, and so a looser one in more.  Here the numbers
that are tried are those of one tree, whatever the limits: the least, doubled until one keeps them, then halves.  What
keeps stricter limits keeps looser ones, so that looser limits turn towards fewer at the first number at which the two
part.  Far from where the closed form expects the edge a number is not tried: fewer do not keep the limits, more do;
what is found lies well within what was tried, or more is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

NEARBY = 0.03  # of the number found: so far on both sides everything on the way was tried
RESOLUTION = 0.01  # of the number, at which the search ends


class Edge(NamedTuple):
    """The fewest that keep the limits, and the most below them that do not."""

    enough: int  # beyond the most: none does
    broken: int


def fewest(keeps: Callable[[int], bool], *, expected: int, least: int, most: int) -> Edge:
    """The fewest from `least` to `most` that keep the limits, looked for near what is expected."""
    tried: dict[int, bool] = {}
    low = high = min(max(expected, least), most)
    down = up = 1  # steps, doubled each time that one is taken

    def enough(count: int) -> bool:
        if count > most or not low <= count <= high:
            return tried.get(count, count > low)
        if count not in tried:
            tried[count] = keeps(count)
        return tried[count]

    while True:
        found = _down_the_tree(enough, least)
        reach = ceil(NEARBY * found.enough)
        lowest, highest = max(least, found.broken + 1 - reach), min(most, found.enough - 1 + reach)
        if found.broken >= most:
            return found
        if found.broken < low > least:
            low, down = max(least, found.broken - (down - 1) * reach), 2 * down
        elif found.enough > high < most:
            high, up = min(most, found.enough + (up - 1) * reach), 2 * up
        elif low > lowest or high < highest:
            low, high = min(low, lowest), max(high, highest)
        else:
            return found


def _down_the_tree(enough: Callable[[int], bool], least: int) -> Edge:
    if enough(least):
        return Edge(least, least - 1)
    broken, tried = least, 2 * least
    while not enough(tried):
        broken, tried = tried, 2 * tried
    while tried - broken > max(1.0, RESOLUTION * tried):
        middle = (broken + tried) // 2
        broken, tried = (broken, middle) if enough(middle) else (middle, tried)
    return Edge(tried, broken)
