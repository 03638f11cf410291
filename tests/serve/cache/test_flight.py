"""Who asks for the same at once is answered by one call."""

from __future__ import annotations

import asyncio

from tests.serve.cache.answers import STREAM, USAGE, asked

from datahall.serve.cache.flight import Flight, Flights
from datahall.serve.cache.kept import Kept, kept_stream

STREAMING = asked(stream=True)


async def read(flight: Flight) -> list[bytes]:
    return [piece async for piece in flight.live()]


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_one_leads_and_the_others_follow_what_comes() -> None:
    async def run() -> None:
        flights = Flights()
        flight, leads = flights.join(STREAMING)
        assert leads
        flight.write(b"a")
        joined = [flights.join(STREAMING) for _ in range(3)]
        assert all(one is flight and not leads for one, leads in joined)
        readers = [asyncio.create_task(read(one)) for one, _ in joined]
        waiting = asyncio.create_task(flights.join(asked())[0].whole())
        await settled()
        assert flight.followers == 4
        flight.write(b"b")
        flight.write(b"c")
        await settled()
        late = asyncio.create_task(read(flight))
        kept = kept_stream("acme", "chat", USAGE, STREAM)
        flights.land(flight, kept)
        assert [b"".join(await one) for one in (*readers, late)] == [b"abc"] * 4
        assert await waiting is kept
        assert flight.followers == 0
        assert flights.join(STREAMING)[1]  # the next one leads anew

    asyncio.run(run())


def test_where_a_call_fails_the_first_who_waits_leads_the_next() -> None:
    async def run() -> None:
        flights = Flights()
        flight, _ = flights.join(STREAMING)

        async def ask() -> tuple[bool, Kept | None]:
            found = await flights.join(STREAMING)[0].whole()
            return flights.join(STREAMING)[1], found

        waiting = [asyncio.create_task(ask()) for _ in range(3)]
        await settled()
        flights.land(flight, None)
        assert sorted([await one for one in waiting], key=str) == [(False, None), (False, None), (True, None)]

    asyncio.run(run())


def test_a_follower_that_leaves_is_not_waited_for() -> None:
    async def run() -> None:
        flights = Flights()
        flight, _ = flights.join(STREAMING)
        waiting = asyncio.create_task(flight.whole())
        await settled()
        assert flight.followers == 1
        waiting.cancel()
        await settled()
        assert flight.followers == 0

    asyncio.run(run())


def test_pieces_are_for_those_who_asked_in_the_same_manner() -> None:
    flight = Flight(STREAMING)
    assert flight.is_alike(asked(stream=True))
    assert not flight.is_alike(asked())
    assert not flight.is_alike(asked(stream=True, stream_options={"include_usage": True}))
