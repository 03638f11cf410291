"""Everything the loop of the scheduler reads and writes: jobs, nodes, the waiting, the running, and sums.

A job takes `base` chips on each of its nodes, and one more on the first `extra` of them.  Its nodes stand in `places`
from `first` on, as those it runs on or those that are kept for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import inline
from datahall.events.queue import Queue
from datahall.events.trace import Trace

Records = NDArray[np.void]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NONE = -1
TO_COME, WAITING, RUNNING, DONE, GIVEN_UP = range(5)  # what a job does
FINISHED, FAILED, PREEMPTED, MIGRATED, CUT_OFF = range(5)  # why an attempt ended
END, REPAIR = 0, 1  # events of the queue
BY_SUBMIT, BY_USAGE, BY_PRIORITY = range(3)  # who is first
NOBODY, WHO_FITS, EASY, CONSERVATIVE = range(4)  # who may pass the first
FIRST_FIT, NEAREST = range(2)  # which nodes
ALL_DONE, NEED_LOG, NEED_LUCK = range(3)  # why the loop came back
MOST_RESTARTS = 1000  # of one job; then it is given up


def _record(ints: str, floats: str) -> np.dtype[np.void]:
    fields = [(name, "<i8") for name in ints.split()] + [(name, "<f8") for name in floats.split()]
    return np.dtype(fields, align=True)


# needed: the tier that its nodes cross wherever they are; due_s: when it ends at the latest, by its limit; planned_s:
# when it will start at the latest (conservative); promised_s: the earliest that it was ever told.
JOB = _record(
    "nodes base extra chips first user serving preemptible cut_off status token restarts needed",
    "submit_s left_s limit_s checkpoint_s network_fraction worst_ratio priority queued_s start_s first_s end_s due_s"
    " overhead_s stretch_ratio planned_s promised_s",
)
POLICY = _record("order passing placement preempts defragments depth", "")
COUNTS = _record(
    "waiting running free up arrived evicted logged events released reserved tested smallest outage luck rows"
    " failures",
    "now_s shadow_s idle_s blocked_s down_s useful_s failed_s preempted_s cut_off_s placement_s restart_s half_life_s"
    " again_s mttf_s repair_s failure_s",
)
# one time that a job ran: since when it had waited, from when to when, and why it ended
ATTEMPT = _record("job chips cause far", "queued_s start_s end_s stretch_ratio")
OUTAGE = _record("node change", "time_s")  # one more reason to be down, or one less


class Nodes(NamedTuple):
    """Columns over nodes, and counts of them."""

    free: Ints  # chips that nobody has; none of a node that is down
    size: Ints
    down: Ints  # reasons to be down
    leaf: Ints
    pod: Ints
    after: Ints  # free once the first of the queue is to start, beside it
    stuck: Ints  # whether small jobs on it have nowhere to go, while some are moved together
    at_least: Ints  # nodes with so many free chips, or more
    later: Ints  # the same of `after`
    in_leaf: Ints  # [leaf] nodes that can be had, while one places a job
    in_pod: Ints
    marked: Ints  # [leaf] whether it was chosen
    ratios: Floats  # [tier] of the bandwidth inside a leaf to that across a leaf, a pod


class State(NamedTuple):
    """Tables, lists and scratch."""

    jobs: Records
    policy: Records  # of one
    counts: Records  # of one
    nodes: Nodes
    places: Ints
    waiting: Ints  # in order
    running: Ints  # by due_s
    evicted: Ints
    moves: Ints  # [move, 2] a job, and the node that it moves to; or jobs that are stopped
    victims: Ints  # that could be stopped, a heap
    usage: Floats  # [user] decayed chip-seconds
    held: Floats  # [user] chips
    by_usage: Ints  # users, the least use first
    ranks: Ints  # [user] how many used less, when the queue was sorted
    merged: Ints  # waiting jobs while they are sorted
    by_chips: Ints  # how many wait for so many chips
    outages: Records  # in order of time
    gaps: Floats  # times between failures, of mean 1
    picks: Ints  # which node fails
    row_s: Floats  # when a row of the table begins
    row_free: Ints  # chips of all nodes in a row
    table: Ints  # [row, node] chips that are neither taken nor promised
    log: Records
    trace: Trace
    queue: Queue


@inline
def share_of(s: State, job: int, index: int) -> int:
    """Chips that a job has on one of its nodes."""
    one = s.jobs[job]
    return int(one["base"] + 1 if index < one["extra"] else one["base"])


@inline
def fits(at_least: Ints, one: Records) -> bool:
    """Whether enough nodes have enough free chips; `at_least` counts them."""
    enough = at_least[one["base"]] >= one["nodes"]
    return bool(enough and (one["extra"] == 0 or at_least[one["base"] + 1] >= one["extra"]))


@inline
def count_change(at_least: Ints, before: int, now: int) -> None:
    """A node has other free chips than before."""
    for level in range(before + 1, now + 1):
        at_least[level] += 1
    for level in range(now + 1, before + 1):
        at_least[level] -= 1


@inline
def change_free(s: State, node: int, change: int) -> None:
    """A node has more free chips, or fewer."""
    before = s.nodes.free[node]
    s.nodes.free[node] = before + change
    count_change(s.nodes.at_least, before, before + change)
    s.counts[0]["free"] += change


@inline
def copy(into: Ints, values: Ints) -> None:
    """Write one column over another; a slice would count references."""
    for index in range(values.size):
        into[index] = values[index]


@inline
def clear(values: Ints) -> None:
    """Write zeros."""
    for index in range(values.size):
        values[index] = 0
