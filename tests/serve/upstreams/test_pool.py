"""Requests wait in one bounded line for room, by priority and in order; a place given is used or passed on."""

from __future__ import annotations

import asyncio
from random import Random
from time import sleep

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.http.talking import running
from tests.serve.upstreams.test_routing import nobody

from datahall.serve.http import run
from datahall.serve.upstreams.pool import NoTarget, Pool
from datahall.serve.upstreams.reach import Inside
from datahall.serve.upstreams.routing import RULES, Hint, Target
from datahall.serve.upstreams.upstream import Upstream

HIGH, NORMAL, LOW = range(3)


def pool(*most: int, waiting: int = 10) -> Pool:
    upstreams = [Upstream(f"u{place}", Inside(nobody), Random(1), most=one) for place, one in enumerate(most)]
    return Pool("m", [Target(one, "m") for one in upstreams], RULES["least-outstanding"], waiting)


async def take(
    line: Pool, priority: int = NORMAL, wait_s: float = 5.0, tried: tuple[Target, ...] = ()
) -> Target:
    return await line.take(Hint(), tried, priority, wait_s, asyncio.get_running_loop().time())


@running
async def test_room_is_given_at_once_and_then_in_the_order_of_priority_and_coming() -> None:
    line, order = pool(1), []

    async def ask(name: str, priority: int) -> None:
        target = await take(line, priority)
        order.append(name)
        target.upstream.end()

    first = await take(line)
    asked = []
    for name, priority in (("a", LOW), ("b", NORMAL), ("c", HIGH), ("d", NORMAL)):
        asked.append(asyncio.ensure_future(ask(name, priority)))
        await asyncio.sleep(0)
    first.upstream.end()
    await asyncio.gather(*asked)
    assert order == ["c", "b", "d", "a"]
    assert (line.num_waiting, first.upstream.num_open) == (0, 0)


@running
async def test_a_full_line_sheds_the_least_or_refuses() -> None:
    line = pool(1, waiting=2)
    first = await take(line)
    low, normal = (asyncio.ensure_future(take(line, one)) for one in (LOW, NORMAL))
    await asyncio.sleep(0)
    with pytest.raises(NoTarget, match="2 requests wait"):
        await take(line, LOW)
    high = asyncio.ensure_future(take(line, HIGH))
    with pytest.raises(NoTarget, match="gave way"):
        await low
    first.upstream.end()
    (await high).upstream.end()
    (await normal).upstream.end()
    assert line.num_waiting == 0


@running
async def test_a_wait_ends_and_leaves_nothing_behind() -> None:
    line = pool(1)
    first = await take(line)
    with pytest.raises(NoTarget, match="no upstream of m had room"):
        await take(line, wait_s=0.01)
    leaving = asyncio.ensure_future(take(line))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert line.num_waiting == 0
    first.upstream.end()
    assert first.upstream.num_open == 0


@running
async def test_a_place_given_to_who_is_just_leaving_is_passed_on() -> None:
    line = pool(1)
    first = await take(line)
    leaving, staying = asyncio.ensure_future(take(line)), asyncio.ensure_future(take(line))
    await asyncio.sleep(0)
    first.upstream.end()
    leaving.cancel()
    assert (await staying).upstream.num_open == 1


@running
async def test_a_place_given_in_the_turn_in_which_the_wait_ends_is_taken() -> None:
    line = pool(1)
    first = await take(line)
    asyncio.get_running_loop().call_later(0.1, first.upstream.end)
    waiting = asyncio.ensure_future(take(line, wait_s=0.2))
    await asyncio.sleep(0)
    sleep(0.3)  # when the loop goes on both are due, in this order
    (await waiting).upstream.end()
    assert (first.upstream.num_open, line.num_waiting) == (0, 0)


@running
async def test_a_trial_given_to_who_is_just_leaving_is_left_to_another() -> None:
    line = pool(1)
    upstream = line.targets[0].upstream
    first = await take(line)
    leaving = asyncio.ensure_future(take(line))
    await asyncio.sleep(0)
    upstream.breaker._open_s = 1.0  # half open: one request tries, and its outcome decides
    first.upstream.end()
    assert not upstream.is_ready(asyncio.get_running_loop().time())
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert (upstream.num_open, upstream.is_ready(asyncio.get_running_loop().time())) == (0, True)


@running
async def test_nobody_waits_for_upstreams_that_cannot_be_asked() -> None:
    line = pool(1)
    upstream = line.targets[0].upstream
    upstream.asked_for_time(asyncio.get_running_loop().time(), 7.0)
    with pytest.raises(NoTarget, match="can be asked now") as refused:
        await take(line)
    assert 6.0 < refused.value.wait_s <= 7.0
    with pytest.raises(NoTarget, match="was tried"):
        await take(line, tried=line.targets)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(["ask", "end", "leave"]), max_size=60), st.integers(1, 3))
def test_there_are_never_more_than_the_most_and_none_is_forgotten(steps: list[str], most: int) -> None:
    async def work() -> None:
        line = pool(most, waiting=1000)
        upstream = line.targets[0].upstream
        asked: list[asyncio.Future[Target]] = []
        for step in steps:
            if step == "ask":
                asked.append(asyncio.ensure_future(take(line)))
            elif asked and step == "leave":
                leaving = asked.pop()
                if leaving.done():
                    leaving.result().upstream.end()
                leaving.cancel()
            else:
                ready = next((one for one in asked if one.done()), None)
                if ready is not None:
                    asked.remove(ready)
                    ready.result().upstream.end()
            await asyncio.sleep(0)
            assert upstream.num_open <= most
        for _ in range(len(asked)):
            await asyncio.sleep(0)
            ready = next(one for one in asked if one.done())
            asked.remove(ready)
            ready.result().upstream.end()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (upstream.num_open, line.num_waiting) == (0, 0)

    run(work())
