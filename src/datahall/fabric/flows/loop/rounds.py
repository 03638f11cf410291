"""Rounds that follow one another: a flow is sent again when its sender has all of the round before."""

from __future__ import annotations

from datahall.compiled import inline
from datahall.events.schedule import push
from datahall.fabric.flows.loop.state import IDLE, START, WAITS, State, delay_of


@inline
def schedule(s: State, flow: int, now: float) -> None:
    """A flow that waits for no other any more starts, after its latency."""
    f = s.flows[flow]
    f["does"], f["ready_s"] = WAITS, max(f["start_s"] - s.counts[0]["skipped_s"], now)
    if f["num_rounds"] == 1:
        s.counts[0]["single"] += 1
    f["token"] = push(s.queue, f["ready_s"] + delay_of(s, flow), START, flow)


@inline
def end(s: State, flow: int, now: float) -> None:
    """A message is over: the next round may begin, or after the last those who waited for the flow."""
    f = s.flows[flow]
    if s.log.size:
        write(s, flow, now)
    f["does"], f["end_s"], f["left"], f["rate"] = IDLE, now, 0.0, 0.0
    f["ended"] += 1
    if f["num_rounds"] == 1:
        s.counts[0]["single"] -= 1
    if f["sender"] >= 0:
        turn(s, f["sender"], flow, now)
    if f["receiver"] >= 0:
        turn(s, f["receiver"], flow, now)
    if f["ended"] < f["num_rounds"]:
        return
    for place in range(f["next_first"], f["next_last"]):
        follower = s.next_flow[place]
        s.flows[follower]["waiting"] -= 1
        if s.flows[follower]["waiting"] == 0:
            schedule(s, follower, now)


@inline
def write(s: State, flow: int, now: float) -> None:
    """Write a message down; the first flow of several rounds that ends one gives the pace."""
    f, c = s.flows[flow], s.counts[0]
    message = s.log[c["messages"]]
    message["flow"], message["delay_s"], message["times"], message["every_s"] = (
        flow,
        delay_of(s, flow),
        1,
        0.0,
    )
    message["ready_s"], message["end_s"] = f["ready_s"] + c["skipped_s"], now + c["skipped_s"]
    c["messages"] += 1
    if c["pacer"] < 0 and f["num_rounds"] > 1:
        c["pacer"] = flow
    if c["pacer"] == flow:
        c["due"] = True
        if f["ended"] + 1 == f["num_rounds"]:
            c["pacer"] = -1


@inline
def turn(s: State, rank: int, flow: int, now: float) -> None:
    """A rank that has everything of a round begins the next."""
    r = s.ranks[rank]
    if s.flows[flow]["ended"] != r["turn"] + 1:
        return
    r["missing"] -= 1
    if r["missing"] > 0:
        return
    r["turn"] += 1
    for place in range(r["first"], r["last"]):
        other = s.touching[place]
        if s.flows[other]["ended"] == r["turn"]:
            r["missing"] += 1
        if place < r["sends"] and s.flows[other]["ended"] < s.flows[other]["num_rounds"]:
            schedule(s, other, now)
