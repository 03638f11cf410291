"""The arrays of a queue of events and its clock: how they are made, emptied and replaced by larger ones.

The token of an event is its sequence number, and its payload stands in slot `token mod num_slots`.  A token
whose slot is still taken by an older event is skipped, so tokens are never used twice, two events never share
a slot, and they still do not when the number of slots doubles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import inline
from datahall.events.errors import MOVED
from datahall.events.heap import NODE, ROOT, SEQUENCE_MASK, Nodes, Positions

SLOT = np.dtype(
    [("token", "<i8"), ("kind", "<i8"), ("a", "<i8"), ("b", "<i8"), ("x", "<f8"), ("y", "<f8")], align=True
)
CLOCK = np.dtype([("now_s", "<f8"), ("num_pending", "<i8"), ("sequence", "<i8")], align=True)
NO_EVENT = -1  # a token that no event ever has; in a slot, that it is free


class Queue(NamedTuple):
    """Pending events and the clock; pass it around whole and use it through the functions of this room."""

    heap: Nodes
    position: Positions  # in the heap, of each slot's event
    slots: NDArray[np.void]
    clock: NDArray[np.void]


@inline
def new_queue(capacity: int = 1024, start_s: float = 0.0) -> Queue:
    """An empty queue with room for at least `capacity` events, its clock at start_s."""
    room = 4
    while room < capacity:
        room *= 2
    clock = np.zeros(1, CLOCK)
    clock[0]["now_s"] = start_s
    # Twice as many slots as events: the search for a free one then takes two steps at most on average.
    queue = Queue(np.zeros(room + ROOT, NODE), np.zeros(2 * room, np.int32), np.zeros(2 * room, SLOT), clock)
    clear(queue)
    return queue


@inline
def num_pending(queue: Queue) -> int:
    """How many events are still to come."""
    return int(queue.clock[0]["num_pending"])


@inline
def now_s(queue: Queue) -> float:
    """The time of the event that was popped last [s]."""
    return float(queue.clock[0]["now_s"])


@inline
def clear(queue: Queue) -> None:
    """Drop every pending event; the clock and the tokens go on from where they are."""
    queue.clock[0]["num_pending"] = 0
    queue.slots["token"][:] = NO_EVENT


@inline
def reserve(queue: Queue, num_more: int) -> Queue:
    """The queue with room for num_more events: itself, or one of twice the size or more that takes its place.

    Write `queue = reserve(queue, n)`.  Tokens stay good; the replaced queue refuses all further work.
    """
    heap, _, slots, clock = queue
    pending = int(clock[0]["num_pending"])
    if pending + num_more <= heap.size - ROOT:
        return queue
    larger = new_queue(pending + num_more, now_s(queue))
    larger.clock[0]["num_pending"] = pending
    larger.clock[0]["sequence"] = clock[0]["sequence"]
    for node in range(ROOT, ROOT + pending):
        token = int(heap[node]["order"]) & SEQUENCE_MASK
        slot = token & (larger.slots.size - 1)
        larger.heap[node] = heap[node]
        larger.position[slot] = node
        larger.slots[slot] = slots[token & (slots.size - 1)]
    clock[0]["num_pending"] = MOVED
    return larger
