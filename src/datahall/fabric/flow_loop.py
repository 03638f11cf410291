"""The compiled loop of the flow simulation: arrivals, completions, changes of capacity, and new rates after each.

Rates are solved again only where a change can be felt.  The flows that changed are solved against what all others
leave free; then every flow on the links they pass must still have its bottleneck: a full link on which nobody has more
per weight.  Those that do not join the region, and it is solved again.  An allocation in which every flow has its
bottleneck is the max-min fair one, and there is only one (Bertsekas & Gallager, Data Networks, 1992, §6.5.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import Kernel
from datahall.fabric.graph import Floats, Ints
from datahall.fabric.rates import _fill, fill

WAITING, DELAYED, ACTIVE, DONE = 0, 1, 2, 3
SLACK = 1e-9  # relative difference below which two levels are one


class State(NamedTuple):
    """Everything the loop reads and writes; a number that changes is an array of one."""

    # the flows and their order
    links: Ints
    offsets: NDArray[np.int64]
    share: Floats  # per entry of links; empty: all 1
    num_bytes: Floats
    weight: Floats
    cap: Floats
    start_s: Floats
    delay_s: Floats
    waiting: Ints  # flows that must end before this one may start
    next_flow: Ints
    next_offsets: NDArray[np.int64]
    # per link
    capacity: Floats
    free: Floats
    peak: Floats  # highest rate seen
    carried: Floats  # bytes
    head: Ints  # first entry of the list of active entries on this link
    slot: Ints
    marked: NDArray[np.bool_]
    seen: Ints  # links to look at after this event
    # per entry of links
    owner: Ints
    after: Ints
    ahead: Ints
    # per flow
    ready_s: Floats
    end_s: Floats
    left: Floats
    since: Floats
    rate: Floats
    bottleneck: Ints
    phase: NDArray[np.uint8]
    inside: NDArray[np.bool_]  # in the region that is being solved
    region: Ints
    # the flows that something will happen to, soonest first
    key: Floats
    heap: Ints
    position: Ints
    # heap size, active flows, flows in the region, links seen; then events, solves, flows solved
    num: NDArray[np.int64]


HEAP, ON, REGION, SEEN, EVENTS, SOLVES, SOLVED = range(7)


def _first(s: State, one: int, other: int) -> bool:
    """Whether flow `one` comes first; at one time the lower number does, so that a run is the same everywhere."""
    return bool(s.key[one] < s.key[other] or (s.key[one] == s.key[other] and one < other))


def _settle(s: State, place: int) -> None:
    """Move the flow at `place` of the heap to where its key belongs."""
    flow = s.heap[place]
    while place > 0 and _first(s, flow, s.heap[(place - 1) // 4]):
        s.heap[place] = s.heap[(place - 1) // 4]
        s.position[s.heap[place]] = place
        place = (place - 1) // 4
    while 4 * place + 1 < s.num[HEAP]:
        best = 4 * place + 1
        for child in range(best + 1, min(best + 4, s.num[HEAP])):
            if _first(s, s.heap[child], s.heap[best]):
                best = child
        if not _first(s, s.heap[best], flow):
            break
        s.heap[place] = s.heap[best]
        s.position[s.heap[place]] = place
        place = best
    s.heap[place] = flow
    s.position[flow] = place


def _schedule(s: State, flow: int, now: float) -> None:
    """A flow that waits for no other any more starts, after its latency."""
    s.ready_s[flow] = max(s.start_s[flow], now)
    s.key[flow] = s.ready_s[flow] + s.delay_s[flow]
    s.phase[flow] = DELAYED
    s.heap[s.num[HEAP]] = flow
    s.num[HEAP] += 1
    _settle(s, s.num[HEAP] - 1)


def _include(s: State, flow: int) -> None:
    """Put a flow into the region."""
    if not s.inside[flow]:
        s.inside[flow] = True
        s.region[s.num[REGION]] = flow
        s.num[REGION] += 1


def _mark(s: State, link: int) -> None:
    """Have a look at this link after the event."""
    if not s.marked[link]:
        s.marked[link] = True
        s.seen[s.num[SEEN]] = link
        s.num[SEEN] += 1


def _begin(s: State, flow: int, now: float) -> None:
    """The first byte leaves: the flow takes part in sharing its links."""
    s.phase[flow], s.since[flow], s.key[flow] = ACTIVE, now, np.inf
    _settle(s, s.position[flow])
    _include(s, flow)
    s.num[ON] += 1
    for entry in range(s.offsets[flow], s.offsets[flow + 1]):
        link = s.links[entry]
        s.owner[entry], s.after[entry], s.ahead[entry] = flow, s.head[link], -1
        if s.head[link] >= 0:
            s.ahead[s.head[link]] = entry
        s.head[link] = entry


def _end(s: State, flow: int, now: float) -> None:
    """The last byte has arrived: the links are free for others, and those who waited may start."""
    s.num[HEAP] -= 1
    last = s.heap[s.num[HEAP]]
    if last != flow:
        s.heap[s.position[flow]] = last
        _settle(s, s.position[flow])
    if s.phase[flow] == ACTIVE:
        s.num[ON] -= 1
        for entry in range(s.offsets[flow], s.offsets[flow + 1]):
            link = s.links[entry]
            s.carried[link] += s.num_bytes[flow] * (s.share[entry] if s.share.size else 1.0)
            if s.ahead[entry] >= 0:
                s.after[s.ahead[entry]] = s.after[entry]
            else:
                s.head[link] = s.after[entry]
            if s.after[entry] >= 0:
                s.ahead[s.after[entry]] = s.ahead[entry]
            _mark(s, link)
    s.phase[flow], s.end_s[flow], s.left[flow], s.rate[flow] = DONE, now, 0.0, 0.0
    for place in range(s.next_offsets[flow], s.next_offsets[flow + 1]):
        follower = s.next_flow[place]
        s.waiting[follower] -= 1
        if s.waiting[follower] == 0:
            _schedule(s, follower, now)


def _hold_back(s: State, flows: Ints) -> Floats:
    """Caps with head-of-line blocking: on the way to its bottleneck a flow holds what is behind it to its level."""
    blocked = np.full(s.capacity.size, np.inf)
    for flow in flows:
        if s.bottleneck[flow] >= 0:
            for entry in range(s.offsets[flow], s.offsets[flow + 1]):
                link = s.links[entry]
                if link == s.bottleneck[flow]:
                    break
                blocked[link] = min(blocked[link], s.rate[flow] / s.weight[flow])
    held = s.cap.copy()
    for flow in flows:
        for entry in range(s.offsets[flow], s.offsets[flow + 1]):
            held[flow] = min(held[flow], blocked[s.links[entry]] * s.weight[flow])
    return held


def _solve(s: State, head_of_line: bool) -> None:
    """Rates of the region from what the flows outside it leave free."""
    region = s.region[: s.num[REGION]]
    for flow in region:
        for entry in range(s.offsets[flow], s.offsets[flow + 1]):
            _mark(s, s.links[entry])
    for link in s.seen[: s.num[SEEN]]:
        s.free[link] = s.capacity[link]
        entry = s.head[link] if region.size < s.num[ON] else -1
        while entry >= 0:
            if not s.inside[s.owner[entry]]:
                s.free[link] -= s.rate[s.owner[entry]] * (s.share[entry] if s.share.size else 1.0)
            entry = s.after[entry]
    if region.size > 0:
        s.num[SOLVES] += 1
        s.num[SOLVED] += region.size
        _fill(region, s.links, s.offsets, s.share, s.free, s.weight, s.cap, s.slot, s.rate, s.bottleneck)
        if head_of_line:
            held = _hold_back(s, region)
            _fill(region, s.links, s.offsets, s.share, s.free, s.weight, held, s.slot, s.rate, s.bottleneck)


def _widen(s: State) -> None:
    """Take into the region every flow that has lost its bottleneck, or that has more than a flow held back by it."""
    for link in s.seen[: s.num[SEEN]]:
        used, highest, lowest = 0.0, 0.0, np.inf
        entry = s.head[link]
        while entry >= 0:
            flow = s.owner[entry]
            level = s.rate[flow] / s.weight[flow]
            used += s.rate[flow] * (s.share[entry] if s.share.size else 1.0)
            highest = max(highest, level)
            if s.inside[flow] and s.bottleneck[flow] == link:
                lowest = min(lowest, level)
            entry = s.after[entry]
        s.peak[link] = max(s.peak[link], used)
        full = used >= s.capacity[link] * (1.0 - SLACK)
        entry = s.head[link]
        while entry >= 0:
            flow = s.owner[entry]
            level = s.rate[flow] / s.weight[flow]
            lost = s.bottleneck[flow] == link and (not full or level < highest * (1.0 - SLACK))
            if lost or level > lowest * (1.0 + SLACK):
                _include(s, flow)
            entry = s.after[entry]


def _share_again(s: State, now: float, head_of_line: bool, whole: bool) -> None:
    """New rates after an event, for as few flows as it can be felt by."""
    settled = 0
    while True:
        if whole or head_of_line or 2 * s.num[REGION] > s.num[ON]:
            for flow in s.heap[: s.num[HEAP]]:
                if s.phase[flow] == ACTIVE:
                    _include(s, flow)
        for flow in s.region[settled : s.num[REGION]]:
            s.left[flow] = max(0.0, s.left[flow] - s.rate[flow] * (now - s.since[flow]))
            s.since[flow] = now
        settled = s.num[REGION]
        _solve(s, head_of_line)
        _widen(s)
        if s.num[REGION] == settled:
            break
    for flow in s.region[:settled]:
        s.inside[flow] = False
        s.key[flow] = now + s.left[flow] / s.rate[flow] if s.rate[flow] > 0.0 else np.inf
        _settle(s, s.position[flow])
    for link in s.seen[: s.num[SEEN]]:
        s.marked[link] = False
    s.num[REGION] = s.num[SEEN] = 0


def _run(
    s: State,
    change_s: Floats,
    change_link: Ints,
    change_bytes_per_s: Floats,
    until_s: float,
    head_of_line: bool,
    whole: bool,
) -> float:
    """Play every event in order of time; return the time of the last."""
    now, next_change = 0.0, 0
    for flow in range(s.num_bytes.size):
        if s.waiting[flow] == 0:
            _schedule(s, flow, 0.0)
    while s.num[HEAP] > 0 or next_change < change_s.size:
        soon = s.key[s.heap[0]] if s.num[HEAP] > 0 else np.inf
        if next_change < change_s.size:
            soon = min(soon, change_s[next_change])
        if soon == np.inf or soon > until_s:
            break
        now = max(now, soon)
        together = now * (1.0 + 1e-12)
        while s.num[HEAP] > 0 and s.key[s.heap[0]] <= together:
            s.num[EVENTS] += 1
            flow = s.heap[0]
            if s.phase[flow] == DELAYED and s.left[flow] > 0.0:
                _begin(s, flow, now)
            else:
                _end(s, flow, now)
        while next_change < change_s.size and change_s[next_change] <= together:
            s.num[EVENTS] += 1
            link = change_link[next_change]
            s.capacity[link] = change_bytes_per_s[next_change]
            entry = s.head[link]
            while entry >= 0:
                _include(s, s.owner[entry])
                entry = s.after[entry]
            next_change += 1
        _share_again(s, now, head_of_line, whole)
    return now


first = Kernel(_first, compile_s=1.0)
settle = Kernel(_settle, compile_s=1.0, uses=(first,))
schedule = Kernel(_schedule, compile_s=1.0, uses=(settle,))
include = Kernel(_include, compile_s=1.0)
mark = Kernel(_mark, compile_s=1.0)
begin = Kernel(_begin, compile_s=1.0, uses=(settle, include))
end = Kernel(_end, compile_s=1.0, uses=(settle, mark, schedule))
hold_back = Kernel(_hold_back, compile_s=1.0)
solve = Kernel(_solve, compile_s=1.0, uses=(mark, hold_back, fill))
widen = Kernel(_widen, compile_s=1.0, uses=(include,))
share_again = Kernel(_share_again, compile_s=1.0, uses=(include, settle, solve, widen))
run = Kernel(_run, compile_s=20.0, uses=(schedule, begin, end, include, share_again))
