"""The figures of `events/` are what they were: see `record.py`."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
from tests.recorded.record import check_calls

from datahall.events.draws import exponential, integer_below, lognormal, normal, normal_quantile
from datahall.events.perfetto import perfetto
from datahall.events.philox import philox
from datahall.events.phold import next_process
from datahall.events.queue import Queue, clear, new_queue, now_s, num_pending, reserve
from datahall.events.schedule import Event, cancel, is_pending, peek, pop, push, reschedule
from datahall.events.streams import new_dice, stream, uniform
from datahall.events.trace import digest, new_trace, num_dropped, record, rows


def draws() -> Iterator[tuple[str, object]]:
    for seed in (0, 7):
        dice = new_dice(seed, "a", 3, num_lanes=3)
        for lane in range(3):
            yield f"draws {seed} {lane}", [
                [uniform(dice, lane), exponential(dice, 2.5, lane), normal(dice, 3.0, 0.5, lane),
                 lognormal(dice, 4.0, 0.7, lane), integer_below(dice, 17, lane), next_process(dice, lane, 9)]
                for _ in range(20)
            ]  # fmt: skip
        yield f"stream {seed}", stream(seed, "b", 1).random(8)
    near = [0.425, 0.4250001, 0.4249999, 0.3, 1e-3]
    far = [10.0**-place for place in range(1, 40)]
    yield (
        "quantiles",
        [normal_quantile(one) for one in (0.5, *near, *far, *(1 - one for one in far[:14]), 0.925, 0.075)],
    )
    word = [np.uint64(one) for one in (0, 1, 2**32 - 1, 0xDEADBEEF)]
    yield "philox", [philox(a, b, a, b, np.uint64(2**63 + 5)) for a in word for b in word]


def played(seed: int) -> Iterator[object]:
    """A queue that is filled, moved about in and emptied."""
    dice, queue, tokens = new_dice(seed, "played"), new_queue(4, 0.5), list[int]()
    for step in range(300):
        what = integer_below(dice, 10)
        if what < 5:
            queue = reserve(queue, 1)
            time_s = now_s(queue) + integer_below(dice, 6) * 0.25
            tokens.append(
                push(queue, time_s, step % 4, step, what, uniform(dice), -1.0, integer_below(dice, 3))
            )
            yield tokens[-1]
        elif what < 8 and num_pending(queue):
            yield [peek(queue), pop(queue), now_s(queue)]
        elif tokens:
            one = tokens[integer_below(dice, len(tokens))]
            pending = is_pending(queue, one)
            yield [
                pending,
                cancel(queue, one) if what == 8 else reschedule(queue, one, now_s(queue) + uniform(dice)),
            ]
        yield [num_pending(queue), *state(queue)]
    queue = reserve(queue, 100)
    yield from emptied(queue)
    push(queue, now_s(queue) + 1.0)
    clear(queue)
    yield num_pending(queue)


def state(queue: Queue) -> Iterator[object]:
    yield len(queue.slots)
    yield len(queue.heap)


def emptied(queue: Queue) -> Iterator[Event]:
    while num_pending(queue):
        yield pop(queue)


def traces() -> Iterator[tuple[str, object]]:
    for room in (0, 5, 40):
        trace, dice = new_trace(room), new_dice(room, "trace")
        for place in range(30):
            start_s, long_s = 0.1 * place, (0.0, 0.05, 0.35)[place % 3]
            record(trace, start_s, place % 4, place % 3, place, uniform(dice), long_s)
        drawn = perfetto(trace, {0: "forward", 2: "backward"}, {1: "chip 1"})
        found = [digest(trace), len(drawn), zlib.crc32(drawn), num_dropped(trace), len(rows(trace))]
        yield f"trace of {room}", "|".join(map(str, found))


def calls() -> Iterator[tuple[str, object]]:
    yield from draws()
    for seed in range(6):
        yield f"queue {seed}", list(played(seed))
    yield from traces()


def test_figures_of_calls(update: bool) -> None:
    check_calls("events", calls(), update)
