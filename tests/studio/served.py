"""A studio of this process, whose questions are answered in a thread of it; and one as a person starts it."""

from __future__ import annotations

import queue
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from datahall.serve.http import Request, answer_of
from datahall.studio.app import Studio
from datahall.studio.bench import Bench
from datahall.studio.task import Message, Task
from datahall.studio.work import answered


class Here:
    """A worker without a process."""

    def __init__(self) -> None:
        self._said: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.is_alive = True

    def tell(self, task: Task) -> None:
        self._said.put(answered(task))

    def hear(self) -> Message:
        return self._said.get()

    def end(self) -> None:
        self.is_alive = False


async def asked(path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """What the studio answers to one request."""
    bench = Bench(1, Here)  # type: ignore[arg-type]
    try:
        request = Request(
            "GET" if body is None else "POST",
            path,
            headers=headers,
            body=body if isinstance(body, bytes) else msgspec.json.encode(body) if body is not None else b"",
        )
        response = await answer_of(Studio(bench, "1"), request)
        return response.status, response.headers, await response.read()
    finally:
        await bench.close()


@contextmanager
def started(num_workers: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command on a port that is free, and where it listens; ended at the end if it still runs."""
    options = ("--listen", "127.0.0.1:0", "--no-open", "--workers", str(num_workers))
    command = [sys.executable, "-m", "datahall", "studio", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            found = re.match(r"(http://127\.0\.0\.1:\d+)  ", process.stdout.readline())
            assert found
            yield process, found[1]
        finally:
            process.terminate()
