"""Who asks for the same at once is answered by one call."""

from __future__ import annotations

import asyncio

from tests.serve.cache.answers import STREAM, USAGE, asked

from datahall.serve.cache.flight import Flights
from datahall.serve.cache.kept import Kept, kept_stream

ASKED = asked()
KEPT = kept_stream("acme", "chat", USAGE, STREAM)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_one_leads_and_the_others_get_what_it_gets() -> None:
    async def run() -> None:
        flights = Flights()
        flight, leads = flights.join(ASKED)
        assert leads
        joined = [flights.join(ASKED) for _ in range(3)]
        assert all(one is flight and not leads for one, leads in joined)
        waiting = [asyncio.create_task(one.whole()) for one, _ in joined]
        await settled()
        assert not any(one.done() for one in waiting)
        flights.land(flight, KEPT)
        assert [await one for one in (*waiting, asyncio.create_task(flight.whole()))] == [KEPT] * 4
        assert flights.join(ASKED)[1]  # the next one leads anew

    asyncio.run(run())


def test_where_a_call_fails_the_first_who_waits_leads_the_next() -> None:
    async def run() -> None:
        flights = Flights()
        flight, _ = flights.join(ASKED)

        async def ask() -> tuple[bool, Kept | None]:
            found = await flights.join(ASKED)[0].whole()
            return flights.join(ASKED)[1], found

        waiting = [asyncio.create_task(ask()) for _ in range(3)]
        await settled()
        flights.land(flight, None)
        assert sorted([await one for one in waiting], key=str) == [(False, None), (False, None), (True, None)]

    asyncio.run(run())


def test_a_call_that_is_over_stays_as_it_ended() -> None:
    async def run() -> None:
        flights = Flights()
        flight, _ = flights.join(ASKED)
        flights.land(flight, KEPT)
        other, _ = flights.join(ASKED)
        flights.land(flight, None)
        assert await flight.whole() is KEPT
        assert flights.join(ASKED) == (other, False)

    asyncio.run(run())
