"""An answer as it comes in, from a socket or from this process: status and headers at once, the body in pieces."""

from __future__ import annotations

import asyncio
from typing import Protocol

from datahall.serve.http.failures import Failure, Interrupted

MOST_UNREAD_BYTES = 256 * 1024  # before the source is asked to wait
MOST_BODY_BYTES = 64 * 1024 * 1024  # of an answer that is read whole


class Source(Protocol):
    """Who feeds an answer."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def cancel(self) -> None: ...


class Response:
    """The answer to one request. Whoever has one closes it: what is not complete then is broken off."""

    __slots__ = (
        "_error", "_is_paused", "_num_unread_bytes", "_pieces", "_source", "_waiter", "headers", "is_complete",
        "status",
    )  # fmt: skip

    def __init__(self, status: int, headers: dict[str, str], source: Source) -> None:
        self.status = status
        self.headers = headers
        self.is_complete = False
        self._source = source
        self._pieces: list[bytes] = []
        self._num_unread_bytes = 0
        self._is_paused = False
        self._error: Failure | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def piece(self) -> bytes:
        """All that has come since the last piece; nothing at the end."""
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self.is_complete:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._take()

    async def read(self, most_bytes: int = MOST_BODY_BYTES) -> bytes:
        """The whole body."""
        if self.is_complete and self._num_unread_bytes <= most_bytes:
            return self._take()
        body = bytearray()
        while piece := await self.piece():
            body += piece
            if len(body) > most_bytes:
                self.close()
                raise Interrupted(f"an answer of more than {most_bytes} bytes")
        return bytes(body)

    def close(self) -> None:
        """Read no more; the source hears at once."""
        if not self.is_complete and self._error is None:
            self._error = Interrupted("closed before its end")
            self._source.cancel()

    def _take(self) -> bytes:
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._num_unread_bytes = 0
        if self._is_paused:
            self._is_paused = False
            self._source.resume()
        return data

    # what the source says

    def feed(self, data: bytes) -> None:
        self._pieces.append(data)
        self._num_unread_bytes += len(data)
        if self._num_unread_bytes > MOST_UNREAD_BYTES and not self._is_paused:
            self._is_paused = True
            self._source.pause()
        self._wake()

    def finish(self) -> None:
        self.is_complete = True
        self._wake()

    def fail(self, error: Failure) -> None:
        if not self.is_complete and self._error is None:
            self._error = error
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
