"""The hold model gives one trace for one seed: interpreted, compiled, on SimPy, and on any machine."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from datahall.events import (
    Trace,
    digest,
    exponential,
    integer_below,
    new_dice,
    new_queue,
    new_trace,
    pop,
    push,
    rows,
)
from datahall.events.phold import MOVE_FRACTION, hold, next_process, start, visit

# Of 2,000 visits among 64 processes with seed 1.  It changes only if the model, the queue or the draws do.
KNOWN_DIGEST = "d841b350ea24324fc082bf205003153e76a5097c82efcbef637bbd8e6eedb95e"

ON_ANOTHER = """
from datahall.events import digest, new_trace
from datahall.events.phold import hold
trace = new_trace(2000)
hold(64, 2000, seed=1, trace=trace)
print(digest(trace))
"""


def _interpreted(num_processes: int, num_events: int, seed: int) -> Trace:
    queue, trace = new_queue(num_processes), new_trace(num_events)
    dice = new_dice(seed, "phold", num_lanes=num_processes)
    start.interpreted(queue, dice, num_processes)
    visit.interpreted(queue, dice, num_events, trace)
    return trace


def _compiled(num_processes: int, num_events: int, seed: int) -> Trace:
    trace = new_trace(num_events)
    hold(num_processes, num_events, seed=seed, trace=trace)
    return trace


def test_the_trace_is_the_known_one_interpreted_and_compiled() -> None:
    assert digest(_interpreted(64, 2000, seed=1)) == KNOWN_DIGEST
    assert digest(_compiled(64, 2000, seed=1)) == KNOWN_DIGEST


def test_the_trace_is_the_known_one_on_a_plain_processor(tmp_path: Path) -> None:
    """Compiled without AVX and fused multiply-add, as for the oldest processor of this family."""
    said = subprocess.run(
        [sys.executable, "-c", ON_ANOTHER],
        env=os.environ
        | {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == KNOWN_DIGEST


def test_another_seed_gives_another_trace() -> None:
    assert digest(_compiled(64, 2000, seed=2)) != KNOWN_DIGEST


def test_the_population_moves_as_the_model_says() -> None:
    seen = rows(_compiled(256, 100_000, seed=3))
    assert seen["duration_s"].mean() == pytest.approx(2.0, abs=0.02)
    assert seen["duration_s"].min() >= 1.0
    stayed = sum(next_process(new_dice(seed, "stay", num_lanes=1000), 7, 1000) == 7 for seed in range(2000))
    assert stayed / 2000 == pytest.approx(1.0 - MOVE_FRACTION, abs=4 * math.sqrt(0.25 * 0.75 / 2000))


def test_simpy_handles_the_same_visits_at_the_same_times() -> None:
    simpy = pytest.importorskip("simpy")
    num_processes, num_events = 50, 3000
    dice = new_dice(9, "phold", num_lanes=num_processes)
    seen: list[tuple[float, int, int]] = []
    env = simpy.Environment()

    def wanderer(process: int) -> Iterator[object]:
        wait_s, num_visits = 1.0 + exponential(dice, 1.0, process), 0
        while True:
            yield env.timeout(wait_s)
            seen.append((env.now, process, num_visits))
            wait_s = 1.0 + exponential(dice, 1.0, process)
            process = next_process(dice, process, num_processes)
            num_visits += 1

    for process in range(num_processes):
        env.process(wanderer(process))
    while len(seen) < num_events:
        env.step()
    ours = rows(_compiled(num_processes, num_events, seed=9))
    assert seen == list(zip(ours["time_s"].tolist(), ours["a"].tolist(), ours["b"].tolist(), strict=True))


def test_simpy_breaks_ties_the_same_way() -> None:
    """Waits of 1, 2 or 3 s: at every moment many events are due at once."""
    simpy = pytest.importorskip("simpy")
    theirs, env, luck = [], simpy.Environment(), new_dice(4, "ties")

    def walker(name: int) -> Iterator[object]:
        while True:
            yield env.timeout(1.0 + integer_below(luck, 3))
            theirs.append((env.now, name))

    for name in range(40):
        env.process(walker(name))
    while len(theirs) < 2000:
        env.step()

    queue, luck, ours = new_queue(64), new_dice(4, "ties"), []
    for name in range(40):
        push(queue, 1.0 + integer_below(luck, 3), a=name)
    for _ in range(2000):
        event = pop(queue)
        ours.append((event.time_s, event.a))
        push(queue, event.time_s + 1.0 + integer_below(luck, 3), a=event.a)
    assert ours == theirs
