"""Both ends of a connection, as tests use them: a server with a handler, and bytes on a bare socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, ParamSpec

from datahall.serve.http import Exchange, Handler, Limits, Server, run, serve

P = ParamSpec("P")


def echo(exchange: Exchange) -> None:
    """Say back what was asked."""
    request = exchange.request
    exchange.send(200, f"{request.method} {request.path} {request.query} ".encode() + request.body)


@asynccontextmanager
async def serving(handler: Handler = echo, **limits: Any) -> AsyncIterator[Server]:
    server = await serve(handler, limits=Limits(**limits))
    try:
        yield server
    finally:
        await server.close()


async def said(server: Server, *parts: bytes, until: bytes = b"") -> bytes:
    """What a server says to bytes on a socket, until it closes, or until it has said something."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            return await (reader.readuntil(until) if until else reader.read())
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def running(work: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a coroutine."""

    @wraps(work)
    def test(*given: P.args, **named: P.kwargs) -> None:
        run(work(*given, **named))

    return test


async def until(holds: Callable[[], bool], within_s: float = 5.0) -> None:
    """Wait for something to come true."""
    async with asyncio.timeout(within_s):
        while not holds():
            await asyncio.sleep(0.001)
