"""The queue by decayed use: whose use passes another's goes behind him, with all of his jobs.

Use grows and decays with every event, and the queue may be long: only the users whose ranks changed are sorted, and
their jobs lie in runs that are in order already.
"""

from __future__ import annotations

from datahall.compiled import inline
from datahall.scheduling.loop.lifecycle import comes_before
from datahall.scheduling.loop.state import State


@inline
def sort_queue(s: State) -> None:
    """Put the waiting into the order of use."""
    low, high = rank_users(s)
    if low <= high:
        begin, end = place_of(s, low), place_of(s, high + 1)
        while merge_runs(s, begin, end) > 1:
            pass


@inline
def rank_users(s: State) -> tuple[int, int]:
    """Give every user the number of those who used less; the least and the greatest rank that changed, if any."""
    users, usage, ranks = s.by_usage, s.usage, s.ranks
    for end in range(1, users.size):
        user, place = users[end], end
        while place > 0 and usage[user] < usage[users[place - 1]]:
            users[place] = users[place - 1]
            place -= 1
        users[place] = user
    low, high, rank = users.size, -1, 0
    for place in range(users.size):
        user = users[place]
        if place > 0 and usage[user] > usage[users[place - 1]]:
            rank = place
        if ranks[user] != rank:
            low, high = min(low, rank, ranks[user]), max(high, rank, ranks[user])
            ranks[user] = rank
    return low, high


@inline
def place_of(s: State, rank: int) -> int:
    """Where the jobs of users of a rank, or a greater one, begin: those before and behind the changed are in order."""
    low, high = 0, s.counts[0]["waiting"]
    while low < high:
        middle = (low + high) // 2
        if s.ranks[s.jobs[s.waiting[middle]]["user"]] < rank:
            low = middle + 1
        else:
            high = middle
    return int(low)


@inline
def merge_runs(s: State, begin: int, end: int) -> int:
    """Merge each two neighbouring runs that are in order; how many runs are left."""
    left, at = 0, begin
    while at < end:
        middle = run_end(s, at, end)
        until = run_end(s, middle, end)
        one, other = at, middle
        for place in range(at, until):
            first = other == until or (one < middle and comes_before(s, s.waiting[one], s.waiting[other]))
            s.merged[place] = s.waiting[one if first else other]
            one, other = (one + 1, other) if first else (one, other + 1)
        for place in range(at, until):
            s.waiting[place] = s.merged[place]
        at = until
        left += 1
    return left


@inline
def run_end(s: State, begin: int, end: int) -> int:
    """The end of the run of jobs in order that begins at a place."""
    place = begin + 1
    while place < end and comes_before(s, s.waiting[place - 1], s.waiting[place]):
        place += 1
    return min(place, end)
