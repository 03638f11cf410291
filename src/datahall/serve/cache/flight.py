"""One call upstream for all who ask for the same at once: the first leads, the others get the answer that it gets."""

from __future__ import annotations

import asyncio

from datahall.serve.cache.asked import Asked
from datahall.serve.cache.kept import Kept


class Flight:
    """A call that is under way."""

    __slots__ = ("_is_over", "_kept", "asked", "is_left")

    def __init__(self, asked: Asked) -> None:
        self.asked = asked  # as its leader did
        self.is_left = False  # its leader has gone: the next call may well bring an answer
        self._kept: Kept | None = None
        self._is_over = asyncio.Event()

    def end(self, kept: Kept | None, is_left: bool = False) -> None:
        """Said by the leader: this is the answer; None where there is none."""
        if not self._is_over.is_set():
            self._kept = kept
            self.is_left = is_left
            self._is_over.set()

    async def whole(self) -> Kept | None:
        """The answer, once it is there; None where there is none for others: then each who waits asks for himself, or,
        where the leader has only left, the first of them leads the next."""
        await self._is_over.wait()
        return self._kept


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

    def land(self, flight: Flight, kept: Kept | None, is_left: bool = False) -> None:
        """The call is over; None: without an answer."""
        if self._flights.get(flight.asked.key) is flight:
            del self._flights[flight.asked.key]
        flight.end(kept, is_left)
