"""Events per second of the hold model, beside SimPy's in the same run, and what moving an event costs.

Rates are per CPU second, best of several: the least disturbed run of a shared machine.
"""

from __future__ import annotations

import importlib
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType

import numpy as np
from numpy.typing import NDArray
from table import Line, printed

from datahall.compiled import Kernel
from datahall.events import (
    Dice,
    Queue,
    exponential,
    integer_below,
    new_dice,
    new_queue,
    new_trace,
    pop,
    push,
    reschedule,
    reserve,
)
from datahall.events.phold import MOVE_FRACTION, start, visit

PENDING = {1_024: None, 16_384: 4e6, 65_536: 2.5e6, 1_048_576: None}  # and the events/s asked of each
SIMPY_UP_TO = 65_536
MOVES_PER_EVENT = 4
MEAN_WORK_S = 100.0


def event_lines() -> list[Line]:
    """The hold model at several populations, and the flow model with its two ways to move an event."""
    simpy = _simpy()
    lines = []
    for num_pending, wanted in PENDING.items():
        ours = best_rate(partial(hold_s, num_pending, 1_000_000), 1_000_000)
        lines.append(Line(f"events: hold model, {num_pending:,} pending", ours, "/s", wanted, True))
        if simpy and num_pending <= SIMPY_UP_TO:
            theirs = best_rate(partial(simpy_s, simpy, num_pending, 200_000), 200_000, 3)
            lines.append(Line("  SimPy", theirs, "/s"))
            lines.append(Line("  against SimPy", ours / theirs, "× its rate", 10.0 if wanted else None, True))
    for name, kernel in (("moved in the heap", moved), ("pushed again, stale ones skipped", pushed_again)):
        rate = best_rate(partial(moves_s, kernel, 16_384, 200_000), 200_000, 3)
        lines.append(Line(f"events: {MOVES_PER_EVENT} moves each, 16,384 pending, {name}", rate, "/s"))
    return lines


def best_rate(run_s: Callable[[], float], num_events: int, repeat: int = 7) -> float:
    """Events per CPU second of the fastest run, after one that is not counted."""
    run_s()
    return num_events / min(run_s() for _ in range(repeat))


def hold_s(num_pending: int, num_events: int) -> float:
    """CPU time of our hold model [s]."""
    queue, dice, trace = new_queue(num_pending), new_dice(1, "hold", num_lanes=num_pending), new_trace(0)
    start(queue, dice, num_pending)
    began = time.process_time()
    visit(queue, dice, num_events, trace)
    return time.process_time() - began


def simpy_s(simpy: ModuleType, num_pending: int, num_events: int) -> float:
    """CPU time of the same model on SimPy, one generator for each event [s]."""
    luck, env = random.Random(1), simpy.Environment()

    def wanderer(process: int) -> Iterator[object]:
        while True:
            yield env.timeout(1.0 + luck.expovariate(1.0), process)
            drawn = luck.random() / MOVE_FRACTION
            process = int(drawn * num_pending) if drawn < 1.0 else process

    for process in range(num_pending):
        env.process(wanderer(process))
    for _ in range(num_pending):  # the start of each generator is not an event of the model
        env.step()
    began = time.process_time()
    for _ in range(num_events):
        env.step()
    return time.process_time() - began


def _moved(queue: Queue, dice: Dice, tokens: NDArray[np.int64], num_events: int) -> Queue:
    """Each completion starts a flow and changes the end of others, as a flow simulation does."""
    for flow in range(tokens.size):
        tokens[flow] = push(queue, exponential(dice, MEAN_WORK_S), 1, flow)
    for _ in range(num_events):
        event = pop(queue)
        tokens[event.a] = push(queue, event.time_s + exponential(dice, MEAN_WORK_S), 1, event.a)
        for _ in range(MOVES_PER_EVENT):
            flow = integer_below(dice, tokens.size)
            reschedule(queue, tokens[flow], event.time_s + exponential(dice, MEAN_WORK_S))
    return queue


def _pushed_again(queue: Queue, dice: Dice, tokens: NDArray[np.int64], num_events: int) -> Queue:
    """The same with a second event for each move; one whose token is not its flow's latest is skipped."""
    for flow in range(tokens.size):
        tokens[flow] = push(queue, exponential(dice, MEAN_WORK_S), 1, flow)
    for _ in range(num_events):
        queue = reserve(queue, 1 + MOVES_PER_EVENT)
        event = pop(queue)
        while tokens[event.a] != event.token:
            event = pop(queue)
        tokens[event.a] = push(queue, event.time_s + exponential(dice, MEAN_WORK_S), 1, event.a)
        for _ in range(MOVES_PER_EVENT):
            flow = integer_below(dice, tokens.size)
            tokens[flow] = push(queue, event.time_s + exponential(dice, MEAN_WORK_S), 1, flow)
    return queue


moved, pushed_again = Kernel(_moved), Kernel(_pushed_again)


def moves_s(kernel: Kernel[..., Queue], num_flows: int, num_events: int) -> float:
    """CPU time of a flow model [s]."""
    queue, dice, tokens = new_queue(num_flows), new_dice(1, "moves"), np.zeros(num_flows, np.int64)
    began = time.process_time()
    kernel(queue, dice, tokens, num_events)
    return time.process_time() - began


def _simpy() -> ModuleType | None:
    try:
        return importlib.import_module("simpy")
    except ImportError:
        print("SimPy is not installed (pip install simpy): no ratio to it\n")
        return None


if __name__ == "__main__":
    print(printed(event_lines()))
