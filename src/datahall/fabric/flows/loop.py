"""The compiled loop of the flow simulation: arrivals, completions, changes of capacity, and new rates after
each.

Rates are solved again only where a change can be felt.  The flows that changed are solved against what all
others leave free; then every flow on the links they pass must still have its bottleneck: a full link on which
nobody has more per weight.  Those that do not join the region, and it is solved again.  An allocation in
which every flow has its bottleneck is the max-min fair one, and there is only one (Bertsekas & Gallager, Data
Networks, 1992, §6.5.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import Kernel, inline
from datahall.events.queue import Queue, new_queue, now_s, num_pending
from datahall.events.schedule import cancel, is_pending, peek, pop, push, reschedule
from datahall.fabric.flows.rates import fill_rates, held_back
from datahall.fabric.topology.graph import Floats, Ints

START, END = 0, 1  # what an event of a flow is
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
    token: NDArray[np.int64]  # of its event in the queue
    active: Ints  # the flows that share links now, and where each stands among them
    place: Ints
    inside: NDArray[np.bool_]  # in the region that is being solved
    region: Ints
    queue: Queue
    num: NDArray[np.int64]  # active flows, flows in the region, links seen; then events, solves, flows solved


ON, REGION, SEEN, EVENTS, SOLVES, SOLVED = range(6)


@inline
def schedule(s: State, flow: int, now: float) -> None:
    """A flow that waits for no other any more starts, after its latency."""
    s.ready_s[flow] = max(s.start_s[flow], now)
    s.token[flow] = push(s.queue, s.ready_s[flow] + s.delay_s[flow], START, flow)


@inline
def include(item: int, inside: NDArray[np.bool_], members: Ints, num: NDArray[np.int64], which: int) -> None:
    """Add a flow to the region or a link to those that are looked at, once."""
    if not inside[item]:
        inside[item] = True
        members[num[which]] = item
        num[which] += 1


@inline
def begin(s: State, flow: int, now: float) -> None:
    """The first byte leaves: the flow takes part in sharing its links."""
    s.since[flow], s.place[flow] = now, s.num[ON]
    s.active[s.num[ON]] = flow
    s.num[ON] += 1
    include(flow, s.inside, s.region, s.num, REGION)
    for entry in range(s.offsets[flow], s.offsets[flow + 1]):
        link = s.links[entry]
        s.owner[entry], s.after[entry], s.ahead[entry] = flow, s.head[link], -1
        if s.head[link] >= 0:
            s.ahead[s.head[link]] = entry
        s.head[link] = entry


@inline
def leave(s: State, flow: int) -> None:
    """The last byte has arrived: the links are free for others."""
    s.num[ON] -= 1
    last = s.active[s.num[ON]]
    s.active[s.place[flow]], s.place[last] = last, s.place[flow]
    for entry in range(s.offsets[flow], s.offsets[flow + 1]):
        link = s.links[entry]
        s.carried[link] += s.num_bytes[flow] * (s.share[entry] if s.share.size else 1.0)
        if s.ahead[entry] >= 0:
            s.after[s.ahead[entry]] = s.after[entry]
        else:
            s.head[link] = s.after[entry]
        if s.after[entry] >= 0:
            s.ahead[s.after[entry]] = s.ahead[entry]
        include(link, s.marked, s.seen, s.num, SEEN)


@inline
def end(s: State, flow: int, now: float) -> None:
    """A flow is over, and those who waited for it may start."""
    s.end_s[flow], s.left[flow], s.rate[flow] = now, 0.0, 0.0
    for place in range(s.next_offsets[flow], s.next_offsets[flow + 1]):
        follower = s.next_flow[place]
        s.waiting[follower] -= 1
        if s.waiting[follower] == 0:
            schedule(s, follower, now)


@inline
def solve(s: State, head_of_line: bool) -> None:
    """Rates of the region from what the flows outside it leave free."""
    region = s.region[: s.num[REGION]]
    for flow in region:
        for entry in range(s.offsets[flow], s.offsets[flow + 1]):
            include(s.links[entry], s.marked, s.seen, s.num, SEEN)
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
        fill_rates(region, s.links, s.offsets, s.share, s.free, s.weight, s.cap, s.slot, s.rate, s.bottleneck)
        if head_of_line:
            held = held_back(
                region, s.links, s.offsets, s.capacity.size, s.weight, s.cap, s.rate, s.bottleneck
            )
            fill_rates(
                region, s.links, s.offsets, s.share, s.free, s.weight, held, s.slot, s.rate, s.bottleneck
            )


@inline
def widen(s: State) -> None:
    """Widen the region by flows that lost their bottleneck, or have more than one that they hold back."""
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
                include(flow, s.inside, s.region, s.num, REGION)
            entry = s.after[entry]


@inline
def share_again(s: State, now: float, head_of_line: bool, whole: bool) -> None:
    """New rates after an event, for as few flows as it can be felt by."""
    settled = 0
    while True:
        if whole or head_of_line or 2 * s.num[REGION] > s.num[ON]:
            for flow in s.active[: s.num[ON]]:
                include(flow, s.inside, s.region, s.num, REGION)
        for flow in s.region[settled : s.num[REGION]]:
            s.left[flow] = max(0.0, s.left[flow] - s.rate[flow] * (now - s.since[flow]))
            s.since[flow] = now
        settled = s.num[REGION]
        solve(s, head_of_line)
        widen(s)
        if s.num[REGION] == settled:
            break
    for flow in s.region[:settled]:
        s.inside[flow] = False
        if s.rate[flow] <= 0.0:
            cancel(s.queue, s.token[flow])
        elif is_pending(s.queue, s.token[flow]):
            reschedule(s.queue, s.token[flow], now + s.left[flow] / s.rate[flow])
        else:
            s.token[flow] = push(s.queue, now + s.left[flow] / s.rate[flow], END, flow)
    for link in s.seen[: s.num[SEEN]]:
        s.marked[link] = False
    s.num[REGION] = s.num[SEEN] = 0


def _run(
    s: State,
    change_s: Floats,
    change_link: Ints,
    change_bytes_per_s: Floats,
    until_s: float,
    grain: float,
    head_of_line: bool,
    whole: bool,
) -> float:
    """Play every event in order of time; return the time of the last.

    Events that follow the end of a flow within `grain` of the time it took are taken with it, before rates are
    shared again.  Each still has its own time; only the others learn of it so much later.
    """
    now, next_change = 0.0, 0
    for flow in range(s.num_bytes.size):
        if s.waiting[flow] == 0:
            schedule(s, flow, 0.0)
    while num_pending(s.queue) > 0 or next_change < change_s.size:
        soon = peek(s.queue).time_s if num_pending(s.queue) > 0 else np.inf
        if next_change < change_s.size:
            soon = min(soon, change_s[next_change])
        if soon > until_s:
            break
        now = max(now, soon)
        together = now * (1.0 + 1e-12)
        if grain > 0.0 and num_pending(s.queue) > 0:
            event = peek(s.queue)
            if event.kind == END:
                together += grain * max(0.0, event.time_s - s.ready_s[event.a] - s.delay_s[event.a])
        while num_pending(s.queue) > 0 and peek(s.queue).time_s <= together:
            event = pop(s.queue)
            s.num[EVENTS] += 1
            if event.kind == START and s.num_bytes[event.a] > 0.0:
                begin(s, event.a, event.time_s)
            else:
                if event.kind == END:
                    leave(s, event.a)
                end(s, event.a, event.time_s)
        now = max(now, now_s(s.queue))
        while next_change < change_s.size and change_s[next_change] <= together:
            s.num[EVENTS] += 1
            link = change_link[next_change]
            s.capacity[link] = change_bytes_per_s[next_change]
            entry = s.head[link]
            while entry >= 0:
                include(s.owner[entry], s.inside, s.region, s.num, REGION)
                entry = s.after[entry]
            next_change += 1
        share_again(s, now, head_of_line, whole)
    for flow in s.active[: s.num[ON]]:  # cut off by until_s, or stuck behind a link that carries nothing
        if until_s < np.inf:
            s.left[flow] = max(0.0, s.left[flow] - s.rate[flow] * (until_s - s.since[flow]))
        for entry in range(s.offsets[flow], s.offsets[flow + 1]):
            part = s.share[entry] if s.share.size else 1.0
            s.carried[s.links[entry]] += (s.num_bytes[flow] - s.left[flow]) * part
    return now


run = Kernel(_run, compile_s=20.0)
make_queue = Kernel(new_queue, compile_s=2.0)
