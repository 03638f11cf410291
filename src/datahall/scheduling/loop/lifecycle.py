"""A job waits, starts, and stops: because it is done, or for a reason that makes it begin again."""

from __future__ import annotations

import math

import numpy as np

from datahall.compiled import inline
from datahall.events.trace import record
from datahall.events.unchecked_queue import push_event, remove_event
from datahall.scheduling.loop.placement import slowed, tier_crossed
from datahall.scheduling.loop.state import (
    BY_PRIORITY,
    BY_USAGE,
    CUT_OFF,
    DONE,
    END,
    FAILED,
    FINISHED,
    GIVEN_UP,
    MIGRATED,
    MOST_RESTARTS,
    RUNNING,
    WAITING,
    State,
    change_free,
    share_of,
)

LN2 = 0.6931471805599453


@inline
def comes_before(s: State, job: int, other: int) -> bool:
    """Whether one stands before another in the queue: by the policy, then by when they were submitted."""
    order, one, two = s.policy[0]["order"], s.jobs[job], s.jobs[other]
    if order == BY_PRIORITY and one["priority"] != two["priority"]:
        return bool(one["priority"] > two["priority"])
    if order == BY_USAGE:
        mine, theirs = s.usage[one["user"]], s.usage[two["user"]]
        if mine != theirs:
            return bool(mine < theirs)
    return job < other


@inline
def enqueue(s: State, job: int, now: float) -> None:
    """A job waits, at its place."""
    counts, one = s.counts[0], s.jobs[job]
    one["status"], one["queued_s"], one["planned_s"] = WAITING, now, np.inf
    place = counts["waiting"]
    counts["waiting"] = place + 1
    while place > 0 and comes_before(s, job, s.waiting[place - 1]):
        s.waiting[place] = s.waiting[place - 1]
        place -= 1
    s.waiting[place] = job
    counts["tested"] = min(counts["tested"], place)
    s.by_chips[one["chips"]] += 1
    counts["smallest"] = min(counts["smallest"], one["chips"])


@inline
def start(s: State, job: int, now: float) -> None:
    """A job begins on the nodes that were chosen for it; who takes it from the queue is the caller's affair."""
    counts, one = s.counts[0], s.jobs[job]
    for index in range(one["nodes"]):
        change_free(s, s.places[one["first"] + index], -share_of(s, job, index))
    one["stretch_ratio"] = slowed(s, job, tier_crossed(s, job))
    one["status"], one["start_s"] = RUNNING, now
    one["overhead_s"] = counts["again_s"] if one["restarts"] > 0 else 0.0
    if one["first_s"] < 0.0:
        one["first_s"] = now
    one["due_s"] = now + one["overhead_s"] + one["limit_s"] * one["stretch_ratio"]
    end_s = now + one["overhead_s"] + one["left_s"] * one["stretch_ratio"]
    one["token"] = push_event(s.queue, end_s, END, job, 0, 0.0)
    s.held[one["user"]] += one["chips"]
    place = counts["running"]
    counts["running"] = place + 1
    while place > 0 and s.jobs[s.running[place - 1]]["due_s"] > one["due_s"]:
        s.running[place] = s.running[place - 1]
        place -= 1
    s.running[place] = job
    s.by_chips[one["chips"]] -= 1
    while counts["smallest"] < s.by_chips.size - 1 and s.by_chips[counts["smallest"]] == 0:
        counts["smallest"] += 1


@inline
def kept_work(s: State, job: int, cause: int, done_s: float) -> float:
    """What is not lost of the work of an attempt: all of a service's, and of training what the last checkpoint has."""
    one = s.jobs[job]
    if cause == FINISHED:
        return float(one["left_s"])
    if cause == MIGRATED or one["serving"]:
        return min(done_s, float(one["left_s"]))
    if one["checkpoint_s"] == np.inf:
        return 0.0
    saved_s = np.floor(done_s / one["checkpoint_s"] + 1e-9) * one["checkpoint_s"]
    return float(min(saved_s, one["left_s"]))


@inline
def stop(s: State, job: int, now: float, cause: int) -> None:
    """An attempt ends: its chips are free, its time is accounted for, and it is over or has the rest before it."""
    counts, one = s.counts[0], s.jobs[job]
    over = cause in (FINISHED, CUT_OFF)
    wall_s = now - one["start_s"]
    again_s = min(wall_s, one["overhead_s"])
    done_s = float(one["left_s"]) if over else (wall_s - again_s) / one["stretch_ratio"]
    kept_s = kept_work(s, job, cause, done_s)
    counts["useful_s"] += one["chips"] * kept_s
    counts["restart_s"] += one["chips"] * again_s
    counts["placement_s"] += one["chips"] * done_s * (one["stretch_ratio"] - 1.0)
    if cause == FAILED:
        counts["failed_s"] += one["chips"] * (done_s - kept_s)
    elif cause == CUT_OFF:
        counts["cut_off_s"] += one["chips"] * (done_s - kept_s)
    else:
        counts["preempted_s"] += one["chips"] * (done_s - kept_s)
    one["left_s"] -= kept_s
    one["limit_s"] = max(one["limit_s"] - kept_s, one["left_s"])
    s.held[one["user"]] -= one["chips"]
    log_attempt(s, job, now, cause)
    for index in range(one["nodes"]):
        change_free(s, s.places[one["first"] + index], share_of(s, job, index))
    leave_running(s, job)
    counts["released"] = 1
    if over:
        one["status"], one["end_s"] = DONE, now
        return
    remove_event(s.queue, one["token"])
    one["restarts"] += 1
    if cause != MIGRATED:
        if one["restarts"] > MOST_RESTARTS:
            one["status"] = GIVEN_UP
        else:
            s.evicted[counts["evicted"]] = job
            counts["evicted"] += 1


@inline
def log_attempt(s: State, job: int, now: float, cause: int) -> None:
    """Write down that a job ran: once, and for each of its nodes while the trace has room."""
    counts, one = s.counts[0], s.jobs[job]
    row = s.log[counts["logged"]]
    counts["logged"] += 1
    row["job"], row["chips"], row["cause"], row["far"] = job, one["chips"], cause, tier_crossed(s, job)
    row["queued_s"], row["start_s"], row["end_s"] = one["queued_s"], one["start_s"], now
    row["stretch_ratio"] = one["stretch_ratio"]
    for index in range(one["nodes"]):
        node = s.places[one["first"] + index]
        chips = share_of(s, job, index)
        record(s.trace, one["start_s"], job, node, chips, float(cause), now - one["start_s"])


@inline
def leave_running(s: State, job: int) -> None:
    """Take a job out of the list of those that run."""
    counts, due_s = s.counts[0], s.jobs[job]["due_s"]
    low, high = 0, counts["running"]
    while low < high:
        middle = (low + high) // 2
        if s.jobs[s.running[middle]]["due_s"] < due_s:
            low = middle + 1
        else:
            high = middle
    while s.running[low] != job:
        low += 1
    for place in range(low, counts["running"] - 1):
        s.running[place] = s.running[place + 1]
    counts["running"] -= 1


@inline
def back_to_queue(s: State, now: float) -> None:
    """Those that were stopped wait again, at the places that they had."""
    counts = s.counts[0]
    while counts["evicted"] > 0:
        counts["evicted"] -= 1
        enqueue(s, s.evicted[counts["evicted"]], now)


@inline
def account(s: State, now: float) -> None:
    """Add up what passed since the last event: idle chips, and those for which somebody waits who would fit."""
    counts = s.counts[0]
    passed_s = now - counts["now_s"]
    counts["idle_s"] += counts["free"] * passed_s
    if counts["waiting"] > 0 and counts["smallest"] <= counts["free"]:
        counts["blocked_s"] += counts["free"] * passed_s
    counts["down_s"] += (s.by_chips.size - 2 - counts["up"]) * passed_s
    if s.policy[0]["order"] == BY_USAGE:
        use(s, now - counts["now_s"])
    counts["now_s"] = now


@inline
def use(s: State, passed_s: float) -> None:
    """Bring the decayed use of every user up to date: u ← u 2^(−t/h) + chips (h / ln 2) (1 − 2^(−t/h))."""
    half_life_s = s.counts[0]["half_life_s"]
    left = math.exp(-LN2 * passed_s / half_life_s)
    for user in range(s.usage.size):
        s.usage[user] = s.usage[user] * left + s.held[user] * (half_life_s / LN2) * (1.0 - left)
