"""No client takes more than its share: sizes and times are bounded before a handler sees anything."""

from __future__ import annotations

import asyncio

import pytest
from tests.serve.http.talking import running, said, serving, until

from datahall.serve.http import Exchange, run

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
TOO_MUCH = {
    "one header": (431, HEAD + b"X: " + b"x" * 3000 + b"\r\n\r\n"),
    "a header without an end": (431, HEAD + b"X: " + b"x" * 5000),
    "headers": (431, HEAD + b"".join(b"X-%d: y\r\n" % number for number in range(30)) + b"\r\n"),
    "a path": (431, b"GET /" + b"x" * 5000),
    "a length": (413, HEAD + b"Content-Length: 1001\r\n\r\n"),
    "chunks": (413, HEAD + b"Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n"),
    "trailers": (413, HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 5000),
}


@pytest.mark.parametrize(("status", "sent"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_is_too_much_is_refused(status: int, sent: bytes) -> None:
    async def work() -> None:
        async with serving(head_bytes=2000, num_headers=20, body_bytes=1000) as server:
            parts = [sent[place : place + 500] for place in range(0, len(sent), 500)]
            assert (await said(server, *parts)).startswith(b"HTTP/1.1 %d " % status)

    run(work())


@pytest.mark.parametrize(
    ("sent", "answer", "limit"),
    [
        (b"", b"", "idle_s"),
        (b"POST / HT", b"HTTP/1.1 408 ", "head_s"),
        (HEAD + b"Content-Length: 9\r\n\r\nslow", b"HTTP/1.1 408 ", "body_s"),
    ],
)
def test_a_request_that_takes_too_long_to_come_is_given_up(sent: bytes, answer: bytes, limit: str) -> None:
    async def work() -> None:
        async with serving(**{limit: 0.05}) as server:
            assert (await said(server, sent)).startswith(answer)
            await until(lambda: server.num_connections == 0)

    run(work())


@running
async def test_a_client_that_sends_a_byte_now_and_then_gains_no_time() -> None:
    async with serving(head_s=0.1) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET / HTTP/1.1\r\n")

        async def dribble() -> None:
            while True:
                writer.write(b"X: y\r\n")
                await asyncio.sleep(0.01)

        dribbling = asyncio.ensure_future(dribble())
        async with asyncio.timeout(5):
            assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        dribbling.cancel()
        writer.close()


@running
async def test_a_client_that_does_not_read_is_left() -> None:
    async def pour(exchange: Exchange) -> None:
        exchange.start(200)
        while True:
            exchange.write(b"x" * 65536)
            await exchange.drain()

    async with serving(pour, write_s=0.1) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await until(lambda: server.num_connections == 1)
        await until(lambda: server.num_connections == 0)
        writer.close()
        del reader


@running
async def test_connections_beyond_the_most_are_told_so() -> None:
    async with serving(num_connections=1) as server:
        _, first = await asyncio.open_connection("127.0.0.1", server.port)
        await until(lambda: server.num_connections == 1)
        assert (await said(server)).startswith(b"HTTP/1.1 503 ")
        first.close()
        await until(lambda: server.num_connections == 0)
        assert await said(server, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", until=b"GET / ")
