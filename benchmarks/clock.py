"""Clocks, of CPU time: the least of five runs of a function, and of a fresh interpreter."""

from __future__ import annotations

import os
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
    """The least user and system time of `python ARGUMENTS` [s], after one run that warms the disk.

    That run writes the bytecode of files that were changed, whatever the shell forbids: a tree that is worked in would
    else compile them anew in every run, a quarter of a second for a plan.
    """
    used = []
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(repeat + 1):
        before = _children_s()
        subprocess.run(
            [sys.executable, *arguments],
            check=False, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        used.append(_children_s() - before)
    return min(used[1:])


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
