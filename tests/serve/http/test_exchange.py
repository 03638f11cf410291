"""A handler answers whole or in pieces, hears when its client leaves, and what it gets wrong stays its own."""

from __future__ import annotations

import asyncio
import gc

import pytest
from tests.serve.http.talking import running, said, serving, until

from datahall.serve.http import Exchange, run

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


async def stream(exchange: Exchange) -> None:
    exchange.start(200, [("x-model", "m")])
    for piece in (b"data: 1\n\n", b"data: 2\n\n"):
        exchange.write(piece)
        await exchange.drain()
    exchange.end()


@running
async def test_an_answer_in_pieces_is_chunked() -> None:
    async with serving(stream) as server:
        answer = await said(server, GET, until=b"0\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head
    assert b"x-model: m" in head
    assert body == b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"


@running
async def test_an_old_client_gets_pieces_until_the_connection_closes() -> None:
    async with serving(stream) as server:
        answer = await said(server, b"GET / HTTP/1.0\r\n\r\n")
    assert answer.endswith(b"\r\n\r\ndata: 1\n\ndata: 2\n\n")
    assert b"chunked" not in answer


@running
async def test_who_asks_for_the_head_gets_no_body() -> None:
    async with serving() as server:
        answer = await said(server, b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert answer.endswith(b"\r\n\r\n")
    assert b"content-length: 8" in answer


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_handler_is_cancelled_as_soon_as_its_client_leaves(has_begun: bool) -> None:
    seen: list[str] = []

    async def wait(exchange: Exchange) -> None:
        exchange.on_gone(lambda: seen.append("told"))
        if has_begun:
            exchange.start(200)
        try:
            await exchange.gone.wait()
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def work() -> None:
        async with serving(wait) as server:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(GET)
            await until(lambda: server.num_connections == 1)
            writer.close()
            await until(lambda: seen == ["told", "cancelled"])

    run(work())


@running
async def test_who_left_before_hears_it_at_once() -> None:
    left = Exchange(None)  # type: ignore[arg-type]
    left.leave()
    heard: list[int] = []
    left.on_gone(lambda: heard.append(1))
    assert heard == [1]
    assert left.gone.is_set()


def wrong(exchange: Exchange) -> None:
    raise LookupError(exchange.request.path)


async def wrong_later(exchange: Exchange) -> None:
    wrong(exchange)


async def silent(exchange: Exchange) -> None:
    del exchange


async def wrong_within(exchange: Exchange) -> None:
    exchange.start(200)
    exchange.write(b"half")
    wrong(exchange)


@pytest.mark.parametrize("handler", [wrong, wrong_later, silent])
def test_a_mistake_of_a_handler_is_answered_and_reported(handler: object) -> None:
    async def work() -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: reported.append(what["exception"]))
        async with serving(handler) as server:  # type: ignore[arg-type]
            answer = await said(server, GET + GET, until=b"}}")
            assert b"HTTP/1.1 500 " in answer
            assert b"LookupError" not in answer
            await until(lambda: len(reported) == 2)

    run(work())


@running
async def test_an_answer_that_fails_within_is_broken_off() -> None:
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    async with serving(wrong_within) as server:
        answer = await said(server, GET)
        assert not answer.endswith(b"0\r\n\r\n")
        await until(lambda: server.num_connections == 0)


@running
async def test_an_answer_cannot_be_given_twice_nor_hold_a_header_of_two_lines() -> None:
    def twice(exchange: Exchange) -> None:
        exchange.send(200)
        with pytest.raises(RuntimeError):
            exchange.send(200)

    def split(exchange: Exchange) -> None:
        exchange.send(200, headers=[("x-model", "m\r\nset-cookie: a")])

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    async with serving(twice) as server:
        assert await said(server, GET, until=b"\r\n\r\n")
    async with serving(split) as server:
        assert b"set-cookie" not in await said(server, GET)


@pytest.mark.parametrize("grace_s", [5.0, 0.0])
def test_a_server_that_closes_lets_answers_end_within_its_grace(grace_s: float) -> None:
    async def work() -> None:
        may_end, has_begun = asyncio.Event(), asyncio.Event()

        async def wait(exchange: Exchange) -> None:
            exchange.start(200)
            has_begun.set()
            await may_end.wait()
            exchange.write(b"done")
            exchange.end()

        async with serving(wait) as server:
            _, idle = await asyncio.open_connection("127.0.0.1", server.port)
            asking = asyncio.ensure_future(said(server, GET))
            await until(lambda: server.num_connections == 2)
            await has_begun.wait()
            closing = asyncio.ensure_future(server.close(grace_s))
            await until(lambda: server.num_connections <= 1)
            may_end.set()
            assert await closing is (grace_s > 0)
            assert (b"done" in await asking) is (grace_s > 0)
            idle.close()

    run(work())


@running
async def test_nothing_is_left_of_connections_that_are_gone() -> None:
    async with serving() as server:
        for _ in range(50):
            await said(server, GET, until=b"GET / ")
        await until(lambda: server.num_connections == 0)
        gc.collect()
        gc.disable()
        try:
            before = len(gc.get_objects())
            for _ in range(50):
                await said(server, GET, until=b"GET / ")
            await until(lambda: server.num_connections == 0)
            assert len(gc.get_objects()) - before < 50 * 10
        finally:
            gc.enable()
