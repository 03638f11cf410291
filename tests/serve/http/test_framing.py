"""A request has one meaning, or none: what two readers might read differently is refused and the connection closed."""

from __future__ import annotations

import pytest
from tests.serve.http.talking import running, said, serving

from datahall.serve.http import Request, run

POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

REFUSED = {
    "length and chunks": (400, POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "chunks and length": (400, POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
    "two lengths": (400, POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
    "a length twice": (400, POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na"),
    "a list of lengths": (400, POST + b"Content-Length: 1, 1\r\n\r\na"),
    "a signed length": (400, POST + b"Content-Length: +1\r\n\r\na"),
    "a length beyond 64 bits": (400, POST + b"Content-Length: 99999999999999999999999\r\n\r\n"),
    "another coding": (501, POST + b"Transfer-Encoding: gzip\r\n\r\n"),
    "a coding before chunks": (501, POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    "chunks twice": (
        400,
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    "a hidden coding": (400, POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"),
    "chunks in HTTP/1.0": (400, CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n"),
    "a bare line feed": (400, b"GET / HTTP/1.1\nHost: a\n\n"),
    "a bare line feed in headers": (400, b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"),
    "a bare carriage return": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"),
    "a folded line": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"),
    "a space before a colon": (400, POST + b"Content-Length : 1\r\n\r\na"),
    "a tab before a colon": (400, POST + b"Content-Length\t: 1\r\n\r\na"),
    "a header without a name": (400, b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"),
    "a null": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"),
    "no host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "two hosts": (400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    "two keys": (400, b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n"),
    "HTTP/0.9": (505, b"GET /\r\n\r\n"),
    "HTTP/2": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "HTTP/3": (400, b"GET / HTTP/3.0\r\nHost: a\r\n\r\n"),
    "a tunnel": (400, b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"),
    "no method": (501, b"NOTHING / HTTP/1.1\r\nHost: a\r\n\r\n"),
    "no path": (400, b"GET x HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a chunk of hexadecimal with 0x": (400, CHUNKED + b"0x1\r\na\r\n0\r\n\r\n"),
    "a negative chunk": (400, CHUNKED + b"-1\r\na\r\n0\r\n\r\n"),
    "a chunk and a space": (400, CHUNKED + b"1 \r\na\r\n0\r\n\r\n"),
    "a chunk without its end": (400, CHUNKED + b"1\r\na0\r\n\r\n"),
    "a line feed in an extension": (400, CHUNKED + b"1;a\nb\r\na\r\n0\r\n\r\n"),
    "TLS": (501, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
}


@pytest.mark.parametrize(("status", "sent"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("at_once", [True, False])
def test_what_is_ambiguous_is_refused_and_the_connection_closed(
    status: int, sent: bytes, at_once: bool
) -> None:
    asked: list[Request] = []

    async def work() -> None:
        async with serving(lambda exchange: asked.append(exchange.request)) as server:
            parts = [sent] if at_once else [sent[place : place + 1] for place in range(len(sent))]
            smuggled = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
            answer = await said(server, *parts, smuggled)
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert b"connection: close" in answer
        assert answer.count(b"HTTP/1.1 ") == 1
        assert not asked

    run(work())


@running
async def test_a_body_comes_by_length_or_in_chunks() -> None:
    async with serving() as server:
        by_length = await said(server, POST + b"Content-Length: 2\r\n\r\nab", until=b"ab")
        in_chunks = await said(
            server, CHUNKED + b"1;x=y\r\na\r\n1\r\nb\r\n0\r\nTrailer: t\r\n\r\n", until=b"ab"
        )
    assert by_length.endswith(b"POST /  ab")
    assert in_chunks.endswith(b"POST /  ab")


@running
async def test_requests_that_come_together_are_answered_in_their_order() -> None:
    many = b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number for number in range(500))
    async with serving() as server:
        answer = await said(server, many + b"GET /last?q HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    paths = [line.split()[1] for line in answer.split(b"\r\n") if b"GET /" in line]
    assert [path.split(b"HTTP")[0] for path in paths] == [b"/%d" % number for number in range(500)] + [
        b"/last"
    ]


@running
async def test_what_is_wrong_after_a_request_is_said_after_its_answer() -> None:
    async with serving() as server:
        answer = await said(server, b"GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET /second\n\n")
    first, _, second = answer.partition(b"/first")
    assert first.startswith(b"HTTP/1.1 200")
    assert second.partition(b"HTTP")[2].startswith(b"/1.1 400")


@pytest.mark.parametrize(
    ("head", "is_kept"),
    [
        (b"HTTP/1.1\r\nHost: a", True),
        (b"HTTP/1.1\r\nHost: a\r\nConnection: close", False),
        (b"HTTP/1.0", False),
    ],
)
def test_a_connection_is_kept_as_its_client_asks(head: bytes, is_kept: bool) -> None:
    async def work() -> None:
        async with serving() as server:
            answer = await said(server, b"GET / " + head + b"\r\n\r\n", until=b"GET / ")
        assert (b"connection: close" in answer) is not is_kept

    run(work())


UPGRADE = b"Connection: keep-alive, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    "sent",
    [
        POST + UPGRADE + b"Content-Length: 2\r\n\r\nab",
        POST + UPGRADE + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    ],
)
def test_a_wish_for_another_protocol_is_passed_over(sent: bytes, at_once: bool) -> None:
    async def work() -> None:
        async with serving() as server:
            parts = [sent] if at_once else [sent[place : place + 1] for place in range(len(sent))]
            answer = await said(server, *parts, b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n", until=b"/next")
        assert answer.count(b"HTTP/1.1 200 ") == 2
        assert b"POST /  ab" in answer

    run(work())


@running
async def test_what_follows_a_wish_for_another_protocol_is_still_http() -> None:
    upgrade = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x05hello"
    async with serving() as server:
        answer = await said(server, upgrade)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.partition(b"GET /  ")[2].startswith(b"HTTP/1.1 501 ")


@running
async def test_a_client_that_waits_for_leave_to_send_gets_it() -> None:
    async with serving(body_bytes=10) as server:
        head = POST + b"Expect: 100-continue\r\nContent-Length: "
        assert (await said(server, head + b"2\r\n\r\n", b"ab", until=b"  ab")).startswith(
            b"HTTP/1.1 100 Continue"
        )
        assert (await said(server, head + b"20\r\n\r\n")).startswith(b"HTTP/1.1 413 ")


@running
async def test_blanks_behind_a_value_are_no_part_of_it() -> None:
    async with serving(
        lambda exchange: exchange.send(200, exchange.request.header("x-priority").encode())
    ) as server:
        sent = b"GET / HTTP/1.1\r\nHost: a\r\nX-Priority: \t high \t\r\nConnection: close\r\n\r\n"
        assert (await said(server, sent)).endswith(b"\r\n\r\nhigh")
    async with serving() as server:
        sent = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked \r\nConnection: close\r\n\r\n"
        assert (await said(server, sent + b"3\r\nabc\r\n0\r\n\r\n")).endswith(b"abc")
