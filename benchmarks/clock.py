"""Clocks, of CPU time: the least of five runs of a function, and of a fresh interpreter."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable


def best_s(run: Callable[[], object], repeat: int = 5) -> float:
    """CPU time of the fastest run [s], after one that is not counted."""
    run()
    times = []
    for _ in range(repeat):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def process_cpu_s(*arguments: str, repeat: int = 5) -> float:
    """The least user and system time of `python ARGUMENTS` [s], after one run that warms the disk."""
    used = []
    for _ in range(repeat + 1):
        before = _children_s()
        subprocess.run(
            [sys.executable, *arguments], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        used.append(_children_s() - before)
    return min(used[1:])


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
