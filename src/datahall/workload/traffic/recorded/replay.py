"""Traces played again: faster or slower, or for longer than they are."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from datahall.errors import ScenarioError
from datahall.workload.traffic.recorded.trace_file import Trace
from datahall.workload.traffic.requests import CHUNK_ROWS, Requests, in_chunks


def replay(
    trace: Trace, *, speed_ratio: float = 1.0, num: int = 0, duration_s: float = 0.0
) -> Iterator[Requests]:
    """The trace at `speed_ratio` times its rate, in chunks; more requests or time than it has start it again.

    Each lap has sessions and hashes of its own: the same text again would be found in the cache whole, which says
    nothing about the service that was recorded.
    """
    if not speed_ratio > 0:
        raise ScenarioError(
            f"a rate scaled by {speed_ratio:g}", field="speed", hint="a positive factor; 2 is twice the rate"
        )
    own = trace.requests
    num = num or (len(own) if not duration_s else 0)
    lap, sent = 0, 0
    while True:
        for piece in in_chunks((own,), CHUNK_ROWS):
            chunk = _lap(piece, trace, lap, speed_ratio)
            if num and sent + len(chunk) > num:
                chunk = chunk.rows(0, num - sent)
            if duration_s:
                chunk = chunk.rows(0, _until(chunk, duration_s))
            if len(chunk):
                yield chunk
            sent += len(chunk)
            if sent == num or len(chunk) < len(piece):
                return
        lap += 1
        if not trace.duration_s and duration_s:
            return  # all at once: another lap would never pass the end


def _until(chunk: Requests, duration_s: float) -> int:
    """Rows before the first that begins at or after the end."""
    late = np.flatnonzero((chunk.after < 0) & (chunk.arrival_s >= duration_s))
    return int(late[0]) if late.size else len(chunk)


def _lap(chunk: Requests, trace: Trace, lap: int, speed_ratio: float) -> Requests:
    own = trace.requests
    begins = chunk.after < 0
    # Think times are people's: a faster trace has more of them, not quicker ones.
    arrival_s = np.where(begins, (chunk.arrival_s + lap * trace.duration_s) / speed_ratio, chunk.arrival_s)
    return msgspec.structs.replace(
        chunk,
        arrival_s=arrival_s,
        session=chunk.session + lap * (int(own.session.max()) + 1),
        blocks=chunk.blocks + lap * (int(own.blocks.max()) + 1) if own.blocks.size else chunk.blocks,
    )
