"""Points answered by several processes of this machine, each as soon as one is free."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple

Point = tuple[int, bytes]
HOME = Path(__file__).parents[3]  # of the package


class _Ended(NamedTuple):
    """A process that has nothing more to say, and the point that it ended at, if it should not have."""

    at: bytes
    code: int


def num_cores() -> int:
    """Cores that this process may use."""
    own = getattr(os, "sched_getaffinity", None)
    return len(own(0)) if own else os.cpu_count() or 1


def answered(place: str, context: bytes, points: Iterable[Point], num_workers: int) -> Iterator[Point]:
    """What was found of each point, in the order in which they end; the processes end with the iteration."""
    found: SimpleQueue[Point | _Ended] = SimpleQueue()
    waiting, lock, left = iter(points), Lock(), num_workers
    workers = [_started() for _ in range(num_workers)]
    try:
        for one in workers:
            Thread(target=_fed, args=(one, place, context, waiting, lock, found), daemon=True).start()
        while left:
            one_found = found.get()
            if not isinstance(one_found, _Ended):
                yield one_found
                continue
            left -= 1
            if one_found.at:
                raise RuntimeError(
                    f"a process ended with code {one_found.code} at the point {one_found.at.decode().strip()}"
                )
    finally:
        for worker in workers:
            _end(worker, at_once=left > 0)


def _started() -> subprocess.Popen[bytes]:
    paths = [str(HOME), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "datahall.planner.sweep.worker"]
    group = 0 if os.name == "posix" else None  # of its own: Ctrl-C is for whoever started it
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, process_group=group
    )


def _fed(
    worker: subprocess.Popen[bytes],
    place: str,
    context: bytes,
    waiting: Iterator[Point],
    lock: Lock,
    found: SimpleQueue[Point | _Ended],
) -> None:
    """Give one process points until there are none, and pass on what it says."""
    assert worker.stdin
    assert worker.stdout
    point = place.encode()
    try:
        worker.stdin.write(b"%s\n%s\n" % (point, context))
        while True:
            with lock:
                index, point = next(waiting, (-1, b""))
            if index < 0:
                break
            worker.stdin.write(point + b"\n")
            worker.stdin.flush()
            line = worker.stdout.readline()
            if not line.endswith(b"\n"):
                break
            found.put((index, line[:-1]))
    except (OSError, ValueError):  # it has ended, or was ended
        pass
    found.put(_Ended(point, worker.wait() if point else 0))


def _end(worker: subprocess.Popen[bytes], *, at_once: bool) -> None:
    """End a process: nothing more is asked, or what it answers is not waited for."""
    if at_once:
        worker.kill()
    for pipe in (worker.stdin, worker.stdout):
        with suppress(OSError):  # what was not sent has nobody to read it
            if pipe:
                pipe.close()
    worker.wait()
