"""Rounds that repeat themselves: where the state comes again, what follows does too, and need not be simulated again.

Everything that decides the future is noted: what each flow does and how long it still will, how far ranks are ahead
of one another, and on which links flows are.  When all of it is the same again after p rounds that took T, the next
p rounds take T as well, and so on until some flow comes to its last round.  These rounds are skipped: counted,
with their bytes and their time, and not simulated.  What is left is played to its end, event by event.
"""

from __future__ import annotations

from datahall.compiled import inline
from datahall.fabric.flows.loop.state import MOVES, SLACK, WAITS, State, delay_of

FOR_EVER = 2**62


@inline
def look_back(s: State, now: float) -> None:
    """After a round of the flow that gives the pace: skip what repeats, or note the state from time to time."""
    c = s.counts[0]
    if c["single"] > 0:  # what is sent once does not come again
        c["noted"] = -1
        return
    c["rounds"] += 1
    if c["noted"] >= 0 and is_same(s, now):
        skip(s, now)
        c["rounds"] = c["next_note"] = 0
    if c["noted"] < 0 or c["rounds"] >= c["next_note"]:
        note(s, now)
        c["next_note"] = c["rounds"] + max(1, c["rounds"] // 4)


@inline
def to_come(s: State, flow: int, now: float) -> float:
    """How long a flow still waits [s], or what it still has to move [B]."""
    f = s.flows[flow]
    if f["does"] == WAITS:
        return float(f["ready_s"] + delay_of(s, flow) - now)
    if f["does"] == MOVES:
        return float(max(0.0, f["left"] - f["rate"] * (now - f["since"])))
    return 0.0


@inline
def note(s: State, now: float) -> None:
    """Keep the state as it is now."""
    s.counts[0]["noted_s"], s.counts[0]["noted"] = now, s.counts[0]["messages"]
    for flow in s.several:
        f = s.flows[flow]
        f["noted_does"], f["noted_to_come"] = f["does"], to_come(s, flow, now)
        f["noted_ended"], f["noted_first"] = f["ended"], f["first"]
    for rank in range(s.ranks.size):
        s.ranks[rank]["noted_turn"] = s.ranks[rank]["turn"]
    for number in range(s.links.size):
        s.links[number]["noted_carried"] = s.links[number]["carried"]


@inline
def is_same(s: State, now: float) -> bool:
    """Whether the state that was noted has come again, some rounds later; a first round is unlike the others."""
    period_s = now - s.counts[0]["noted_s"]
    for flow in s.several:
        f = s.flows[flow]
        num_more = f["ended"] - f["noted_ended"]
        if f["does"] != f["noted_does"] or f["first"] != f["noted_first"] or f["noted_ended"] == 0 < num_more:
            return False
        scale = f["num_bytes"] if f["does"] == MOVES else period_s
        if abs(to_come(s, flow, now) - f["noted_to_come"]) > SLACK * scale:
            return False
        for rank in (f["sender"], f["receiver"]):
            if rank >= 0 and s.ranks[rank]["turn"] - s.ranks[rank]["noted_turn"] != num_more:
                return False
    return True


@inline
def skip(s: State, now: float) -> None:
    """Go on as often as every flow still has a round after it."""
    c, times = s.counts[0], FOR_EVER
    for flow in s.several:
        f = s.flows[flow]
        num_more = f["ended"] - f["noted_ended"]
        if num_more > 0:
            times = min(times, (f["num_rounds"] - 1 - f["ended"]) // num_more)
    if not 0 < times < FOR_EVER:
        return
    period_s = now - c["noted_s"]
    for place in range(c["noted"], c["messages"]):
        s.log[place]["times"], s.log[place]["every_s"] = times + 1, period_s
    for flow in s.several:
        f = s.flows[flow]
        f["ended"] += times * (f["ended"] - f["noted_ended"])
    for rank in range(s.ranks.size):
        s.ranks[rank]["turn"] += times * (s.ranks[rank]["turn"] - s.ranks[rank]["noted_turn"])
    for number in range(s.links.size):
        link = s.links[number]
        link["carried"] += times * (link["carried"] - link["noted_carried"])
    c["skipped_s"] += times * period_s
    c["noted"] = -1
