"""What a simulator can do wrong with its queue: mistakes in our code, so not in the tree that users meet."""

from __future__ import annotations

MOVED = -1  # num_pending of a queue that `reserve` has replaced
MAX_PRIORITY = 1 << 14
GO_ON = "`reserve` has replaced this queue: go on with the one it returned"


class EventTimeError(ValueError):
    """A time that is not a number, not finite or already past."""

    def __init__(self, time_s: float, now_s: float) -> None:
        super().__init__(
            f"an event at {time_s} s; the clock stands at {now_s} s: give a finite time from then on"
        )


class EventPriorityError(ValueError):
    """A priority that does not fit beside the sequence number."""

    def __init__(self, priority: int) -> None:
        super().__init__(f"priority {priority} is outside {-MAX_PRIORITY} … {MAX_PRIORITY}; lower goes first")


class EmptyQueueError(IndexError):
    """Nothing is pending."""

    def __init__(self, num_pending: int) -> None:
        empty = "no event is pending: ask num_pending(queue) before pop or peek"
        super().__init__(GO_ON if num_pending == MOVED else empty)


class FullQueueError(OverflowError):
    """No room is left; the event was not taken and none was lost."""

    def __init__(self, num_pending: int, capacity: int) -> None:
        full = f"the queue is full with {capacity} events: call `queue = reserve(queue, more)` before push"
        super().__init__(GO_ON if num_pending == MOVED else full)
