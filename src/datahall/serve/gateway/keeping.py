"""Answers that were given before: asked for on the way in, kept on the way out; one call for all who ask at once."""

from __future__ import annotations

import asyncio

from datahall.serve.cache.asked import Asked, asked_of, wish_of
from datahall.serve.cache.exact import Bounds, ExactCache
from datahall.serve.cache.flight import Flight, Flights
from datahall.serve.cache.kept import Kept, is_worth_keeping, kept_stream, kept_whole
from datahall.serve.gateway.question import Kind
from datahall.serve.gateway.refusing import Refused
from datahall.serve.ledger.money import Usage


class Answers:
    """The cache of a gateway, and the calls that are under way."""

    def __init__(self, bounds: Bounds) -> None:
        self.cache = ExactCache(bounds)
        self._flights = Flights()

    async def recall(
        self, tenant: str, model: str, kind: Kind, body: bytes, control: str, now_ns: int, latest_s: float
    ) -> tuple[Kept | None, Keeping | None]:
        """What was answered to the same, or is just being answered; else how to keep what will be."""
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
            if asked.streams:  # who streams wants to see pieces now, whoever else asks
                return None, Keeping(self, asked, kind, None)
            flight, is_first = self._flights.join(asked)
            if is_first:
                return None, Keeping(self, asked, kind, flight)
            try:
                async with asyncio.timeout_at(latest_s):
                    kept = await flight.whole()
            except TimeoutError:
                raise Refused(504, "the deadline has passed", "deadline_exceeded") from None
            if kept is not None or not flight.is_left:  # what cannot be kept is not waited for in turn
                return kept, Keeping(self, asked, kind, None)

    def land(self, flight: Flight, kept: Kept | None, is_left: bool) -> None:
        self._flights.land(flight, kept, is_left)


class Keeping:
    """How one answer is kept: what was asked, and what of a stream has come."""

    __slots__ = ("_answers", "_flight", "_kind", "_num_bytes", "_pieces", "asked")

    def __init__(self, answers: Answers, asked: Asked, kind: Kind, flight: Flight | None) -> None:
        self._answers = answers
        self._flight = flight  # that others wait for
        self._kind: Kind = kind
        self._pieces: list[bytes] = []
        self._num_bytes = 0
        self.asked = asked

    def given_again(self, kept: Kept) -> bytes:
        """A kept answer, as this one asks for it."""
        return self._answers.cache.answer(self.asked, kept)

    def add(self, piece: bytes) -> None:
        """A piece of a stream has been passed on."""
        self._num_bytes += len(piece)
        if self._num_bytes <= self._answers.cache.bounds.answer_bytes:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def keep_stream(self, usage: Usage, now_ns: int) -> None:
        """The stream has come to its end."""
        if self._pieces:
            kept = kept_stream(self.asked.tenant, self._kind, usage, b"".join(self._pieces))
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
