"""Room for a job that does not fit: others of lower priority are stopped, or small ones are moved together."""

from __future__ import annotations

from datahall.compiled import inline
from datahall.scheduling.loop.lifecycle import start, stop
from datahall.scheduling.loop.state import (
    MIGRATED,
    NONE,
    PREEMPTED,
    State,
    clear,
    copy,
    count_change,
    fits,
    share_of,
)
from datahall.scheduling.loop.victims import line_up, next_victim


@inline
def make_room(s: State, job: int, now: float) -> bool:
    """Make room for a job that does not fit, in the way of the policy; whether there is some now."""
    return preempt(s, job, now) if s.policy[0]["preempts"] else defragment(s, job, now)


@inline
def preempt(s: State, job: int, now: float) -> bool:
    """Stop jobs of lower priority until one fits: of the lowest priority first, the latest started first; or none."""
    counts, nodes, one = s.counts[0], s.nodes, s.jobs[job]
    left = line_up(s, one)
    if left == 0:
        return False
    copy(nodes.after, nodes.free)
    copy(nodes.later, nodes.at_least)
    num = 0
    while not fits(nodes.later, one):
        if left == 0:
            return False
        left -= 1
        s.moves[num] = next_victim(s, left)
        lend(s, s.moves[num], 1)
        num += 1
    for place in range(num - 1, -1, -1):  # spare those without whom it fits as well
        victim = s.moves[place]
        lend(s, victim, -1)
        if fits(nodes.later, one):
            s.moves[place] = NONE
        else:
            lend(s, victim, 1)
    for place in range(num):
        if s.moves[place] != NONE:
            stop(s, s.moves[place], now, PREEMPTED)
    counts["reserved"] = 0
    return True


@inline
def lend(s: State, job: int, sign: int) -> None:
    """Count the chips of a running job as free, or no more."""
    one = s.jobs[job]
    for index in range(one["nodes"]):
        node = s.places[one["first"] + index]
        chips = s.nodes.after[node] + sign * share_of(s, job, index)
        count_change(s.nodes.later, s.nodes.after[node], chips)
        s.nodes.after[node] = chips


@inline
def defragment(s: State, job: int, now: float) -> bool:
    """Move small jobs off nodes that are nearly free until a job fits that would fit in number; or none."""
    counts, nodes, one = s.counts[0], s.nodes, s.jobs[job]
    if one["chips"] > counts["free"] or one["extra"] > 0:
        return False
    copy(nodes.after, nodes.free)
    clear(nodes.stuck)
    num, missing = 0, one["nodes"] - nodes.at_least[one["base"]]
    while missing > 0:
        node = emptiest(s, one["base"])
        if node == NONE:
            return False
        more = clear_node(s, node, one["base"], num)
        if more > num:
            num, missing = more, missing - 1
        else:
            nodes.stuck[node] = 1
    for move in range(num):
        moved = s.moves[2 * move]
        stop(s, moved, now, MIGRATED)
        s.places[s.jobs[moved]["first"]] = s.moves[2 * move + 1]
        s.jobs[moved]["queued_s"] = now
        s.by_chips[s.jobs[moved]["chips"]] += 1
        counts["smallest"] = min(counts["smallest"], s.jobs[moved]["chips"])
        start(s, moved, now)
    return True


@inline
def emptiest(s: State, base: int) -> int:
    """The node with the most free chips of those with too few, which may be cleared yet."""
    best = NONE
    for node in range(s.nodes.free.size):
        chips = s.nodes.after[node]
        whole = s.nodes.size[node] >= base and s.nodes.down[node] == 0 and s.nodes.stuck[node] == 0
        if whole and chips < base and (best == NONE or chips > s.nodes.after[best]):
            best = node
    return best


@inline
def clear_node(s: State, node: int, base: int, num: int) -> int:
    """Find other nodes for small jobs of one until it has enough free chips; how many moves there are then.

    Where that cannot be, there are as many as before.  No job moves to a node that has enough, nor to one that was
    cleared.
    """
    nodes, first = s.nodes, num
    for place in range(s.counts[0]["running"]):
        if nodes.after[node] >= base:
            return num
        job = s.running[place]
        one = s.jobs[job]
        if one["nodes"] > 1 or not one["preemptible"] or s.places[one["first"]] != node:
            continue
        target = NONE
        for other in range(nodes.free.size):
            chips = nodes.after[other]
            if other == node or chips < one["chips"] or chips >= base:
                continue
            if target == NONE or chips < nodes.after[target]:
                target = other
        if target != NONE:
            nodes.after[target] -= one["chips"]
            nodes.after[node] += one["chips"]
            s.moves[2 * num], s.moves[2 * num + 1] = job, target
            num += 1
    if nodes.after[node] >= base:
        return num
    while num > first:  # back, for it is of no use
        num -= 1
        job, target = s.moves[2 * num], s.moves[2 * num + 1]
        nodes.after[target] += s.jobs[job]["chips"]
        nodes.after[node] -= s.jobs[job]["chips"]
    return first
