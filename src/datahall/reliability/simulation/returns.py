"""When nodes or replicas are back: the times as a heap, the first of them on top."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import inline

Times = NDArray[np.float64]


@inline
def push_time(times_s: Times, count: int, time_s: float) -> int:
    """Add a time; returns how many there are.  Where there is no room, the last to come is not waited for.

    >>> heap = np.zeros(4)
    >>> push_time(heap, push_time(heap, 0, 5.0), 3.0), heap[0]
    (2, np.float64(3.0))
    """
    if count == times_s.size:
        return count
    place = count
    while place > 0 and times_s[(place - 1) // 2] > time_s:
        times_s[place] = times_s[(place - 1) // 2]
        place = (place - 1) // 2
    times_s[place] = time_s
    return count + 1


@inline
def pop_first(times_s: Times, count: int) -> int:
    """Take the first away; returns how many are left."""
    count -= 1
    last, place = times_s[count], 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and times_s[child + 1] < times_s[child]:
            child += 1
        if times_s[child] >= last:
            break
        times_s[place] = times_s[child]
        place = child
    times_s[place] = last
    return count


@inline
def drop_until(times_s: Times, count: int, now_s: float) -> int:
    """Take away all that are not after a time; returns how many are left."""
    while count > 0 and times_s[0] <= now_s:
        count = pop_first(times_s, count)
    return count
