"""One call upstream for all who ask for the same at once: the first leads, the others get what it gets, as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from datahall.serve.cache.asked import Asked
from datahall.serve.cache.kept import Kept


class Flight:
    """A call that is under way, and what has come of it so far."""

    __slots__ = ("_change", "asked", "followers", "is_over", "kept", "pieces")

    def __init__(self, asked: Asked) -> None:
        self.asked = asked  # as its leader did
        self.pieces: list[bytes] = []
        self.followers = 0  # who wait for it; while there are some it goes on, even if its leader leaves
        self.is_over = False
        self.kept: Kept | None = None
        self._change: asyncio.Event | None = None

    def write(self, piece: bytes) -> None:
        """Said by the leader of a stream: a piece has come."""
        self.pieces.append(piece)
        self._wake()

    def end(self, kept: Kept | None) -> None:
        """Said by the leader: this is the whole answer; None where there is none."""
        if not self.is_over:
            self.kept, self.is_over = kept, True
            self._wake()

    def is_alike(self, asked: Asked) -> bool:
        """Whether who asks may be given pieces as the leader gets them."""
        return asked.streams and self.asked.streams and asked.with_usage == self.asked.with_usage

    async def whole(self) -> Kept | None:
        """The answer, once it is whole; None where the call failed, and who waits may lead the next."""
        self.followers += 1
        try:
            while not self.is_over:
                await self._changed()
            return self.kept
        finally:
            self.followers -= 1

    async def live(self) -> AsyncIterator[bytes]:
        """The pieces of a stream, those that have come and those that come; whether it ended well, `kept` says."""
        self.followers += 1
        count = 0
        try:
            while True:
                if count < len(self.pieces):
                    come = self.pieces[count:]
                    count += len(come)
                    yield b"".join(come)
                elif self.is_over:
                    return
                else:
                    await self._changed()
        finally:
            self.followers -= 1

    async def _changed(self) -> None:
        if self._change is None:
            self._change = asyncio.Event()
        await self._change.wait()

    def _wake(self) -> None:
        if self._change is not None:
            self._change.set()
            self._change = None


class Flights:
    """The calls that are under way."""

    def __init__(self) -> None:
        self._flights: dict[bytes, Flight] = {}

    def join(self, asked: Asked) -> tuple[Flight, bool]:
        """The call for what is asked, and whether who asks leads it; a leader must `land` it, come what may."""
        flight = self._flights.get(asked.key)
        if flight is not None:
            return flight, False
        flight = self._flights[asked.key] = Flight(asked)
        return flight, True

    def land(self, flight: Flight, kept: Kept | None) -> None:
        """The call is over; None: without an answer."""
        if self._flights.get(flight.asked.key) is flight:
            del self._flights[flight.asked.key]
        flight.end(kept)
