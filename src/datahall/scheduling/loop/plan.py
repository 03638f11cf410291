"""Conservative backfill: everyone in the queue is promised a time and nodes, and no promise is ever put off.

The table has a row for every moment at which something changes: chips of each node that are neither taken by then nor
promised.  A job that ends early lets promises be made anew, one after the other with all others kept, so that none
becomes later.
"""

from __future__ import annotations

import numpy as np

from datahall.compiled import inline
from datahall.scheduling.loop.lifecycle import start
from datahall.scheduling.loop.placement import take_node
from datahall.scheduling.loop.state import State, share_of

MOVED = 16  # waiting jobs whose promises are looked at anew after every event


@inline
def make_plan(s: State, now: float) -> None:
    """Start what may start, and promise the first `depth` of the others a time each.

    The first `MOVED` of those that have a promise may get any earlier one; those behind them only to start at once.
    """
    counts, depth = s.counts[0], s.policy[0]["depth"]
    lay_table(s, now)
    left = 0
    for place in range(counts["waiting"]):
        job = s.waiting[place]
        one = s.jobs[job]
        if left < depth:
            rows = counts["rows"]
            if one["planned_s"] < np.inf:
                book(s, job, 1)
                if left >= MOVED:
                    rows = 1 if fits_at_once(s, job) else 0
            if rows > 0:
                one["planned_s"] = earliest(s, job, rows)
            if one["planned_s"] < np.inf:
                book(s, job, -1)
            one["promised_s"] = min(one["promised_s"], one["planned_s"])
            if one["planned_s"] == now:
                one["planned_s"] = np.inf
                start(s, job, now)
                continue
        s.waiting[left] = job
        left += 1
    counts["waiting"] = left


@inline
def lay_table(s: State, now: float) -> None:
    """Rows from now on: what those that run leave free when they are due, less what is promised."""
    counts = s.counts[0]
    s.row_s[0], counts["rows"] = now, 1
    for place in range(counts["running"]):
        add_time(s, s.jobs[s.running[place]]["due_s"])
    for place in range(counts["waiting"]):
        one = s.jobs[s.waiting[place]]
        if one["planned_s"] < np.inf:
            one["planned_s"] = max(one["planned_s"], now)
            add_time(s, one["planned_s"])
            add_time(s, one["planned_s"] + length_of(s, s.waiting[place]))
    s.row_free[0] = counts["free"]
    for node in range(s.nodes.free.size):
        s.table[0, node] = s.nodes.free[node]
    place = 0
    for row in range(counts["rows"]):
        if row > 0:
            copy_row(s, row - 1, row)
        while place < counts["running"] and s.jobs[s.running[place]]["due_s"] <= s.row_s[row]:
            job = s.running[place]
            s.row_free[row] += s.jobs[job]["chips"]
            for index in range(s.jobs[job]["nodes"]):
                s.table[row, s.places[s.jobs[job]["first"] + index]] += share_of(s, job, index)
            place += 1
    for place in range(counts["waiting"]):
        if s.jobs[s.waiting[place]]["planned_s"] < np.inf:
            book(s, s.waiting[place], -1)


@inline
def add_time(s: State, time_s: float) -> None:
    """A row begins at a time; its chips are not counted yet."""
    row = find_row(s, time_s)
    if s.row_s[row] == time_s:
        return
    counts = s.counts[0]
    for other in range(counts["rows"], row + 1, -1):
        s.row_s[other] = s.row_s[other - 1]
    s.row_s[row + 1] = time_s
    counts["rows"] += 1


@inline
def find_row(s: State, time_s: float) -> int:
    """The last row that begins no later than a time."""
    low, high = 0, s.counts[0]["rows"]
    while low + 1 < high:
        middle = (low + high) // 2
        if s.row_s[middle] <= time_s:
            low = middle
        else:
            high = middle
    return int(low)


@inline
def copy_row(s: State, row: int, into: int) -> None:
    """Write one row over another."""
    s.row_free[into] = s.row_free[row]
    for node in range(s.nodes.free.size):
        s.table[into, node] = s.table[row, node]


@inline
def length_of(s: State, job: int) -> float:
    """How long a job may run at most, wherever it lies."""
    again_s = s.counts[0]["again_s"] if s.jobs[job]["restarts"] > 0 else 0.0
    return float(again_s + s.jobs[job]["limit_s"] * s.jobs[job]["worst_ratio"])


@inline
def row_at(s: State, time_s: float) -> int:
    """The row that begins at a time, made where there is none."""
    counts = s.counts[0]
    row = find_row(s, time_s)
    if s.row_s[row] == time_s:
        return row
    for other in range(counts["rows"], row + 1, -1):
        s.row_s[other] = s.row_s[other - 1]
        copy_row(s, other - 1, other)
    s.row_s[row + 1] = time_s
    copy_row(s, row, row + 1)
    counts["rows"] += 1
    return row + 1


@inline
def book(s: State, job: int, sign: int) -> None:
    """Take the chips of a promise out of the rows of its time (−1), or put them back (1)."""
    one = s.jobs[job]
    begin = row_at(s, one["planned_s"])
    end = row_at(s, one["planned_s"] + length_of(s, job))
    for row in range(begin, end):
        s.row_free[row] += sign * one["chips"]
        for index in range(one["nodes"]):
            s.table[row, s.places[one["first"] + index]] += sign * share_of(s, job, index)


@inline
def earliest(s: State, job: int, rows: int) -> float:
    """The first time, of so many rows, at which a job has enough nodes for as long as it may run; they are its own."""
    one, counts = s.jobs[job], s.counts[0]
    if counts["rows"] + 2 > s.row_s.size:
        return np.inf
    length_s = length_of(s, job)
    base = one["base"]
    row = next_in_number(s, job, 0, rows, length_s)
    while row < rows:
        more, rest = 0, 0
        for turn in range(2):  # first those that are taken until then: free ones may be used till then
            for node in range(s.nodes.free.size):
                if more + rest == one["nodes"]:
                    break
                before = s.table[row - 1, node] if row > 0 else 0
                if (before >= base) != (turn == 1):
                    continue
                chips = left_until(s, row, node, s.row_s[row] + length_s, base)
                more, rest = take_node(s, job, node, chips, more, rest)
        if more + rest == one["nodes"]:
            return float(s.row_s[row])
        row = next_in_number(s, job, row + 1, rows, length_s)
    return np.inf


@inline
def next_in_number(s: State, job: int, row: int, rows: int, length_s: float) -> int:
    """The first row from one on in which a job fits in number for as long as it may run; nodes are another matter."""
    chips = s.jobs[job]["chips"]
    until = row  # rows before it are known to have enough
    while row < rows:
        while until < s.counts[0]["rows"] and s.row_s[until] < s.row_s[row] + length_s:
            if s.row_free[until] < chips:
                row = until + 1
            until += 1
            if row >= rows:
                return rows
        if until > row:
            return row
        until = row
    return rows


@inline
def fits_at_once(s: State, job: int) -> bool:
    """Whether a job has enough nodes from now on for as long as it may run."""
    one, wide, tall = s.jobs[job], 0, 0
    until_s = s.row_s[0] + length_of(s, job)
    for node in range(s.nodes.free.size):
        if s.table[0, node] >= one["base"]:
            chips = left_until(s, 0, node, until_s, one["base"])
            wide += 1 if chips >= one["base"] else 0
            tall += 1 if chips > one["base"] else 0
    return bool(wide >= one["nodes"] and tall >= one["extra"])


@inline
def left_until(s: State, row: int, node: int, until_s: float, base: int) -> int:
    """Chips that a node has free from a row on until a time; fewer than `base` are not counted out."""
    chips = s.table[row, node]
    later = row + 1
    while chips >= base and later < s.counts[0]["rows"] and s.row_s[later] < until_s:
        chips = min(chips, s.table[later, node])
        later += 1
    return int(chips)


@inline
def drop_plan(s: State) -> None:
    """Promises do not hold when nodes fail."""
    for place in range(s.counts[0]["waiting"]):
        one = s.jobs[s.waiting[place]]
        one["planned_s"], one["promised_s"] = np.inf, np.inf
