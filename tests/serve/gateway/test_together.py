"""Who streams the same at once hears one stream: whole, whoever leaves, and paid for once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import time_ns
from typing import Any

import pytest
from tests.serve.gateway.gateways import DONE, LAST, PRICE, STREAM, World, gateway, stream, whole
from tests.serve.http.talking import running, until

from datahall.serve.cache.exact import Bounds
from datahall.serve.http import Exchange, Failure, Response
from datahall.serve.ledger.folder import Folder
from datahall.serve.ledger.key import Limits
from datahall.serve.ledger.keys import create
from datahall.serve.ledger.money import Usage

COST = PRICE.cost_nano_usd(Usage(7, 0, 3))
ALL = b"".join((*STREAM, DONE))


class Upstream:
    """Says a stream event by event, each when it is let."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.num_gone = 0

    def say(self, *events: bytes) -> None:
        for one in events:
            self.events.put_nowait(one)

    def end(self) -> None:
        self.say(*STREAM[1:], LAST, DONE)
        self.events.put_nowait(None)

    async def __call__(self, exchange: Exchange) -> None:
        exchange.on_gone(self._leave)
        exchange.start(200)
        while (one := await self.events.get()) is not None:
            exchange.write(one)
        exchange.end()

    def _leave(self) -> None:
        self.num_gone += 1


@asynccontextmanager
async def two(upstream: Any, **more: Any) -> AsyncIterator[tuple[World, Response, Response]]:
    """Two clients in the middle of one stream: the one who asked first, and one who came when the first event had."""
    async with gateway(upstream, bounds=more.pop("bounds", Bounds()), **more) as world:
        upstream.say(STREAM[0])
        first = await world.ask(stream=True)
        assert await first.piece() == STREAM[0]
        second = await world.ask(stream=True)
        assert await second.piece() == STREAM[0]
        assert world.asked[0].num == 1
        assert second.headers["x-cache"] == "hit"
        yield world, first, second


@running
async def test_who_comes_late_hears_what_has_come_and_the_rest() -> None:
    upstream = Upstream()
    async with two(upstream) as (world, first, second):
        upstream.say(STREAM[1])
        assert await first.piece() == await second.piece() == STREAM[1]
        third = await world.ask(stream=True)
        upstream.events.put_nowait(STREAM[2] + LAST + DONE)
        upstream.events.put_nowait(None)
        assert await first.read() == await second.read() == STREAM[2] + DONE
        assert await third.read() == ALL
        await until(lambda: world.is_quiet)
        assert world.spent_nano_usd == COST
        assert sorted(told.result for told in world.ended) == ["answered", "cached", "cached"]
        assert [told.saved_nano_usd for told in world.ended if told.result == "cached"] == [COST, COST]
        again = await world.ask(stream=True)
        assert (await again.read(), world.asked[0].num) == (ALL, 1)


@running
async def test_who_asked_first_leaves_and_nobody_else_is_cut() -> None:
    upstream = Upstream()
    async with two(upstream) as (world, first, second):
        first.close()
        upstream.end()
        assert await second.read() == b"".join(STREAM[1:]) + DONE
        await until(lambda: world.is_quiet)
        assert (upstream.num_gone, world.spent_nano_usd) == (0, COST)
        assert sorted(told.result for told in world.ended) == ["answered", "cached"]


@running
async def test_who_came_late_leaves_and_nobody_else_is_cut() -> None:
    upstream = Upstream()
    async with two(upstream) as (world, first, second):
        second.close()
        await until(lambda: len(world.ended) == 1)
        upstream.end()
        assert await first.read() == b"".join(STREAM[1:]) + DONE
        await until(lambda: world.is_quiet)
        assert world.spent_nano_usd == COST
        assert [told.result for told in world.ended] == ["cancelled", "answered"]


@pytest.mark.parametrize("is_first_last", [True, False])
def test_when_all_have_left_the_upstream_is_told_and_what_came_is_paid(is_first_last: bool) -> None:
    @running
    async def work() -> None:
        upstream = Upstream()
        async with two(upstream) as (world, first, second):
            upstream.say(STREAM[1])
            assert await first.piece() == await second.piece() == STREAM[1]
            leaving = [second, first] if is_first_last else [first, second]
            for one in leaving:
                one.close()
                await asyncio.sleep(0.01)
            await until(lambda: upstream.num_gone == 1 and world.is_quiet)
            prompt = 2_000  # of a prompt of 74 bytes and two events, as the upstream has not said
            assert 0 < world.spent_nano_usd < 100 * prompt
            assert sorted(told.result for told in world.ended) == ["cancelled", "cancelled"]
            upstream.events = asyncio.Queue()
            upstream.say(STREAM[0])
            upstream.end()
            assert await (await world.ask(stream=True)).read() == ALL
            assert world.asked[0].num == 2

    work()


@running
async def test_a_stream_that_breaks_says_so_to_all() -> None:
    upstream = Upstream()
    async with two(upstream) as (world, first, second):
        upstream.events.put_nowait(None)  # before its end
        said = [await first.read(), await second.read()]
        assert said[0] == said[1]
        assert b"the answer broke off" in said[0]
        await until(lambda: world.is_quiet)
        assert [told.result for told in world.ended] == ["failed", "failed"]
        upstream.say(STREAM[0])
        upstream.end()
        assert await (await world.ask(stream=True)).read() == ALL


@running
async def test_who_waits_before_anything_has_come_leads_when_the_first_leaves() -> None:
    upstream = Upstream()
    async with gateway(upstream, bounds=Bounds()) as world:
        first = asyncio.ensure_future(world.ask(stream=True))
        await until(lambda: world.asked[0].num == 1)
        others = [asyncio.ensure_future(world.ask(stream=True)) for _ in range(3)]
        await until(
            lambda: world.gateway.answers is not None and world.gateway.answers.cache.counts.misses == 4
        )
        first.cancel()
        await until(lambda: world.asked[0].num == 2)
        upstream.say(STREAM[0])
        upstream.end()
        assert [await (await one).read() for one in others] == [ALL] * 3
        assert world.asked[0].num == 2
        await until(lambda: world.is_quiet)


@running
async def test_a_hundred_at_once_are_one_call_and_each_counts_as_a_request() -> None:
    async with gateway(stream, bounds=Bounds(), limits=Limits(requests_per_minute=100)) as world:
        answers = await asyncio.gather(*(world.ask(stream=True) for _ in range(100)))
        assert {await one.read() for one in answers} == {ALL}
        assert world.asked[0].num == 1
        assert (await world.ask(stream=True)).status == 429
        await until(lambda: world.is_quiet)
        assert world.spent_nano_usd == COST


@running
async def test_requests_at_once_are_bounded_among_those_that_hear_one_stream() -> None:
    upstream = Upstream()
    async with two(upstream, limits=Limits(parallel=2)) as (world, first, second):
        status, said = await world.say(stream=True)
        assert (status, "2 requests at once" in said["error"]["message"]) == (429, True)
        upstream.end()
        await first.read()
        await second.read()
        await until(lambda: world.is_quiet)


@running
async def test_other_manners_tenants_and_hurries_have_streams_of_their_own() -> None:
    upstream = Upstream()
    async with two(upstream) as (world, first, second):
        store = world.gateway.ledger._store
        folder = Folder(store.path.parent)
        _, other = create(store, folder.pepper(store), name="o", customer="other", now_ns=time_ns())
        world.gateway.ledger.reload(time_ns())
        usual: dict[str, Any] = {"stream": True}
        asking = [
            asyncio.ensure_future(world.ask(**asked))
            for asked in (
                {**usual, "stream_options": {"include_usage": True}},
                {**usual, "secret": other},
                {**usual, "headers": [("cache-control", "no-cache")]},
                {**usual, "temperature": 1},
            )
        ]
        await until(lambda: world.asked[0].num == 5)
        for one in asking:
            one.cancel()
        upstream.num_gone = 0
        await asyncio.sleep(0)
        first.close()
        second.close()
        await until(lambda: world.is_quiet)


@running
async def test_who_is_in_a_hurry_hears_and_does_not_lead() -> None:
    upstreams = [Upstream(), Upstream()]
    left = iter(upstreams)

    async def each(exchange: Exchange) -> None:
        await next(left)(exchange)

    async with gateway(each, bounds=Bounds()) as world:
        for one in upstreams:
            one.say(STREAM[0])
        hurried = await world.ask(stream=True, headers=[("x-request-timeout", "300")])
        patient = await world.ask(stream=True)
        assert world.asked[0].num == 2
        late = await world.ask(stream=True, headers=[("x-request-timeout", "0.2")])
        assert world.asked[0].num == 2
        with suppress(Failure):  # or a 504, where nothing had come within the time
            assert b"deadline" in await late.read()
        for one in upstreams:
            one.end()
        assert await patient.read() == await hurried.read() == ALL
        await until(lambda: world.is_quiet)


@running
async def test_a_stream_that_is_too_long_to_be_kept_is_heard_to_its_end_and_joined_no_more() -> None:
    upstream = Upstream()
    async with two(upstream, bounds=Bounds(answer_bytes=2 * len(STREAM[0]) + 10)) as (world, first, second):
        for _ in range(4):
            upstream.say(STREAM[1])
            assert await first.piece() == await second.piece() == STREAM[1]
        alone = asyncio.ensure_future(world.ask(stream=True))
        await until(lambda: world.asked[0].num == 2)
        alone.cancel()
        first.close()
        second.close()
        await until(lambda: world.is_quiet)


@running
async def test_who_does_not_read_holds_up_nobody_and_is_cut_at_a_bound() -> None:
    upstream, piece = Upstream(), STREAM[1][:-2] + b" " * 60_000 + b"\n\n"
    async with two(upstream, bounds=Bounds(answer_bytes=400_000)) as (world, first, second):
        heard = 0
        for number in range(300):  # 18 MB: more than sockets take, for either who does not read
            upstream.say(piece)
            while heard < (number + 1) * len(piece):
                heard += len(await second.piece())
        upstream.end()
        assert (await second.read()).endswith(DONE)
        with pytest.raises(Failure):
            await first.read()
        await until(lambda: world.is_quiet)
        assert sorted(told.result for told in world.ended) == ["answered", "cached"]


@running
async def test_an_answer_that_comes_whole_is_given_to_all_who_asked_for_a_stream() -> None:
    async with gateway(whole, bounds=Bounds()) as world:
        answers = await asyncio.gather(*(world.ask(stream=True) for _ in range(3)))
        bodies = [await one.read() for one in answers]
        assert world.asked[0].num == 1
        assert all(b"Hi" in body for body in bodies)
        await until(lambda: world.is_quiet)
