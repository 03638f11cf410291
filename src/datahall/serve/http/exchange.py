"""One request and the answering of it: the border between those who carry requests and those who answer them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from datahall.serve.http.framing import Headers
from datahall.serve.http.request import Request


class Exchange:
    """A request, and its answer in one of two ways: `send` it whole, or `start`, `write` pieces and `end`.

    A handler that is a coroutine is cancelled as soon as the client leaves; one that answers by callbacks asks
    `on_gone` to be told. What is written to a client that has left goes nowhere.
    """

    __slots__ = ("_event", "_leaving", "is_cut_off", "is_ended", "is_gone", "is_started", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.is_started = False
        self.is_ended = False
        self.is_gone = False
        self.is_cut_off = False  # the server goes, and the client is still there
        self._leaving: list[Callable[[], object]] = []
        self._event: asyncio.Event | None = None

    @property
    def gone(self) -> asyncio.Event:
        """Set as soon as the client has left."""
        if self._event is None:
            self._event = asyncio.Event()
            if self.is_gone:
                self._event.set()
        return self._event

    def on_gone(self, callback: Callable[[], object]) -> None:
        """Call back once, when the client leaves before the answer has ended; at once if it has left."""
        if self.is_gone:
            callback()
        else:
            self._leaving.append(callback)

    def leave(self) -> None:
        """Said by who carries the request: the client is gone."""
        if self.is_gone or self.is_ended:
            return
        self.is_gone = True
        self._stop()

    def cut_off(self) -> None:
        """Said by who carries the request: the server goes, and nobody waits for the answer any longer."""
        if self.is_gone or self.is_ended:
            return
        self.is_cut_off = True
        self._stop()

    def _stop(self) -> None:
        if self._event is not None:
            self._event.set()
        for callback in self._leaving:
            callback()
        self._leaving.clear()

    def send(
        self, status: int, body: bytes = b"", headers: Headers = (), content_type: str = "application/json"
    ) -> None:
        """Answer whole."""
        raise NotImplementedError

    def start(self, status: int, headers: Headers = (), content_type: str = "text/event-stream") -> None:
        """Begin an answer in pieces."""
        raise NotImplementedError

    def write(self, piece: bytes) -> None:
        """Send one piece; pieces that are written together go out together."""
        raise NotImplementedError

    @property
    def must_wait(self) -> bool:
        """Whether the client has so much to read that `drain` would wait."""
        return False

    async def drain(self) -> None:
        """Wait until the client has read enough for more to be written."""

    def end(self) -> None:
        """The answer is complete."""
        raise NotImplementedError

    def abort(self) -> None:
        """Break the answer off, so that the client sees that it is not complete."""
        raise NotImplementedError


Handler: TypeAlias = Callable[[Exchange], Awaitable[None] | Coroutine[Any, Any, None] | None]
