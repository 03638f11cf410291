"""What a simulator does with its queue: push, pop, peek, reschedule, cancel.

Events come in order of (time, priority, sequence): of two at one time the lower priority number goes first,
and of two equals the one that was pushed first.

>>> from datahall.events.queue import new_queue, now_s
>>> queue = new_queue()
>>> token = push(queue, 2.0, kind=1, a=7)
>>> _ = push(queue, 1.0, kind=2)
>>> pop(queue).kind, now_s(queue), reschedule(queue, token, 5.0)
(2, 1.0, True)
>>> pop(queue)
Event(time_s=5.0, kind=1, a=7, b=0, x=0.0, y=0.0, token=0)
"""

from __future__ import annotations

import math
from typing import NamedTuple

from datahall.compiled import inline
from datahall.events.errors import (
    MAX_PRIORITY,
    EmptyQueueError,
    EventPriorityError,
    EventTimeError,
    FullQueueError,
)
from datahall.events.heap import ROOT, SEQUENCE_BITS, SEQUENCE_MASK, put, rise, sink
from datahall.events.queue import NO_EVENT, Queue


class Event(NamedTuple):
    """What happens: `kind` says what, `a` and `b` to whom, `x` and `y` how much."""

    time_s: float
    kind: int
    a: int
    b: int
    x: float
    y: float
    token: int


@inline
def push(
    queue: Queue,
    time_s: float,
    kind: int = 0,
    a: int = 0,
    b: int = 0,
    x: float = 0.0,
    y: float = 0.0,
    priority: int = 0,
) -> int:
    """Schedule an event and return its token; a time that is past, infinite or NaN is refused."""
    heap, position, slots, clock = queue
    pending, token = int(clock[0]["num_pending"]), int(clock[0]["sequence"])
    if not 0 <= pending < heap.size - ROOT:
        raise FullQueueError(pending, heap.size - ROOT)
    if not clock[0]["now_s"] <= time_s < math.inf:
        raise EventTimeError(time_s, clock[0]["now_s"])
    if not -MAX_PRIORITY <= priority <= MAX_PRIORITY:
        raise EventPriorityError(priority)
    while slots[token & (slots.size - 1)]["token"] != NO_EVENT:
        token += 1
    slot = slots[token & (slots.size - 1)]
    slot["token"] = token
    slot["kind"] = kind
    slot["a"] = a
    slot["b"] = b
    slot["x"] = x
    slot["y"] = y
    clock[0]["sequence"] = token + 1
    clock[0]["num_pending"] = pending + 1
    order = (priority << SEQUENCE_BITS) + token
    put(heap, position, rise(heap, position, pending + ROOT, time_s, order), time_s, order)
    return token


@inline
def peek(queue: Queue) -> Event:
    """The next event, left where it is."""
    heap, _, slots, clock = queue
    if clock[0]["num_pending"] <= 0:
        raise EmptyQueueError(clock[0]["num_pending"])
    token = int(heap[ROOT]["order"]) & SEQUENCE_MASK
    slot = slots[token & (slots.size - 1)]
    return Event(
        float(heap[ROOT]["time_s"]),
        int(slot["kind"]),
        int(slot["a"]),
        int(slot["b"]),
        float(slot["x"]),
        float(slot["y"]),
        token,
    )


@inline
def pop(queue: Queue) -> Event:
    """Take the next event and set the clock to its time."""
    heap, position, slots, clock = queue
    event = peek(queue)
    clock[0]["now_s"] = event.time_s
    slots[event.token & (slots.size - 1)]["token"] = NO_EVENT
    last = int(clock[0]["num_pending"]) - 1 + ROOT
    clock[0]["num_pending"] = last - ROOT
    time_s, order = heap[last]["time_s"], heap[last]["order"]
    put(heap, position, sink(heap, position, ROOT, last, time_s, order), time_s, order)
    return event


@inline
def is_pending(queue: Queue, token: int) -> bool:
    """Whether the event of this token is still to come."""
    _, _, slots, clock = queue
    if clock[0]["num_pending"] < 0:
        raise EmptyQueueError(clock[0]["num_pending"])
    return token >= 0 and bool(slots[token & (slots.size - 1)]["token"] == token)


@inline
def reschedule(queue: Queue, token: int, time_s: float) -> bool:
    """Move a pending event to another time; False where it has happened or was cancelled.

    It keeps its token and priority, and with them its rank among events of the new time.
    """
    heap, position, slots, clock = queue
    if not is_pending(queue, token):
        return False
    if not clock[0]["now_s"] <= time_s < math.inf:
        raise EventTimeError(time_s, clock[0]["now_s"])
    node = int(position[token & (slots.size - 1)])
    _settle(queue, node, time_s, heap[node]["order"])
    return True


@inline
def cancel(queue: Queue, token: int) -> bool:
    """Drop a pending event; False where it has happened or was cancelled already."""
    heap, position, slots, clock = queue
    if not is_pending(queue, token):
        return False
    slot = token & (slots.size - 1)
    slots[slot]["token"] = NO_EVENT
    last = int(clock[0]["num_pending"]) - 1 + ROOT
    clock[0]["num_pending"] = last - ROOT
    node = int(position[slot])
    if node < last:
        _settle(queue, node, heap[last]["time_s"], heap[last]["order"])
    return True


@inline
def _settle(queue: Queue, node: int, time_s: float, order: int) -> None:
    """Put (time_s, order) into the gap at `node`, or wherever the gap must move to."""
    heap, position, _, clock = queue
    place = rise(heap, position, node, time_s, order)
    if place == node:
        place = sink(heap, position, node, int(clock[0]["num_pending"]) + ROOT, time_s, order)
    put(heap, position, place, time_s, order)
