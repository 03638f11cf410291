"""Who is stopped first for a job that comes before them: a heap, for a large cluster runs thousands of small jobs."""

from __future__ import annotations

from datahall.compiled import inline
from datahall.scheduling.loop.state import Records, State


@inline
def line_up(s: State, one: Records) -> int:
    """Gather who may be stopped for a job; how many there are, or 0 where all of them hold too little."""
    num, chips = 0, s.counts[0]["free"]
    for place in range(s.counts[0]["running"]):
        other = s.running[place]
        two = s.jobs[other]
        if two["preemptible"] and two["priority"] < one["priority"]:
            s.victims[num] = other
            num += 1
            chips += two["chips"]
    if chips < one["chips"]:
        return 0
    for place in range(num // 2 - 1, -1, -1):
        sink(s, place, num)
    return num


@inline
def next_victim(s: State, left: int) -> int:
    """Take the one to stop next from the heap, in which so many are left."""
    first = s.victims[0]
    s.victims[0] = s.victims[left]
    sink(s, 0, left)
    return int(first)


@inline
def sink(s: State, place: int, end: int) -> None:
    """Move one down the heap until nobody below is stopped before it."""
    job = s.victims[place]
    while 2 * place + 1 < end:
        below = 2 * place + 1
        if below + 1 < end and goes_first(s, s.victims[below + 1], s.victims[below]):
            below += 1
        if not goes_first(s, s.victims[below], job):
            break
        s.victims[place] = s.victims[below]
        place = below
    s.victims[place] = job


@inline
def goes_first(s: State, job: int, other: int) -> bool:
    """Whether one is stopped before another: the lower priority, the later start, the sooner end, the first in line."""
    one, two = s.jobs[job], s.jobs[other]
    if one["priority"] != two["priority"]:
        return bool(one["priority"] < two["priority"])
    if one["start_s"] != two["start_s"]:
        return bool(one["start_s"] > two["start_s"])
    if one["due_s"] != two["due_s"]:
        return bool(one["due_s"] < two["due_s"])
    return job < other
