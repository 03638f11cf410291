"""No client takes more than its share: sizes and times are bounded before a handler sees anything."""

from __future__ import annotations

import asyncio
import resource
import socket

import pytest
from tests.serve.http.talking import echo, running, said, serving, until

from datahall.serve.http import Exchange, Request, Server, run, serve
from datahall.serve.http.limits import KEPT_DESCRIPTORS, PER_CONNECTION, most_connections

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
TOO_MUCH = {
    "one header": (431, HEAD + b"Y: " + b"x" * 3000 + b"\r\n\r\n"),
    "a header without an end": (431, HEAD + b"X: " + b"x" * 5000),
    "a head in one piece": (431, HEAD + b"X: " + b"x" * 3000 + b"\r\n\r\n"),
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
            size = len(sent) if sent == TOO_MUCH["a head in one piece"][1] else 500
            parts = [sent[place : place + size] for place in range(0, len(sent), size)]
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


async def connected(server: Server, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client that has come, and said something."""
    before = server.num_connections
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    await until(lambda: server.num_connections > before)
    return reader, writer


GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


@running
async def test_connections_beyond_the_most_are_told_so_while_all_are_busy() -> None:
    asked: list[Exchange] = []
    async with serving(asked.append, num_connections=1) as server:
        reader, first = await connected(server, GET)
        await until(lambda: len(asked) == 1)
        assert (await said(server)).startswith(b"HTTP/1.1 503 ")
        asked[0].send(200, b"whole")
        async with asyncio.timeout(5):
            assert await reader.readuntil(b"whole")
        first.close()


@running
async def test_who_has_said_nothing_for_longest_gives_way_to_who_comes() -> None:
    async with serving(num_connections=2) as server:
        reader, silent = await connected(server, b"GET / HT")
        _, asks = await connected(server)
        asks.write(GET)
        async with asyncio.timeout(5):
            assert await said(server, GET, until=b"GET / ")
            assert await reader.read() == b""
        asks.write(GET)
        for writer in (silent, asks):
            writer.close()


@running
async def test_who_has_asked_nothing_yet_has_the_time_of_a_head_to_do_so() -> None:
    async with serving(head_s=0.05, idle_s=60.0) as server:
        reader, writer = await connected(server)
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()


def test_connections_leave_descriptors_for_upstreams_and_books(monkeypatch: pytest.MonkeyPatch) -> None:
    had: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: had.append(new))
    assert most_connections(10_000) == (4096 - KEPT_DESCRIPTORS) // PER_CONNECTION
    assert most_connections(1500) == 1500
    assert most_connections(100) == 100
    assert had == [(4096, 4096), (1500 * PER_CONNECTION + KEPT_DESCRIPTORS, 4096)]


@running
async def test_all_that_has_not_come_whole_is_bounded_together() -> None:
    part = HEAD + b"Content-Length: 900\r\n\r\n" + b"x" * 600
    async with serving(gathered_bytes=1000, body_bytes=1000) as server:
        reader, first = await connected(server, part)
        await until(lambda: server._gathered_bytes == 600)
        assert (await said(server, part)).startswith(b"HTTP/1.1 503 ")
        assert await said(server, GET, until=b"GET / ")  # what comes whole is not among it
        first.write(b"x" * 300)
        async with asyncio.timeout(5):
            assert await reader.readuntil(b"POST / ")
        first.close()
        await until(lambda: server.num_connections == 0)
        assert server._gathered_bytes == 0


@pytest.mark.parametrize("framing", [b"Content-Length: 900\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
def test_a_body_that_the_door_does_not_let_in_is_not_waited_for(framing: bytes) -> None:
    seen: list[str] = []

    def door(head: Request) -> bool:
        seen.append(head.header("x-key"))
        return head.header("x-key") == "good"

    async def work() -> None:
        server = await serve(echo, door=door)
        try:
            answer = await said(server, HEAD + b"X-Key: bad\r\n" + framing)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert answer.endswith(b"POST /  ")
            assert b"connection: close" in answer
            body = b"ab" if framing.startswith(b"C") else b"2\r\nab\r\n0\r\n\r\n"
            good = HEAD + b"X-Key: good\r\n" + framing.replace(b"900", b"2")
            assert await said(server, good + body[:1], body[1:], until=b"POST /  ab")
        finally:
            await server.close()
        assert seen[:1] == ["bad"]

    run(work())


LATER = b"POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n" + b"x" * 30000


@pytest.mark.parametrize("num_later", [1, 2, 40])
def test_a_client_that_leaves_is_seen_to_leave_whatever_it_has_asked_ahead(num_later: int) -> None:
    asked: list[Exchange] = []

    async def work() -> None:
        async with serving(asked.append) as server:
            reader, writer = await connected(server, GET)
            await until(lambda: len(asked) == 1)
            writer.write(LATER * num_later)
            await writer.drain()
            assert not asked[0].is_gone
            writer.close()
            await until(lambda: asked[0].is_gone)
            assert len(asked) == 1
            del reader

    run(work())


@running
async def test_who_asks_for_too_much_before_he_is_answered_is_answered_to_a_part_of_it() -> None:
    asked: list[Exchange] = []

    def answer(exchange: Exchange) -> None:
        asked.append(exchange)
        if len(asked) > 1:
            exchange.send(200, b"later")

    async with serving(answer) as server:
        reader, writer = await connected(server, GET)
        await until(lambda: len(asked) == 1)
        writer.write(LATER * 40)
        await until(lambda: all(connection._is_deaf for connection in server._connections))
        asked[0].send(200, b"first")
        async with asyncio.timeout(5):
            said_back = await reader.read()
        assert 1 < said_back.count(b"HTTP/1.1 200 ") == len(asked) < 40
        assert said_back.count(b"connection: close") == 1
        writer.close()


@running
async def test_half_a_body_gives_way_to_who_comes_and_the_oldest_first() -> None:
    async with serving(num_connections=2) as server:
        halves = []
        for _ in range(2):
            halves.append(await asyncio.open_connection("127.0.0.1", server.port))
            halves[-1][1].write(HEAD + b"Content-Length: 9\r\n\r\nhalf")
            await until(lambda: len(server.halves) == len(halves))
        assert (await said(server, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).startswith(
            b"HTTP/1.1 200 "
        )
        async with asyncio.timeout(5):
            assert (await halves[0][0].read()).startswith(b"HTTP/1.1 503 ")
        halves[1][1].write(b"whole")
        async with asyncio.timeout(5):
            assert (await halves[1][0].readuntil(b"whole")).startswith(b"HTTP/1.1 200 ")
        for _, writer in halves:
            writer.close()


@running
async def test_who_finds_no_room_reads_so_though_he_has_sent_a_request() -> None:
    held = asyncio.Event()

    async def hold(exchange: Exchange) -> None:
        await held.wait()
        exchange.send(200)

    async with serving(hold, num_connections=1) as server:
        _, busy = await asyncio.open_connection("127.0.0.1", server.port)
        busy.write(HEAD + b"Content-Length: 0\r\n\r\n")
        await until(lambda: not server.awaited)
        refused: list[int] = []
        server.tell = lambda refusal, _: refused.append(refusal.status)
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
            client.sendall(HEAD + b"Content-Length: 4000\r\n\r\n")  # before the server looks
            await until(lambda: bool(refused))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            for _ in range(4):
                client.sendall(b"x" * 1000)
            assert client.recv(4096).startswith(b"HTTP/1.1 503 ")
        held.set()
        busy.close()


@running
async def test_what_is_refused_before_it_is_a_request_is_told_with_whose_it_was() -> None:
    told: list[tuple[int, str]] = []
    async with serving() as server:
        server.tell = lambda refused, peer: told.append((refused.status, peer))
        await said(server, b"GET / HTTP/1.1\r\n\r\n")
    assert told == [(400, "127.0.0.1")]
