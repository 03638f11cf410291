"""The event queue as compiled loops use it: the same heap, without checks that raise.

Errors that carry numbers make compiled code count references to every array it touches, which took three fifths of the
time of a run.  A loop itself sees to it that there is room and that no time is past.
"""

from __future__ import annotations

from datahall.compiled import inline
from datahall.events.heap import ROOT, SEQUENCE_BITS, SEQUENCE_MASK, put, rise, sink
from datahall.events.queue import NO_EVENT, Queue


@inline
def push_event(queue: Queue, time_s: float, kind: int, a: int, b: int, x: float) -> int:
    """Queue an event; of those of one instant the lower kind comes first.  Returns its token."""
    heap, position, slots, clock = queue
    pending, token = int(clock[0]["num_pending"]), int(clock[0]["sequence"])
    while slots[token & (slots.size - 1)]["token"] != NO_EVENT:
        token += 1
    slot = slots[token & (slots.size - 1)]
    slot["token"], slot["kind"], slot["a"], slot["b"], slot["x"] = token, kind, a, b, x
    clock[0]["sequence"], clock[0]["num_pending"] = token + 1, pending + 1
    order = (kind << SEQUENCE_BITS) + token
    put(heap, position, rise(heap, position, pending + ROOT, time_s, order), time_s, order)
    return token


@inline
def pop_event(queue: Queue) -> tuple[int, int, int, float]:
    """Take the next event: kind, a, b and x."""
    heap, _, slots, clock = queue
    token = int(heap[ROOT]["order"]) & SEQUENCE_MASK
    slot = slots[token & (slots.size - 1)]
    clock[0]["now_s"] = heap[ROOT]["time_s"]
    remove_event(queue, token)
    return int(slot["kind"]), int(slot["a"]), int(slot["b"]), float(slot["x"])


@inline
def move_event(queue: Queue, token: int, time_s: float) -> None:
    """A pending event is due at another time."""
    heap, position, slots, clock = queue
    node = int(position[token & (slots.size - 1)])
    settle(queue, node, int(clock[0]["num_pending"]) + ROOT, time_s, int(heap[node]["order"]))


@inline
def remove_event(queue: Queue, token: int) -> None:
    """Drop an event that is pending."""
    heap, position, slots, clock = queue
    place = token & (slots.size - 1)
    slots[place]["token"] = NO_EVENT
    last = int(clock[0]["num_pending"]) - 1 + ROOT
    clock[0]["num_pending"] = last - ROOT
    node = int(position[place])
    if node < last:
        settle(queue, node, last, float(heap[last]["time_s"]), int(heap[last]["order"]))


@inline
def settle(queue: Queue, node: int, end: int, time_s: float, order: int) -> None:
    """Put (time_s, order) into the gap at `node`, or wherever the gap must move to."""
    heap, position, _, _ = queue
    place = rise(heap, position, node, time_s, order)
    if place == node:
        place = sink(heap, position, node, end, time_s, order)
    put(heap, position, place, time_s, order)
