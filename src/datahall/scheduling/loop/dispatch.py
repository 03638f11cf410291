"""After every event: who of the waiting starts, by the policy."""

from __future__ import annotations

from datahall.compiled import inline
from datahall.scheduling.loop.eviction import make_room
from datahall.scheduling.loop.fair_share import sort_queue
from datahall.scheduling.loop.lifecycle import back_to_queue, start
from datahall.scheduling.loop.placement import place
from datahall.scheduling.loop.plan import make_plan
from datahall.scheduling.loop.reservation import count_beyond, outlasts, reserve
from datahall.scheduling.loop.state import (
    BY_SUBMIT,
    BY_USAGE,
    CONSERVATIVE,
    EASY,
    NOBODY,
    State,
    fits,
)


@inline
def dispatch(s: State, now: float) -> None:
    """Start what may start; those that were stopped for it wait again, and may start elsewhere."""
    counts, policy = s.counts[0], s.policy[0]
    if policy["order"] == BY_USAGE and counts["waiting"] > 0:
        sort_queue(s)
    if policy["passing"] == CONSERVATIVE:
        if counts["waiting"] > 0:
            make_plan(s, now)
        counts["released"] = 0
        return
    while counts["waiting"] > 0:
        look_through(s, now)
        counts["released"] = 0
        if counts["evicted"] == 0:
            break
        back_to_queue(s, now)
        counts["released"] = 1


@inline
def first_to_look_at(s: State) -> int:
    """Who is in front of the first that may have a chance: nothing became free for those that were refused before."""
    counts, policy = s.counts[0], s.policy[0]
    fresh = counts["released"] == 0 and policy["order"] == BY_SUBMIT and not policy["preempts"]
    if not fresh or counts["tested"] == 0:
        return 0
    if policy["passing"] == NOBODY:
        return int(counts["waiting"])
    if policy["passing"] == EASY and counts["reserved"] == 0:
        return 0  # nobody was promised anything, for nobody could have started
    return int(counts["tested"])


@inline
def look_through(s: State, now: float) -> None:
    """Go through the queue in order; those that start leave it."""
    counts, policy = s.counts[0], s.policy[0]
    at = first_to_look_at(s)
    left = at
    if at == 0:
        counts["reserved"] = 0
    num = counts["waiting"]
    while at < num and left < policy["depth"]:
        if counts["free"] < counts["smallest"] and (counts["reserved"] or not policy["preempts"]):
            break
        job = s.waiting[at]
        at += 1
        room, beyond = fits(s.nodes.at_least, s.jobs[job]), False
        if counts["reserved"]:
            beyond = outlasts(s, job, now)
        elif not room and (policy["preempts"] or policy["defragments"]):
            room = make_room(s, job, now)
        if room and place(s, job, beyond):
            start(s, job, now)
            if beyond:
                count_beyond(s, job)
            continue
        if policy["passing"] == EASY and not counts["reserved"]:
            reserve(s, job)
        s.waiting[left] = job
        left += 1
        if policy["passing"] == NOBODY:
            break
    if left < at:
        while at < num:
            s.waiting[left] = s.waiting[at]
            left += 1
            at += 1
        counts["waiting"] = left
    counts["tested"] = counts["waiting"]
