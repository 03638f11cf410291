"""A client keeps connections, feeds answers as they come, gives up in time, and is heard when it leaves."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
from tests.serve.http.talking import echo, running, said, serving, until

from datahall.errors import ScenarioError
from datahall.serve.http import (
    CannotConnect,
    Client,
    Exchange,
    Failure,
    Handler,
    Interrupted,
    Limits,
    Origin,
    Request,
    Server,
    TimedOut,
    Timeouts,
    answer_of,
    run,
    serve,
)
from datahall.serve.http.tls import client_tls, server_tls


def client_of(server: Server, **timeouts: float) -> Client:
    return Client(Origin("127.0.0.1", server.port, base="/v1"), Timeouts(**timeouts))


@asynccontextmanager
async def saying(*pieces: bytes, then_close: bool = True) -> AsyncIterator[int]:
    """A server that says the same to everybody, be it HTTP or not."""

    talks: list[asyncio.Task[None] | None] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.append(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        with suppress(ConnectionError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            if not then_close:
                await reader.read()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*filter(None, talks))


@running
async def test_requests_go_over_one_connection() -> None:
    async with serving() as server:
        client = client_of(server)
        for body in (b"", b"a", b"b" * 300_000):
            answer = await client.request("POST", "/x?q", body)
            assert (answer.status, await answer.read()) == (200, b"POST /v1/x q " + body)
        assert server.num_connections == 1
        client.close()
        await until(lambda: server.num_connections == 0)


@running
async def test_a_connection_that_the_server_closed_meanwhile_is_made_anew() -> None:
    async with serving(idle_s=0.05) as server:
        client = client_of(server)
        await (await client.request("GET", "/")).read()
        await until(lambda: server.num_connections == 0)
        assert (await (await client.request("GET", "/")).read()) == b"GET /v1/  "
        client.close()


@asynccontextmanager
async def scripted(*answers: bytes) -> AsyncIterator[tuple[int, list[int]]]:
    """A server whose every connection gives these answers, one a request, and closes; and requests by connection."""
    asked: list[int] = []
    talks: list[asyncio.Task[None] | None] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.append(asyncio.current_task())
        place = len(asked)
        asked.append(0)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            for answer in answers:
                await reader.readuntil(b"\r\n\r\n")
                asked[place] += 1
                writer.write(answer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()
        await asyncio.gather(*filter(None, talks))


GIVEN = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


@running
@pytest.mark.parametrize("behind", [GIVEN[:20], b"x", GIVEN])
async def test_a_connection_with_anything_behind_an_answer_is_not_used_again(behind: bytes) -> None:
    async with scripted(GIVEN + behind, GIVEN) as (port, asked):
        client = Client(Origin("127.0.0.1", port))
        for _ in range(2):
            assert await (await client.request("GET", "/")).read() == b"hi"
        assert asked == [1, 1]
        client.close()


@running
async def test_a_connection_on_which_nothing_is_behind_is_used_again() -> None:
    async with scripted(b"HTTP/1.1 100 Continue\r\n\r\n" + GIVEN, GIVEN) as (port, asked):
        client = Client(Origin("127.0.0.1", port))
        for _ in range(2):
            assert await (await client.request("GET", "/")).read() == b"hi"
        assert asked == [2]
        client.close()


@running
async def test_a_request_that_was_begun_to_be_answered_is_not_sent_again() -> None:
    async with scripted(GIVEN, GIVEN[:20]) as (port, asked):
        client = Client(Origin("127.0.0.1", port))
        assert await (await client.request("GET", "/")).read() == b"hi"
        with pytest.raises(Interrupted):
            await client.request("GET", "/")
        assert asked == [2]
        client.close()


@pytest.mark.parametrize("closing_s", [-1.0, 60.0])
def test_a_request_that_was_worked_at_before_the_connection_broke_is_not_sent_again(
    closing_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datahall.serve.http.client.client.CLOSING_S", closing_s)

    async def work() -> None:
        async with scripted(GIVEN, b"") as (port, asked):
            client = Client(Origin("127.0.0.1", port))
            assert await (await client.request("GET", "/")).read() == b"hi"
            if closing_s < 0:
                with pytest.raises(Interrupted):
                    await client.request("GET", "/")
                assert asked == [2]
            else:
                assert await (await client.request("GET", "/")).read() == b"hi"
                assert asked == [2, 1]
            client.close()

    run(work())


@pytest.mark.parametrize("is_local", [True, False])
def test_pieces_come_as_they_are_written(is_local: bool) -> None:
    async def work() -> None:
        go_on = asyncio.Event()

        async def stream(exchange: Exchange) -> None:
            exchange.start(200)
            for piece in (b"1", b"2", b"3"):
                exchange.write(piece)
                await go_on.wait()
                go_on.clear()
            exchange.end()

        async with answering(stream, is_local) as ask:
            answer = await ask()
            for piece in (b"1", b"2", b"3"):
                assert await answer.piece() == piece
                go_on.set()
            assert await answer.piece() == b""

    run(work())


@asynccontextmanager
async def answering(handler: Handler, is_local: bool) -> AsyncIterator:  # type: ignore[type-arg]
    """How a handler is asked, in this process and over a socket."""
    if is_local:
        yield lambda: answer_of(handler, Request("GET", "/"))
        return
    async with serving(handler) as server:
        client = client_of(server)
        yield lambda: client.request("GET", "/")
        client.close()


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("when", ["before the head", "within the body"])
def test_who_answers_hears_that_nobody_waits(when: str, is_local: bool) -> None:
    async def work() -> None:
        heard = asyncio.Event()
        asked = asyncio.Event()

        async def wait(exchange: Exchange) -> None:
            exchange.on_gone(heard.set)
            if when == "within the body":
                exchange.start(200)
                exchange.write(b"1")
            asked.set()
            await asyncio.sleep(60)

        async with answering(wait, is_local) as ask:
            asking = asyncio.ensure_future(ask())
            await asked.wait()
            if when == "within the body":
                (await asking).close()
            else:
                asking.cancel()
            async with asyncio.timeout(1):
                await heard.wait()

    run(work())


@pytest.mark.parametrize("is_local", [True, False])
def test_who_reads_slowly_is_waited_for(is_local: bool) -> None:
    async def work() -> None:
        written = 0

        async def pour(exchange: Exchange) -> None:
            nonlocal written
            exchange.start(200)
            while written < 100_000_000:
                exchange.write(b"x" * 65536)
                written += 65536
                await exchange.drain()
                await asyncio.sleep(0)
            exchange.end()

        async with answering(pour, is_local) as ask:
            answer = await ask()
            await asyncio.sleep(0.1)
            assert written < 30_000_000
            answer.close()

    run(work())


BROKEN = {
    "nothing": b"",
    "no HTTP": b"hello\r\n\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "a head without an end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
    "too many headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\n",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
    "half a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
    "no last chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    "a length and chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
}


@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN)
def test_what_is_no_whole_answer_is_never_taken_for_one(sent: bytes) -> None:
    async def work() -> None:
        async with saying(sent) as port:
            with closing(Client(Origin("127.0.0.1", port))) as client, pytest.raises(Interrupted):
                await (await client.request("GET", "/")).read()

    run(work())


WHOLE = {
    "by length": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
    "in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX: trailer\r\n\r\n",
    "until the connection closes": b"HTTP/1.1 200 OK\r\n\r\nbody",
    "after a word in between": b"HTTP/1.1 103 Early\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
}


@pytest.mark.parametrize("sent", WHOLE.values(), ids=WHOLE)
def test_an_answer_is_read_however_it_is_framed(sent: bytes) -> None:
    async def work() -> None:
        async with saying(sent) as port:
            with closing(Client(Origin("127.0.0.1", port))) as client:
                answer = await client.request("GET", "/")
                assert (answer.status, await answer.read()) == (200, b"body")
                assert "x" not in answer.headers

    run(work())


@pytest.mark.parametrize(
    ("sent", "timeouts"),
    [
        (b"", {"first_byte_s": 0.05}),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", {"between_s": 0.05}),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", {"total_s": 0.05}),
    ],
)
def test_every_wait_has_an_end(sent: bytes, timeouts: dict[str, float]) -> None:
    async def work() -> None:
        async with saying(sent, then_close=False) as port:
            client = Client(Origin("127.0.0.1", port), Timeouts(**timeouts))
            with closing(client), pytest.raises(TimedOut):
                await (await client.request("GET", "/")).read()

    run(work())


@running
async def test_nobody_there_is_said() -> None:
    async with saying() as port:
        pass
    with pytest.raises(CannotConnect, match=f"127.0.0.1:{port}"):
        await Client(Origin("127.0.0.1", port)).request("GET", "/")


@running
async def test_who_waits_hears_that_the_client_is_closed() -> None:
    async with saying(b"", then_close=False) as port:
        client = Client(Origin("127.0.0.1", port))
        asking = asyncio.ensure_future(client.request("GET", "/"))
        await until(lambda: bool(client._all))
        client.close()
        with pytest.raises(Interrupted):
            await asking


@running
async def test_an_answer_larger_than_wanted_is_broken_off() -> None:
    async with serving(lambda exchange: exchange.send(200, b"x" * 1000)) as server:
        client = client_of(server)
        answer = await client.request("GET", "/")
        with pytest.raises(Interrupted, match="more than 999 bytes"):
            await answer.read(999)
        client.close()


@running
async def test_a_handler_of_this_process_that_fails_is_a_failure() -> None:
    async def wrong(exchange: Exchange) -> None:
        raise LookupError(exchange.request.path)

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    with pytest.raises(Failure, match="LookupError"):
        await answer_of(wrong, Request("GET", "/"))


@pytest.mark.parametrize(
    "url",
    ["ftp://a", "localhost:80", "http://", "http://a:b", "http://a/?q", "http://u:p@a", "http://a:99999", ""],
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(ScenarioError):
        Origin.of(url)


@running
async def test_a_unix_socket_serves_too() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        server = await serve(echo, path)
        with closing(Client(Origin.of(f"unix:{path}"))) as client:
            assert await (await client.request("GET", "/")).read() == b"GET /  "
        await server.close()


def test_tls_is_spoken_and_certificates_are_checked(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)

    async def work() -> None:
        server = await serve(echo, tls=server_tls(certificate, key))
        origin = Origin("127.0.0.1", server.port, is_tls=True)
        client = Client(origin, tls=client_tls(certificate))
        assert await (await client.request("GET", "/")).read() == b"GET /  "
        with pytest.raises(CannotConnect):
            await Client(origin).request("GET", "/")
        client.close()
        await server.close()

    run(work())
    with pytest.raises(ScenarioError, match="cannot be used"):
        server_tls(str(tmp_path / "none"), key)


def test_who_connects_and_shakes_no_hands_is_left(tmp_path: Path) -> None:
    async def work() -> None:
        server = await serve(echo, limits=Limits(head_s=0.1), tls=server_tls(*self_signed(tmp_path)))
        async with asyncio.timeout(5):
            assert await said(server) == b""
        await server.close()

    run(work())


def self_signed(folder: Path) -> tuple[str, str]:
    """A certificate of 127.0.0.1 and its key, as files."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    start = datetime.datetime(2026, 1, 1)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(start).not_valid_after(start + datetime.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    certificate_file, key_file = folder / "certificate.pem", folder / "key.pem"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return str(certificate_file), str(key_file)
