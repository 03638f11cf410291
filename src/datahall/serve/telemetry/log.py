"""A line of JSON for each request that is over, written by a thread of its own."""

from __future__ import annotations

from collections import deque
from typing import BinaryIO

import msgspec

from datahall.serve.ledger.money import usd
from datahall.serve.telemetry.told import Told

MOST_WAITING = 65536  # lines; later ones are lost, and counted
_encode = msgspec.json.Encoder().encode


class Log:
    """Lines on their way to a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._waiting: deque[Told] = deque()
        self.num_lost = 0

    def add(self, told: Told) -> None:
        """Have a request written down."""
        if len(self._waiting) >= MOST_WAITING:
            self.num_lost += 1
        else:
            self._waiting.append(told)

    def flush(self) -> None:
        """Write what waits; what a full disk does not take is lost, and counted."""
        some = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if some:
            try:
                self._file.write(b"".join(map(line_of, some)))
                self._file.flush()
            except OSError:
                self.num_lost += len(some)


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
        "key": told.key,
        "customer": told.customer,
        "model": told.model,
        "served": told.served,
        "upstream": told.upstream,
        "attempts": told.num_attempts,
        "duration_s": told.duration_s,
        "ttft_s": told.ttft_s if told.first_ns else None,
        "prompt_tokens": usage.prompt,
        "cached_tokens": usage.cached,
        "completion_tokens": usage.completion,
        "charged_usd": usd(told.charged_nano_usd),
        "saved_usd": usd(told.saved_nano_usd),
    }
    return _encode({name: value for name, value in said.items() if value or name == "status"}) + b"\n"
