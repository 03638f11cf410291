"""The hold model: the usual load to measure an event queue by, and the smallest simulator on this one.

A fixed population of events visits logical processes.  An event waits 1 + Exp(1) s from one visit to the next
and changes, with probability ¼, to a process chosen at random.  R. M. Fujimoto, "Performance of Time Warp
under synthetic workloads", 1990.
"""

from __future__ import annotations

from datahall.compiled import Kernel, inline
from datahall.events.draws import exponential
from datahall.events.queue import Queue, new_queue
from datahall.events.schedule import pop, push
from datahall.events.streams import Dice, new_dice, uniform
from datahall.events.trace import Trace, new_trace, record

VISIT = 1
MOVE_FRACTION = 0.25


def hold(num_processes: int, num_events: int, *, seed: int = 1, trace: Trace | None = None) -> Queue:
    """Handle num_events visits among num_processes, each with one pending event; compiled."""
    queue, dice = new_queue(num_processes), new_dice(seed, "phold", num_lanes=num_processes)
    start(queue, dice, num_processes)
    visit(queue, dice, num_events, trace or new_trace(0))
    return queue


def _start(queue: Queue, dice: Dice, num_processes: int) -> None:
    for process in range(num_processes):
        push(queue, 1.0 + exponential(dice, 1.0, process), VISIT, process)


def _visit(queue: Queue, dice: Dice, num_events: int, trace: Trace) -> None:
    num_processes = dice.num_drawn.size
    for _ in range(num_events):
        event = pop(queue)
        wait_s = 1.0 + exponential(dice, 1.0, event.a)
        record(trace, event.time_s, event.kind, event.a, event.b, event.x, wait_s)
        to = next_process(dice, event.a, num_processes)
        push(queue, event.time_s + wait_s, VISIT, to, event.b + 1, wait_s)


@inline
def next_process(dice: Dice, process: int, num_processes: int) -> int:
    """Where an event goes from a process: mostly nowhere."""
    luck = uniform(dice, process) / MOVE_FRACTION
    return int(luck * num_processes) if luck < 1.0 else process


start = Kernel(_start, compile_s=2.0)
visit = Kernel(_visit, compile_s=3.0)
