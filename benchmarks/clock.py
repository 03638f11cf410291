"""Clocks: the median of several runs of a function, and the CPU time of a fresh interpreter."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable


def median_s(run: Callable[[], object], repeat: int = 7) -> float:
    """Wall time of one run [s], after one that is not counted."""
    run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


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
