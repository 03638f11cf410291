"""EASY backfill: the first of the queue is promised its chips, and others may start that do not touch the promise.

A. Mu'alem, D. Feitelson, "Utilization, predictability, workloads, and user runtime estimates in scheduling the IBM SP2
with backfilling", IEEE TPDS 12(6), 2001.
"""

from __future__ import annotations

import numpy as np

from datahall.compiled import inline
from datahall.scheduling.loop.state import State, copy, count_change, fits, share_of


@inline
def reserve(s: State, job: int) -> None:
    """Promise a job the earliest time at which those that run leave it enough nodes, and keep some for it then."""
    counts, nodes = s.counts[0], s.nodes
    copy(nodes.after, nodes.free)
    copy(nodes.later, nodes.at_least)
    counts["reserved"], counts["shadow_s"] = 1, np.inf
    for place in range(counts["running"]):
        other = s.running[place]
        due_s = s.jobs[other]["due_s"]
        if due_s > counts["shadow_s"]:
            break
        for index in range(s.jobs[other]["nodes"]):
            node = s.places[s.jobs[other]["first"] + index]
            chips = share_of(s, other, index)
            count_change(nodes.later, nodes.after[node], nodes.after[node] + chips)
            nodes.after[node] += chips
        if counts["shadow_s"] == np.inf and fits(nodes.later, s.jobs[job]):
            counts["shadow_s"] = due_s
    one = s.jobs[job]
    one["promised_s"] = min(one["promised_s"], counts["shadow_s"])
    if counts["shadow_s"] < np.inf:
        keep(s, job)


@inline
def keep(s: State, job: int) -> None:
    """Keep nodes for the promise: those that are not free before it first, so that others may be used till then."""
    one, nodes = s.jobs[job], s.nodes
    base, more, rest = one["base"], one["extra"], one["nodes"] - one["extra"]
    for turn in range(2):
        for node in range(nodes.free.size):
            chips = nodes.after[node]
            if (nodes.free[node] >= base) != (turn == 1) or chips < base:
                continue
            if chips > base and more > 0:
                nodes.after[node] -= base + 1
                more -= 1
            elif rest > 0:
                nodes.after[node] -= base
                rest -= 1


@inline
def outlasts(s: State, job: int, now: float) -> bool:
    """Whether a job that starts now may run into the promise, by its limit and where it may come to lie."""
    one, counts = s.jobs[job], s.counts[0]
    again_s = counts["again_s"] if one["restarts"] > 0 else 0.0
    return bool(now + again_s + one["limit_s"] * one["worst_ratio"] > counts["shadow_s"])


@inline
def count_beyond(s: State, job: int) -> None:
    """A job was started that runs into the promise: its chips are not free then."""
    one = s.jobs[job]
    for index in range(one["nodes"]):
        s.nodes.after[s.places[one["first"] + index]] -= share_of(s, job, index)
