"""Events come in order of (time, priority, sequence), whatever was pushed, moved, cancelled or outgrown."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from datahall.compiled import Kernel
from datahall.events import (
    NO_EVENT,
    EmptyQueueError,
    Event,
    EventPriorityError,
    EventTimeError,
    FullQueueError,
    Queue,
    cancel,
    clear,
    is_pending,
    new_queue,
    now_s,
    num_pending,
    peek,
    pop,
    push,
    reschedule,
    reserve,
)

PUSH, POP, CANCEL, RESCHEDULE = range(4)
REFUSED = -2.0


def _drained(queue: Queue) -> list[Event]:
    return [pop(queue) for _ in range(num_pending(queue))]


def test_events_come_in_order_of_time_and_carry_their_payload() -> None:
    queue = new_queue()
    late = push(queue, 3.0, 1, 10, -20, 0.5, -0.25)
    soon = push(queue, 1.5, 2, a=1 << 40)
    assert _drained(queue) == [
        Event(1.5, 2, 1 << 40, 0, 0.0, 0.0, soon),
        Event(3.0, 1, 10, -20, 0.5, -0.25, late),
    ]


def test_equal_times_keep_the_order_of_pushing() -> None:
    queue = new_queue(4096)
    for number in range(2000):
        push(queue, float(number % 3), a=number)
    assert [event.a for event in _drained(queue)] == sorted(range(2000), key=lambda number: number % 3)


def test_of_equal_times_the_lower_priority_number_goes_first() -> None:
    queue = new_queue()
    for priority in (0, 5, -5, 0, 16384, -16384):
        push(queue, 1.0, a=priority, priority=priority)
    assert [event.a for event in _drained(queue)] == [-16384, -5, 0, 0, 5, 16384]


def test_the_clock_is_the_time_of_the_last_event_popped() -> None:
    queue = new_queue(start_s=-4.0)
    push(queue, -3.0)
    assert now_s(queue) == -4.0
    assert peek(queue).time_s == -3.0
    assert now_s(queue) == -4.0
    pop(queue)
    assert now_s(queue) == -3.0


@pytest.mark.parametrize("time_s", [math.nan, math.inf, -math.inf, 0.999])
def test_a_time_that_is_past_or_not_finite_is_refused_and_changes_nothing(time_s: float) -> None:
    queue = new_queue(start_s=1.0)
    token = push(queue, 2.0)
    with pytest.raises(EventTimeError, match=rf"an event at {time_s} s; the clock stands at 1.0 s"):
        push(queue, time_s)
    with pytest.raises(EventTimeError):
        reschedule(queue, token, time_s)
    assert _drained(queue) == [Event(2.0, 0, 0, 0, 0.0, 0.0, token)]


def test_a_priority_out_of_range_is_refused() -> None:
    with pytest.raises(EventPriorityError, match="priority 16385 is outside -16384 … 16384"):
        push(new_queue(), 1.0, priority=16385)


def test_an_empty_queue_has_no_next_event() -> None:
    for ask in (pop, peek):
        with pytest.raises(EmptyQueueError, match="no event is pending"):
            ask(new_queue())


def test_a_full_queue_refuses_and_a_reserved_one_takes_all() -> None:
    queue = new_queue(4)
    tokens = [push(queue, float(9 - number)) for number in range(4)]
    with pytest.raises(FullQueueError, match="full with 4 events"):
        push(queue, 1.0)
    larger = reserve(queue, 1000)
    tokens += [push(larger, float(number)) for number in range(1000)]
    assert num_pending(larger) == 1004
    assert all(is_pending(larger, token) for token in tokens)
    assert cancel(larger, tokens[0])
    assert reserve(larger, 1) is larger
    assert [event.time_s for event in _drained(larger)] == sorted([8.0, 7.0, 6.0, *map(float, range(1000))])


def test_a_replaced_queue_refuses_all_work() -> None:
    queue = new_queue(4)
    token = push(queue, 1.0)
    reserve(queue, 100)
    for use in (lambda: push(queue, 2.0), lambda: pop(queue), lambda: cancel(queue, token)):
        with pytest.raises((EmptyQueueError, FullQueueError), match="go on with the one it returned"):
            use()


def test_a_token_is_good_until_its_event_has_happened_and_never_again() -> None:
    queue = new_queue(4)
    first = push(queue, 1.0)
    pop(queue)
    for _ in range(100):
        push(queue, 1.0)
        pop(queue)
    second = push(queue, 1.0)
    assert not cancel(queue, first)
    assert not reschedule(queue, first, 5.0)
    assert not cancel(queue, NO_EVENT)
    assert cancel(queue, second)
    assert not cancel(queue, second)
    assert num_pending(queue) == 0


def test_a_rescheduled_event_keeps_its_rank_among_equals() -> None:
    queue = new_queue()
    first, second = push(queue, 1.0), push(queue, 2.0)
    assert reschedule(queue, first, 2.0)
    assert [event.token for event in _drained(queue)] == [first, second]


def test_a_cleared_queue_is_empty_and_keeps_its_clock() -> None:
    queue = new_queue(8)
    tokens = [push(queue, 1.0), push(queue, 2.0)]
    pop(queue)
    clear(queue)
    assert (num_pending(queue), now_s(queue), cancel(queue, tokens[1])) == (0, 1.0, False)
    assert push(queue, 3.0) not in tokens


def _script(steps: NDArray[np.float64], seen: NDArray[np.float64], tokens: NDArray[np.int64]) -> int:
    """Play steps of (what, delay, priority, target) on a queue that starts small; note what each gave."""
    queue = new_queue(1)
    pushed = 0
    for step in range(steps.shape[0]):
        what, delay_s, priority, target = steps[step]
        if what == PUSH:
            queue = reserve(queue, 1)
            tokens[pushed] = push(queue, now_s(queue) + delay_s, 1, pushed, priority=int(priority))
            pushed += 1
        elif what == POP:
            seen[step] = pop(queue).a if num_pending(queue) > 0 else REFUSED
        elif pushed > 0 and what == CANCEL:
            seen[step] = cancel(queue, tokens[int(target) % pushed])
        elif pushed > 0:
            seen[step] = reschedule(queue, tokens[int(target) % pushed], now_s(queue) + delay_s)
    return num_pending(queue)


def _model(steps: list[tuple[int, float, int, int]]) -> tuple[list[float], int]:
    """The same on a sorted list."""
    pending: list[tuple[float, int, int]] = []
    clock, pushed, seen = 0.0, 0, [0.0] * len(steps)
    for step, (what, delay_s, priority, target) in enumerate(steps):
        pending.sort()
        if what == PUSH:
            pending.append((clock + delay_s, priority, pushed))
            pushed += 1
        elif what == POP and pending:
            clock, _, number = pending.pop(0)
            seen[step] = number
        elif what == POP:
            seen[step] = REFUSED
        elif pushed:
            found = [event for event in pending if event[2] == target % pushed]
            seen[step] = len(found)
            for event in found:
                pending.remove(event)
                if what == RESCHEDULE:
                    pending.append((clock + delay_s, event[1], event[2]))
    return seen, len(pending)


script = Kernel(_script)
delays = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 1e3))
one_step = st.tuples(
    st.sampled_from([PUSH, PUSH, POP, CANCEL, RESCHEDULE, RESCHEDULE]),
    delays,
    st.integers(-2, 2),
    st.integers(0, 99),
)


def _equals_the_model(
    run: Callable[[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]], int],
    steps: list[tuple[int, float, int, int]],
) -> None:
    seen = np.zeros(len(steps))
    left = run(np.array(steps).reshape(-1, 4), seen, np.zeros(len(steps), np.int64))
    assert (seen.tolist(), left) == _model(steps)


@given(steps=st.lists(one_step, max_size=60))
@settings(deadline=None)
def test_any_sequence_of_steps_equals_a_sorted_list(steps: list[tuple[int, float, int, int]]) -> None:
    _equals_the_model(script.interpreted, steps)


@given(steps=st.lists(one_step, max_size=400))
@settings(deadline=None)
def test_any_sequence_of_steps_equals_a_sorted_list_compiled(
    steps: list[tuple[int, float, int, int]],
) -> None:
    _equals_the_model(script, steps)


def test_a_long_script_equals_a_sorted_list() -> None:
    """Hundreds pending, so that the heap is several levels deep."""
    rng = np.random.default_rng(5)
    whats = rng.choice([PUSH, PUSH, PUSH, POP, CANCEL, RESCHEDULE], 4000)
    steps = [
        (int(what), float(rng.integers(0, 40)) / 4, int(rng.integers(-1, 2)), int(rng.integers(0, 4000)))
        for what in whats
    ]
    _equals_the_model(script, steps)


def _late(queue: Queue, time_s: float) -> None:
    push(queue, time_s)


def _too_many(queue: Queue) -> None:
    while True:
        push(queue, 1.0)


def _next(queue: Queue) -> Event:
    return pop(queue)


late, too_many, next_event = Kernel(_late), Kernel(_too_many), Kernel(_next)


def test_compiled_kernels_refuse_with_the_same_words() -> None:
    with pytest.raises(EventTimeError, match=r"an event at nan s; the clock stands at 1\.0 s"):
        late(new_queue(start_s=1.0), math.nan)
    with pytest.raises(FullQueueError, match="full with 16 events"):
        too_many(new_queue(16))
    with pytest.raises(EmptyQueueError, match="no event is pending"):
        next_event(new_queue())
