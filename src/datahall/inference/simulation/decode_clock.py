"""Decoding without counting tokens: every decoding request of a replica gets a token at each tick of one clock.

So a request ends at a tick known when it begins, the total context grows by a constant per tick, and blocks are needed
at ticks that repeat with the size of a block.  A replica in which nothing else happens leaps over many ticks at once.
The times between tokens are those between ticks; only the first of a request that joins may be another.
"""

from __future__ import annotations

import math

from datahall.compiled import inline
from datahall.inference.simulation.histogram import ITL, add
from datahall.inference.simulation.state import NONE, State, is_counted


@inline
def push_finish(s: State, replica: int, slot: int, finish: int) -> None:
    """A request begins to decode; it ends at the tick `finish`."""
    place = int(s.replicas[replica]["decoding"])
    s.replicas[replica]["decoding"] = place + 1
    _rise(s, replica, place, finish, slot)


@inline
def remove_finish(s: State, replica: int, place: int) -> None:
    """Take the request at a place out of the heap."""
    last = int(s.replicas[replica]["decoding"]) - 1
    s.replicas[replica]["decoding"] = last
    if place == last:
        return
    finish, slot = s.heap[replica, 2 * last], s.heap[replica, 2 * last + 1]
    if place > 0 and s.heap[replica, 2 * ((place - 1) >> 1)] > finish:
        _rise(s, replica, place, finish, slot)
        return
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        if child + 1 < last and s.heap[replica, 2 * child + 2] < s.heap[replica, 2 * child]:
            child += 1
        if s.heap[replica, 2 * child] >= finish:
            break
        _put(s, replica, place, s.heap[replica, 2 * child], s.heap[replica, 2 * child + 1])
        place = child
    _put(s, replica, place, finish, slot)


@inline
def _rise(s: State, replica: int, place: int, finish: int, slot: int) -> None:
    while place > 0:
        parent = (place - 1) >> 1
        if s.heap[replica, 2 * parent] <= finish:
            break
        _put(s, replica, place, s.heap[replica, 2 * parent], s.heap[replica, 2 * parent + 1])
        place = parent
    _put(s, replica, place, finish, slot)


@inline
def _put(s: State, replica: int, place: int, finish: int, slot: int) -> None:
    s.heap[replica, 2 * place] = finish
    s.heap[replica, 2 * place + 1] = slot
    s.slots[slot]["place"] = place


@inline
def phase_of(clock: int, slack_steps: int, steps_per_block: int) -> int:
    """The phase of a request whose last block is full after so many further steps."""
    return (-(clock + slack_steps)) % steps_per_block


@inline
def blocks_since(clock: int, now: int, phase: int, steps_per_block: int) -> int:
    """Blocks that a request of a phase took at the ticks clock … now − 1."""
    if phase == NONE:
        return 0
    return (now - 1 + phase) // steps_per_block - (clock - 1 + phase) // steps_per_block


@inline
def blocks_needed(s: State, replica: int, steps_per_block: int, first: int, last: int) -> int:
    """Blocks that all decoding requests take at the ticks first … last − 1."""
    if last <= first:
        return 0
    rounds = (last - first) // steps_per_block
    needed = rounds * int(s.replicas[replica]["phased"])
    phase = (-first) % steps_per_block
    for _ in range(first + rounds * steps_per_block, last):
        needed += s.phases[replica, phase]
        phase = phase - 1 if phase > 0 else steps_per_block - 1
    return needed


@inline
def ticks_that_fit(s: State, replica: int, steps_per_block: int, first: int, wanted: int, free: int) -> int:
    """How many of the wanted ticks from `first` on need no more than the free blocks."""
    phased = int(s.replicas[replica]["phased"])
    if phased * ((wanted + steps_per_block - 1) // steps_per_block) <= free:
        return wanted
    ticks = (free // phased) * steps_per_block
    left, phase = free % phased, (-first) % steps_per_block
    while ticks < wanted:
        left -= s.phases[replica, phase]
        if left < 0:
            break
        phase = phase - 1 if phase > 0 else steps_per_block - 1
        ticks += 1
    return min(ticks, wanted)


@inline
def join_ticks(s: State, replica: int, slot: int) -> None:
    """A request is about to decode; its next gap begins at its own last token, where that was not at the last tick."""
    rep, one = s.replicas[replica], s.slots[slot]
    if rep["decoding"] == 0:
        rep["tick_s"] = one["token_s"]
    if not is_counted(s, slot):
        return
    rep["measured"] += 1
    if one["token_s"] != rep["tick_s"]:
        one["late"], rep["late"] = rep["late"], slot


@inline
def leave_ticks(s: State, replica: int, slot: int) -> None:
    """A request decodes no longer: it had its last token at the last tick, if it has seen one."""
    rep, one = s.replicas[replica], s.slots[slot]
    counted = is_counted(s, slot)
    rep["measured"] -= counted
    if one["clock"] < rep["clock"]:
        one["token_s"] = rep["tick_s"]
    elif counted and one["token_s"] != rep["tick_s"]:
        ahead, other = NONE, rep["late"]
        while other != slot:
            ahead, other = other, s.slots[other]["late"]
        if ahead == NONE:
            rep["late"] = one["late"]
        else:
            s.slots[ahead]["late"] = one["late"]


@inline
def count_gaps(s: State, replica: int, num_steps: int) -> None:
    """Times between tokens of steps that have ended, over the requests that are measured; of a leap, its halves."""
    rep, counts = s.replicas[replica], s.histograms
    step_s, growth_s, waited_s = rep["step_s"], rep["growth_s"], rep["start_s"] - rep["tick_s"]
    num = others = float(rep["measured"])
    if num == 0.0:
        return
    while rep["late"] != NONE:
        one = s.slots[rep["late"]]
        add(counts, ITL, rep["start_s"] - one["token_s"] + step_s)
        rep["late"] = one["late"]
        others -= 1.0
    if num_steps == 1 or waited_s > 0.0 or others < num:
        add(counts, ITL, waited_s + step_s, others)
        step_s, num_steps = step_s + growth_s, num_steps - 1
    if num_steps == 0:
        return
    half = num_steps // 2
    if half > 0:
        add(counts, ITL, step_s + growth_s * (half - 1) / 2.0, num * half)
    add(counts, ITL, step_s + growth_s * (num_steps + half - 1) / 2.0, num * (num_steps - half))


@inline
def leap_time(step_s: float, growth_s: float, num_steps: int) -> float:
    """Time of steps of which the first takes step_s and each further one growth_s more [s]."""
    return num_steps * (step_s + growth_s * (num_steps - 1) / 2.0)


@inline
def steps_until(step_s: float, growth_s: float, elapsed_s: float, most: int) -> int:
    """The least number of steps, 1 … most, that take at least `elapsed_s`."""
    linear = step_s - growth_s / 2.0
    inside = linear * linear + 2.0 * growth_s * elapsed_s
    count = max(1, min(most, int(2.0 * elapsed_s / (linear + math.sqrt(max(inside, 0.0))))))
    while count < most and leap_time(step_s, growth_s, count) < elapsed_s:
        count += 1
    return count
