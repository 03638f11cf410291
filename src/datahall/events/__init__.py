"""Time: the queue of pending events with its clock, named random streams, and the trace of what happened.

Everything is plain functions over arrays that run interpreted, or compiled into any simulator's kernel; the
same seed gives the same trace, to the bit, on any machine.
"""

from __future__ import annotations

from datahall.events.draws import exponential, integer_below, lognormal, normal
from datahall.events.errors import EmptyQueueError, EventPriorityError, EventTimeError, FullQueueError
from datahall.events.perfetto import perfetto
from datahall.events.queue import NO_EVENT, Queue, clear, new_queue, now_s, num_pending, reserve
from datahall.events.schedule import Event, cancel, is_pending, peek, pop, push, reschedule
from datahall.events.streams import Dice, new_dice, stream, uniform
from datahall.events.trace import Trace, digest, new_trace, num_dropped, record, rows

__all__ = [
    "NO_EVENT",
    "Dice",
    "EmptyQueueError",
    "Event",
    "EventPriorityError",
    "EventTimeError",
    "FullQueueError",
    "Queue",
    "Trace",
    "cancel",
    "clear",
    "digest",
    "exponential",
    "integer_below",
    "is_pending",
    "lognormal",
    "new_dice",
    "new_queue",
    "new_trace",
    "normal",
    "now_s",
    "num_dropped",
    "num_pending",
    "peek",
    "perfetto",
    "pop",
    "push",
    "record",
    "reschedule",
    "reserve",
    "rows",
    "stream",
    "uniform",
]
