"""One call upstream for all who ask for the same at once: the first leads, the others get the answer that it gets."""

from __future__ import annotations

import asyncio

from datahall.serve.cache.asked import Asked
from datahall.serve.cache.kept import Kept
from datahall.serve.cache.shared import Shared


class Flight:
    """A call that is under way."""

    __slots__ = ("_is_told", "_kept", "asked", "is_left", "stream")

    def __init__(self, asked: Asked) -> None:
        self.asked = asked  # as its leader did
        self.is_left = False  # its leader has gone: the next call may well bring an answer
        self.stream: Shared | None = None  # once the first of it has come
        self._kept: Kept | None = None
        self._is_told = asyncio.Event()

    def begin(self, stream: Shared) -> None:
        """Said by the leader: it comes as a stream, which others may hear."""
        self.stream = stream
        self._is_told.set()

    def end(self, kept: Kept | None, is_left: bool = False) -> None:
        """Said by the leader: this is the answer; None where there is none."""
        if not self._is_told.is_set():
            self._kept = kept
            self.is_left = is_left
            self._is_told.set()

    async def whole(self) -> Kept | None:
        """The answer, once it is there; None where there is none for others: then each who waits asks for himself, or,
        where the leader has only left, the first of them leads the next.  Of a stream its beginning is waited for."""
        await self._is_told.wait()
        return self._kept


class Flights:
    """The calls that are under way."""

    def __init__(self) -> None:
        self._flights: dict[object, Flight] = {}

    def join(self, asked: Asked) -> tuple[Flight, bool]:
        """The call for what is asked, and whether who asks leads it; a leader must `land` it, come what may."""
        flight = self._flights.get(asked.manner)
        if flight is not None:
            return flight, False
        flight = self._flights[asked.manner] = Flight(asked)
        return flight, True

    def has(self, asked: Asked) -> bool:
        """Whether such a call is under way."""
        return asked.manner in self._flights

    def land(self, flight: Flight, kept: Kept | None, is_left: bool = False) -> None:
        """The call is over; None: without an answer."""
        if self._flights.get(flight.asked.manner) is flight:
            del self._flights[flight.asked.manner]
        flight.end(kept, is_left)
