"""One stream for all who ask for the same at once: who comes late hears what has come, nobody waits for who is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from datahall.serve.http import Exchange
from datahall.serve.ledger.money import Usage


class TooSlow(Exception):
    """A client reads so slowly that what it has not read would fill the memory."""


class Listener:
    """One who hears a stream; what it has not taken yet is held, within a bound."""

    __slots__ = ("_num_bytes", "_pieces", "_shared", "_waiter")

    def __init__(self, shared: Shared, pieces: list[bytes]) -> None:
        self._shared = shared
        self._pieces = pieces
        self._num_bytes = sum(map(len, pieces))
        self._waiter: asyncio.Future[None] | None = None

    async def piece(self) -> bytes:
        """All that has come since the last piece; nothing at the end."""
        while not self._pieces:
            if self._shared.is_over:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._num_bytes > self._shared.most_bytes:
            raise TooSlow
        data = b"".join(self._pieces)
        self._pieces, self._num_bytes = [], 0
        return data

    async def pass_to(self, exchange: Exchange) -> None:
        """Write all of it to a client."""
        while piece := await self.piece():
            exchange.write(piece)
            if exchange.must_wait:
                await exchange.drain()

    def hear(self, piece: bytes) -> None:
        """A piece has come; of one who is too far behind nothing is held any more but that he is."""
        self._num_bytes += len(piece)
        if self._num_bytes <= self._shared.most_bytes:
            self._pieces.append(piece)
        else:
            self._pieces = [b""]
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Shared:
    """A stream under way: what has come of it, within a bound, and who hears it besides the one who asked first."""

    __slots__ = (
        "_num_bytes", "_on_join", "is_joinable", "is_over", "listeners", "most_bytes", "on_empty", "pieces", "usage",
    )  # fmt: skip

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.pieces: list[bytes] = []  # nothing once they are too many to be kept
        self.listeners: set[Listener] = set()
        self.is_joinable = True
        self.is_over = False
        self.usage: Usage | None = None  # of an answer that is whole
        self.on_empty: Callable[[], object] | None = None  # told when the last has left
        self._num_bytes = 0
        self._on_join: asyncio.Event | None = None

    def add(self, piece: bytes) -> None:
        """A piece for all."""
        self._num_bytes += len(piece)
        if self._num_bytes <= self.most_bytes:
            self.pieces.append(piece)
        elif self.is_joinable:
            self.is_joinable = False
            self.pieces = []
        for listener in self.listeners:
            listener.hear(piece)

    def join(self, *, from_now: bool = False) -> Listener:
        """Hear all of it, or what comes from now on."""
        listener = Listener(self, [] if from_now else [*self.pieces])
        self.listeners.add(listener)
        if self._on_join is not None:
            self._on_join.set()
        return listener

    def leave(self, listener: Listener) -> None:
        """Hear no more."""
        self.listeners.discard(listener)
        if not self.listeners and self.on_empty is not None:
            self.is_joinable = False
            self.on_empty()

    def end(self, usage: Usage | None) -> None:
        """Nothing more comes; the tokens are those of an answer that is whole."""
        if not self.is_over:
            self.is_over, self.usage = True, usage
            self.is_joinable = self.is_joinable and usage is not None
            for listener in self.listeners:
                listener.wake()

    async def drain(self, exchange: Exchange) -> None:
        """Wait until a client has read, or somebody hears what it does not read."""
        waits = [asyncio.ensure_future(exchange.drain()), asyncio.ensure_future(self._joined())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    async def _joined(self) -> None:
        while not self.listeners:
            self._on_join = asyncio.Event()
            await self._on_join.wait()
