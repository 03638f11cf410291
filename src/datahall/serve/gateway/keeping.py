"""Answers that were given before: asked for on the way in, kept on the way out; one call for all who ask at once."""

from __future__ import annotations

import asyncio

from datahall.serve.cache.asked import Asked, asked_of, wish_of
from datahall.serve.cache.exact import Bounds, ExactCache
from datahall.serve.cache.flight import Flight, Flights
from datahall.serve.cache.kept import Kept, is_worth_keeping, kept_stream, kept_whole
from datahall.serve.cache.shared import Shared
from datahall.serve.gateway.question import Kind
from datahall.serve.gateway.refusing import Refused
from datahall.serve.ledger.money import Usage


class Answers:
    """The cache of a gateway, and the calls that are under way."""

    def __init__(self, bounds: Bounds) -> None:
        self.cache = ExactCache(bounds)
        self._flights = Flights()

    async def recall(
        self,
        tenant: str,
        model: str,
        kind: Kind,
        body: bytes,
        control: str,
        now_ns: int,
        latest_s: float,
        *,
        leads: bool,
    ) -> tuple[Kept | Shared | None, Keeping | None]:
        """What was answered to the same, or is just being answered; else how to keep what will be.

        Who is in more of a hurry than others may be leads no stream, which would end for all when his time is over.
        """
        wish = wish_of(control)
        asked = asked_of(tenant, model, kind, body) if wish.reads or wish.writes else None
        if asked is None:
            return None, None
        if not wish.reads:
            return None, Keeping(self, asked, kind, None)
        while True:
            kept = self.cache.get(asked, now_ns)
            if kept is not None and self.cache.can_answer(asked, kept):
                return kept, Keeping(self, asked, kind, None)
            if asked.streams and not leads and not self._flights.has(asked):
                return None, Keeping(self, asked, kind, None)
            flight, is_first = self._flights.join(asked)
            if is_first:
                return None, Keeping(self, asked, kind, flight)
            try:
                async with asyncio.timeout_at(latest_s):
                    kept = await flight.whole()
            except TimeoutError:
                raise Refused(504, "the deadline has passed", "deadline_exceeded") from None
            stream = flight.stream
            if stream is not None:
                if stream.is_joinable:
                    return stream, Keeping(self, asked, kind, None)
                if stream.is_over and stream.usage is None:  # before this one heard any of it
                    continue
                return None, Keeping(self, asked, kind, None)
            if kept is not None or not flight.is_left:  # what cannot be kept is not waited for in turn
                return kept, Keeping(self, asked, kind, None)

    def land(self, flight: Flight, kept: Kept | None, is_left: bool) -> None:
        self._flights.land(flight, kept, is_left)


class Keeping:
    """How one answer is kept: what was asked, and what of a stream has come."""

    __slots__ = ("_answers", "_flight", "_kind", "asked", "stream")

    def __init__(self, answers: Answers, asked: Asked, kind: Kind, flight: Flight | None) -> None:
        self._answers = answers
        self._flight = flight  # that others wait for
        self._kind: Kind = kind
        self.stream: Shared | None = None
        self.asked = asked

    def begin(self) -> Shared:
        """The answer comes as a stream, which others may hear from now on."""
        self.stream = Shared(self._answers.cache.bounds.answer_bytes)
        if self._flight is not None:
            self._flight.begin(self.stream)
        return self.stream

    def given_again(self, kept: Kept) -> bytes:
        """A kept answer, as this one asks for it."""
        return self._answers.cache.answer(self.asked, kept)

    def keep_stream(self, usage: Usage, now_ns: int) -> None:
        """The stream has come to its end."""
        if self.stream is not None and self.stream.pieces:
            kept = kept_stream(self.asked.tenant, self._kind, usage, b"".join(self.stream.pieces))
            if kept is not None:
                self._answers.cache.put(self.asked, kept, now_ns)

    def keep_whole(self, usage: Usage, body: bytes, now_ns: int) -> None:
        """The answer has come."""
        if not is_worth_keeping(body):
            return
        kept = kept_whole(self.asked.tenant, self._kind, usage, body)
        self._answers.cache.put(self.asked, kept, now_ns)
        self._land(kept)

    def end(self, is_left: bool) -> None:
        """Nothing more comes; who waits asks for himself, one for all where the client has only left."""
        self._land(None, is_left)

    def _land(self, kept: Kept | None, is_left: bool = False) -> None:
        flight, self._flight = self._flight, None
        if flight is not None:
            self._answers.land(flight, kept, is_left)
