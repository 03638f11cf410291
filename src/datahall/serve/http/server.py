"""A server: accepts connections, hands their requests to one handler, and leaves without losing any."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from datahall.errors import ScenarioError
from datahall.serve.http.connection import Connection
from datahall.serve.http.deadlines import Deadlines
from datahall.serve.http.exchange import Exchange, Handler
from datahall.serve.http.failures import Refused
from datahall.serve.http.framing import error_body
from datahall.serve.http.limits import Limits, most_connections
from datahall.serve.http.request import Request

BACKLOG = 2048
LINGERING_RATIO = 1.25  # connections, those that are refused among them, to the most
Door: TypeAlias = Callable[[Request], bool]  # whether the body behind a head is worth gathering


class Server:
    """What listens on one address."""

    def __init__(
        self, handler: Handler, limits: Limits, loop: asyncio.AbstractEventLoop, door: Door | None = None
    ) -> None:
        self.limits = limits
        self.loop = loop
        self._door = door
        self._most_connections = most_connections(limits.num_connections)
        self._gathered_bytes = 0
        self.awaited: dict[
            Connection, None
        ] = {}  # that have asked nothing, and may have to go; the longest first
        self.halves: dict[Connection, None] = {}  # whose request is there in part: they go after those
        self.tell: Callable[[Refused, str], None] | None = None  # of what was refused here, and from where
        self.is_closing = False
        self._handler = handler
        self._deadlines = Deadlines(loop)
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Future[None]] = set()
        self._empty: asyncio.Event = asyncio.Event()
        self._listening: asyncio.Server | None = None

    async def listen(self, address: tuple[str, int] | str, tls: ssl.SSLContext | None) -> None:
        """Begin; a text is the path of a Unix socket."""
        handshake_s = None if tls is None else self.limits.head_s
        try:
            if isinstance(address, str):
                self._listening = await self.loop.create_unix_server(
                    partial(Connection, self), address, ssl=tls, backlog=BACKLOG,
                    ssl_handshake_timeout=handshake_s,
                )  # fmt: skip
            else:
                self._listening = await self.loop.create_server(
                    partial(Connection, self),
                    address[0],
                    address[1],
                    ssl=tls,
                    backlog=BACKLOG,
                    reuse_address=True,
                    ssl_handshake_timeout=handshake_s,
                )
        except (OSError, OverflowError) as error:
            reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
            where = address if isinstance(address, str) else f"{address[0]}:{address[1]}"
            raise ScenarioError(
                f"cannot listen on {where}: {reason}", hint="another address or port, or stop what has it"
            ) from None

    @property
    def port(self) -> int:
        """The port, where 0 was asked for the one that was free."""
        if self._listening is None or self._listening.sockets[0].family == socket.AF_UNIX:
            return 0
        return int(self._listening.sockets[0].getsockname()[1])

    @property
    def num_connections(self) -> int:
        return len(self._connections)

    @property
    def may_linger(self) -> bool:
        """Whether who finds no room may be heard out, so that he reads why: of descriptors there are twice as many."""
        return len(self._connections) <= LINGERING_RATIO * self._most_connections + 1

    async def close(self, grace_s: float = 0.0) -> bool:
        """Take no more, let what has begun end within the grace, and close; whether all of it did."""
        self.is_closing = True
        if self._listening is not None:
            self._listening.close()
        for connection in [*self._connections]:
            connection.close_if_idle()
        is_whole = await self._emptied(grace_s)
        for connection in [*self._connections]:
            connection.cut_off()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)
        for connection in [*self._connections]:
            connection.say_end()
        return is_whole

    async def _emptied(self, grace_s: float) -> bool:
        try:
            async with asyncio.timeout(grace_s):
                while self._connections:
                    self._empty.clear()
                    await self._empty.wait()
        except TimeoutError:
            return not self._connections
        return True

    # what connections say

    def welcome(self, connection: Connection) -> bool:
        """Watch a connection; whether there is room for it, be it in place of who has asked nothing for longest."""
        self._connections.add(connection)
        self._deadlines.watch(connection)
        has_room = not self.is_closing
        if len(self._connections) > self._most_connections:
            longest = next(iter(self.awaited), None) or next(iter(self.halves), None)
            if longest is None:
                has_room = False
            else:
                self.awaited.pop(longest, None)
                self.halves.pop(longest, None)
                longest.give_way()
        if has_room:
            self.awaited[connection] = None
        return has_room

    def lets_in(self, head: Request) -> bool:
        """Whether the body behind a head is gathered; the handler says why not."""
        return self._door is None or self._door(head)

    def hold(self, num_bytes: int) -> None:
        """Keep so much more of requests that have not come whole."""
        if num_bytes > 0 and self._gathered_bytes + num_bytes > self.limits.gathered_bytes:
            raise Refused(503, "too much is being sent here at once")
        self._gathered_bytes += num_bytes

    def part(self, connection: Connection, held_bytes: int) -> None:
        self._gathered_bytes -= held_bytes
        self.awaited.pop(connection, None)
        self.halves.pop(connection, None)
        self._connections.discard(connection)
        self._deadlines.forget(connection)
        if not self._connections:
            self._empty.set()

    def handle(self, exchange: Exchange) -> None:
        """Give a request to the handler; what it raises becomes an answer, and the others never hear of it."""
        try:
            work = self._handler(exchange)
        except Exception as error:
            self._fail(exchange, error)
            return
        if work is not None:
            task = asyncio.ensure_future(work)
            self._tasks.add(task)
            exchange.on_gone(task.cancel)
            task.add_done_callback(partial(self._handled, exchange))

    def _handled(self, exchange: Exchange, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(exchange, error)
        elif not exchange.is_ended and not exchange.is_gone:
            self._fail(exchange, RuntimeError(f"{exchange.request.path} was left without an answer"))

    def _fail(self, exchange: Exchange, error: BaseException) -> None:
        if not exchange.is_gone and not exchange.is_ended:
            if exchange.is_started:
                exchange.abort()
            else:
                exchange.send(500, error_body(500, "a mistake of the server", code="internal_error"))
        self.loop.call_exception_handler({"message": "a request failed", "exception": error})


async def serve(
    handler: Handler,
    address: tuple[str, int] | str = ("127.0.0.1", 0),
    limits: Limits | None = None,
    tls: ssl.SSLContext | None = None,
    door: Door | None = None,
) -> Server:
    """Answer requests with a handler until the server is closed.

    The door is asked of a head whose body does not come with it; where it says no, the handler has the request without.
    """
    server = Server(handler, limits or Limits(), asyncio.get_running_loop(), door)
    await server.listen(address, tls)
    return server
