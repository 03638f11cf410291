"""A line of JSON for each request that is over, written by a thread of its own."""

from __future__ import annotations

import os
import stat
from collections import deque
from select import POLLOUT, poll

import msgspec

from datahall.serve.ledger.money import usd
from datahall.serve.telemetry.told import Told

MOST_WAITING = 65536  # lines; later ones are lost, and counted
MOST_AT_ONCE = 256
PIPE_BYTES = 4096  # that a pipe takes at once where it takes anything
FILE_BYTES = 1 << 20
LAST_S = 1.0  # that a reader may take for the next piece at the end
_encode = msgspec.json.Encoder().encode


class Log:
    """Lines on their way to a file, which is written to when it can take something: nobody waits for its reader."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._poll = poll()
        self._poll.register(file, POLLOUT)
        self._most_bytes = FILE_BYTES if stat.S_ISREG(os.fstat(file).st_mode) else PIPE_BYTES
        self._waiting: deque[Told] = deque()
        self._rest = b""  # of lines, the first of which may have been written in part
        self.num_lost = 0

    def add(self, told: Told) -> None:
        """Have a request written down."""
        if len(self._waiting) >= MOST_WAITING:
            self.num_lost += 1
        else:
            self._waiting.append(told)

    def flush(self, wait_s: float = 0.0) -> None:
        """Write what can be written now; what a full disk does not take is lost, and counted."""
        while self._rest or self._waiting:
            if not self._rest:
                some = [self._waiting.popleft() for _ in range(min(MOST_AT_ONCE, len(self._waiting)))]
                self._rest = b"".join(map(line_of, some))
            if not self._poll.poll(1000 * wait_s):
                return
            try:
                self._rest = self._rest[os.write(self._file, self._rest[: self._most_bytes]) :]
            except OSError:
                self.num_lost += self._rest.count(b"\n")
                self._rest = b""

    def finish(self) -> None:
        """Write what is left, as long as it is read; the rest is lost."""
        self.flush(LAST_S)
        self.num_lost += self._rest.count(b"\n") + len(self._waiting)


def line_of(told: Told) -> bytes:
    """A request in one line; what does not apply to it is left out."""
    usage = told.usage
    said: dict[str, object] = {
        "at_s": told.ended_ns / 1e9,
        "request_id": told.request_id,
        "trace_id": told.trace.trace_id if told.trace is not None else "",
        "route": told.route,
        "result": told.result,
        "status": told.status,
        "code": told.code,
        "peer": told.peer if told.result == "refused" else "",
        "key": told.key,
        "customer": told.customer,
        "model": told.model,
        "served": told.served,
        "upstream": told.upstream,
        "attempts": told.num_attempts,
        "failures": told.failures,
        "duration_s": told.duration_s,
        "ttft_s": told.ttft_s if told.first_ns else None,
        "prompt_tokens": usage.prompt,
        "cached_tokens": usage.cached,
        "completion_tokens": usage.completion,
        "charged_usd": usd(told.charged_nano_usd),
        "saved_usd": usd(told.saved_nano_usd),
    }
    return _encode({name: value for name, value in said.items() if value or name == "status"}) + b"\n"
