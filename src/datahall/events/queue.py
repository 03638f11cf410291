"""Pending events and the clock: pop the next one, push what follows from it, move or cancel what is pending.

Events come in order of (time, priority, sequence): of two at one time the lower priority number goes first, of two
equals the one that was pushed first.  The token that `push` returns is the sequence number; the event's payload
stands in slot `token mod slots`, and a token whose slot is taken by an older event is skipped, so tokens are never
reused and a growing table moves nothing onto anything.

Every function here is plain Python over arrays, and is compiled into any `Kernel` that calls it.

>>> queue = new_queue()
>>> token = push(queue, 2.0, kind=1, a=7)
>>> _ = push(queue, 1.0, kind=2)
>>> pop(queue).kind, now_s(queue), reschedule(queue, token, 5.0), pop(queue)
(2, 1.0, True, Event(time_s=5.0, kind=1, a=7, b=0, x=0.0, y=0.0, token=0))
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import inline
from datahall.events.heap import NODE, ROOT, SEQUENCE_BITS, SEQUENCE_MASK, Nodes, Positions, put, rise, sink

SLOT = np.dtype(
    [("token", "<i8"), ("a", "<i8"), ("b", "<i8"), ("x", "<f8"), ("y", "<f8"), ("kind", "<i8")], align=True
)
CLOCK = np.dtype([("now_s", "<f8"), ("num_pending", "<i8"), ("sequence", "<i8")], align=True)
NO_EVENT = -1  # a token that never was
MOVED = -1  # num_pending of a queue that `reserve` has replaced
MAX_PRIORITY = 1 << 14


class Queue(NamedTuple):
    """The arrays of one queue; pass it around whole and read it through the functions below."""

    heap: Nodes
    position: Positions  # of each slot's event in the heap
    slots: NDArray[np.void]
    clock: NDArray[np.void]


class Event(NamedTuple):
    """What happens: `kind` says what, `a` and `b` to whom, `x` and `y` how much."""

    time_s: float
    kind: int
    a: int
    b: int
    x: float
    y: float
    token: int


class EventTimeError(ValueError):
    """A time that is not a number, not finite or already past."""

    def __init__(self, time_s: float, now_s: float) -> None:
        super().__init__(f"an event at {time_s} s; the clock stands at {now_s} s: give a finite time from then on")


class EventPriorityError(ValueError):
    """A priority that does not fit beside the sequence number."""

    def __init__(self, priority: int) -> None:
        super().__init__(f"priority {priority} is outside {-MAX_PRIORITY} … {MAX_PRIORITY}; lower goes first")


class EmptyQueueError(IndexError):
    """Nothing is pending."""

    def __init__(self, num_pending: int) -> None:
        moved = "`reserve` has replaced this queue: go on with the one it returned"
        super().__init__(moved if num_pending == MOVED else "no event is pending: ask num_pending(queue) first")


class FullQueueError(OverflowError):
    """No room is left; nothing was lost."""

    def __init__(self, num_pending: int, capacity: int) -> None:
        moved = "`reserve` has replaced this queue: go on with the one it returned"
        full = f"the queue is full with {capacity} events: call `queue = reserve(queue, more)` before pushing"
        super().__init__(moved if num_pending == MOVED else full)


@inline
def new_queue(capacity: int = 1024, start_s: float = 0.0) -> Queue:
    """An empty queue with room for at least `capacity` events, its clock at start_s."""
    room = 4
    while room < capacity:
        room *= 2
    clock = np.zeros(1, CLOCK)
    clock[0]["now_s"] = start_s
    # Twice as many slots as events: a search for a free one then takes at most two steps on average.
    queue = Queue(np.zeros(room + ROOT, NODE), np.zeros(2 * room, np.int32), np.zeros(2 * room, SLOT), clock)
    clear(queue)
    return queue


@inline
def num_pending(queue: Queue) -> int:
    """How many events are still to come."""
    return int(queue.clock[0]["num_pending"])


@inline
def now_s(queue: Queue) -> float:
    """The time of the event popped last [s]."""
    return float(queue.clock[0]["now_s"])


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
    """Schedule an event and return its token; times before now_s, infinite and NaN are refused."""
    clock = queue.clock[0]
    capacity = queue.heap.size - ROOT
    if not 0 <= clock["num_pending"] < capacity:
        raise FullQueueError(clock["num_pending"], capacity)
    check_time(queue, time_s)
    if not -MAX_PRIORITY <= priority <= MAX_PRIORITY:
        raise EventPriorityError(priority)
    mask = queue.slots.size - 1
    token = int(clock["sequence"])
    while queue.slots[token & mask]["token"] != NO_EVENT:
        token += 1
    clock["sequence"] = token + 1
    slot = queue.slots[token & mask]
    slot["token"] = token
    slot["kind"] = kind
    slot["a"] = a
    slot["b"] = b
    slot["x"] = x
    slot["y"] = y
    order = (priority << SEQUENCE_BITS) + token
    leaf = int(clock["num_pending"]) + ROOT
    clock["num_pending"] += 1
    put(queue.heap, queue.position, rise(queue.heap, queue.position, leaf, time_s, order), time_s, order)
    return token


@inline
def check_time(queue: Queue, time_s: float) -> None:
    """Refuse a time that no event can have."""
    if not now_s(queue) <= time_s < math.inf:
        raise EventTimeError(time_s, now_s(queue))


@inline
def peek(queue: Queue) -> Event:
    """The next event, left where it is."""
    if queue.clock[0]["num_pending"] <= 0:
        raise EmptyQueueError(queue.clock[0]["num_pending"])
    token = int(queue.heap[ROOT]["order"]) & SEQUENCE_MASK
    slot = queue.slots[token & (queue.slots.size - 1)]
    return Event(
        float(queue.heap[ROOT]["time_s"]),
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
    event = peek(queue)
    queue.clock[0]["now_s"] = event.time_s
    _remove(queue, event.token)
    return event


@inline
def is_pending(queue: Queue, token: int) -> bool:
    """Whether the event of this token is still to come."""
    if queue.clock[0]["num_pending"] < 0:
        raise EmptyQueueError(queue.clock[0]["num_pending"])
    return token >= 0 and bool(queue.slots[token & (queue.slots.size - 1)]["token"] == token)


@inline
def cancel(queue: Queue, token: int) -> bool:
    """Drop a pending event; False where it has happened or was cancelled already."""
    if not is_pending(queue, token):
        return False
    _remove(queue, token)
    return True


@inline
def reschedule(queue: Queue, token: int, time_s: float) -> bool:
    """Move a pending event to another time; it keeps its token, and with it its rank among equals."""
    check_time(queue, time_s)
    if not is_pending(queue, token):
        return False
    node = queue.position[token & (queue.slots.size - 1)]
    _settle(queue, node, time_s, queue.heap[node]["order"])
    return True


@inline
def _remove(queue: Queue, token: int) -> None:
    slot = token & (queue.slots.size - 1)
    queue.slots[slot]["token"] = NO_EVENT
    queue.clock[0]["num_pending"] -= 1
    last = queue.clock[0]["num_pending"] + ROOT
    node = queue.position[slot]
    if node != last:
        _settle(queue, node, queue.heap[last]["time_s"], queue.heap[last]["order"])


@inline
def _settle(queue: Queue, node: int, time_s: float, order: int) -> None:
    """Put (time_s, order) into the gap at `node`, wherever that must move to."""
    end = queue.clock[0]["num_pending"] + ROOT
    place = rise(queue.heap, queue.position, node, time_s, order)
    if place == node:
        place = sink(queue.heap, queue.position, node, end, time_s, order)
    put(queue.heap, queue.position, place, time_s, order)


@inline
def clear(queue: Queue) -> None:
    """Drop every pending event; the clock and the tokens go on from where they are."""
    queue.clock[0]["num_pending"] = 0
    for slot in range(queue.slots.size):
        queue.slots[slot]["token"] = NO_EVENT


@inline
def reserve(queue: Queue, num_more: int) -> Queue:
    """The queue with room for num_more events: itself, or a larger one that takes its place.

    Write `queue = reserve(queue, n)`; the tokens stay good, and the replaced queue refuses all work.
    """
    clock = queue.clock[0]
    if clock["num_pending"] + num_more <= queue.heap.size - ROOT:
        return queue
    larger = new_queue(clock["num_pending"] + num_more, clock["now_s"])
    larger.heap[: queue.heap.size] = queue.heap
    larger.clock[0]["num_pending"] = clock["num_pending"]
    larger.clock[0]["sequence"] = clock["sequence"]
    for node in range(ROOT, ROOT + clock["num_pending"]):
        token = int(queue.heap[node]["order"]) & SEQUENCE_MASK
        new = token & (larger.slots.size - 1)
        larger.slots[new] = queue.slots[token & (queue.slots.size - 1)]
        larger.position[new] = node
    clock["num_pending"] = MOVED
    return larger
