"""The loop: the next arrival, end, failure or repair, and then whoever may start."""

from __future__ import annotations

import numpy as np

from datahall.compiled import Bare, inline
from datahall.events.heap import ROOT
from datahall.events.queue import num_pending
from datahall.events.unchecked_queue import pop_event, push_event
from datahall.scheduling.loop.dispatch import dispatch
from datahall.scheduling.loop.lifecycle import account, back_to_queue, enqueue, stop
from datahall.scheduling.loop.plan import drop_plan
from datahall.scheduling.loop.state import (
    ALL_DONE,
    CUT_OFF,
    END,
    FAILED,
    FINISHED,
    NEED_LOG,
    NEED_LUCK,
    NONE,
    REPAIR,
    State,
    change_free,
)


@inline
def runs_on(s: State, node: int) -> int:
    """A job that runs on a node, or none."""
    for place in range(s.counts[0]["running"]):
        job = s.running[place]
        one = s.jobs[job]
        for index in range(one["nodes"]):
            if s.places[one["first"] + index] == node:
                return int(job)
    return NONE


@inline
def change_node(s: State, node: int, change: int, now: float) -> None:
    """A node has one reason more to be down, or one less; with the first it stops what runs on it."""
    counts, nodes = s.counts[0], s.nodes
    before = nodes.down[node]
    nodes.down[node] = before + change
    if before == 0 and change > 0:
        counts["failures"] += 1
        job = runs_on(s, node)
        while job != NONE:
            stop(s, job, now, FAILED)
            job = runs_on(s, node)
        change_free(s, node, -nodes.size[node])
        counts["up"] -= nodes.size[node]
        drop_plan(s)
    elif nodes.down[node] == 0 and change < 0:
        change_free(s, node, nodes.size[node])
        counts["up"] += nodes.size[node]
        counts["released"] = 1


@inline
def next_s(s: State) -> float:
    """When something happens next; failures alone are nothing where nobody runs and nobody can."""
    counts = s.counts[0]
    soon = np.inf
    if num_pending(s.queue) > 0:
        soon = float(s.queue.heap[ROOT]["time_s"])
    if counts["arrived"] < s.jobs.size:
        soon = min(soon, s.jobs[counts["arrived"]]["submit_s"])
    if counts["outage"] < s.outages.size and (soon < np.inf or counts["waiting"] > 0):
        soon = min(soon, s.outages[counts["outage"]]["time_s"])
    if soon < np.inf:
        soon = min(soon, counts["failure_s"])
    return float(soon)


def _advance(s: State) -> int:
    """Play all that happens; returns why it stopped."""
    counts = s.counts[0]
    while True:
        if counts["logged"] + counts["running"] + 1 > s.log.size:
            return NEED_LOG
        if counts["mttf_s"] > 0.0 and counts["luck"] == s.gaps.size:
            return NEED_LUCK
        now = next_s(s)
        over = counts["arrived"] == s.jobs.size and counts["waiting"] + counts["running"] == 0
        if now == np.inf or over:
            return ALL_DONE
        account(s, now)
        counts["events"] += 1
        while num_pending(s.queue) > 0 and s.queue.heap[ROOT]["time_s"] <= now:
            kind, a, _, _ = pop_event(s.queue)
            if kind == END:
                stop(s, a, now, CUT_OFF if s.jobs[a]["cut_off"] else FINISHED)
            else:
                change_node(s, a, -1, now)
        while counts["outage"] < s.outages.size and s.outages[counts["outage"]]["time_s"] <= now:
            outage = s.outages[counts["outage"]]
            counts["outage"] += 1
            change_node(s, outage["node"], outage["change"], now)
        if counts["failure_s"] <= now:
            node = s.picks[counts["luck"]]
            counts["failure_s"] = now + s.gaps[counts["luck"]] * counts["mttf_s"] / s.nodes.free.size
            counts["luck"] += 1
            if s.nodes.down[node] == 0:  # one that is down does not fail
                change_node(s, node, 1, now)
                push_event(s.queue, now + counts["repair_s"], REPAIR, node, 0, 0.0)
        while counts["arrived"] < s.jobs.size and s.jobs[counts["arrived"]]["submit_s"] <= now:
            counts["arrived"] += 1
            enqueue(s, counts["arrived"] - 1, now)
        back_to_queue(s, now)
        dispatch(s, now)


advance = Bare(_advance, compile_s=30.0)
