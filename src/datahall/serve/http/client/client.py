"""A client of one server: keeps its connections, and breaks one off where nobody waits for its answer any more."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from datahall.serve.http import framing
from datahall.serve.http.client.origin import Origin
from datahall.serve.http.client.outgoing import Outgoing
from datahall.serve.http.deadlines import Deadlines
from datahall.serve.http.failures import CannotConnect, Interrupted
from datahall.serve.http.framing import Headers
from datahall.serve.http.limits import Timeouts
from datahall.serve.http.response import Response
from datahall.serve.http.tls import client_tls

IDLE_S = 20.0  # that a connection is kept without a request; servers keep theirs longer
MOST_IDLE = 256
CLOSING_S = 0.1  # within which a kept connection turns out to have been closed before the request came


class Client:
    """Asks one server. Follows no redirect, keeps no cookie, and sends nothing that it was not given."""

    def __init__(
        self,
        origin: Origin,
        timeouts: Timeouts | None = None,
        tls: ssl.SSLContext | None = None,
        deadlines: Deadlines | None = None,
    ) -> None:
        self.origin = origin
        self._timeouts = timeouts or Timeouts()
        self._tls = tls or (client_tls() if origin.is_tls else None)
        self._loop = asyncio.get_running_loop()
        self._deadlines = deadlines or Deadlines(self._loop)
        self._idle: list[Outgoing] = []
        self._all: set[Outgoing] = set()

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Headers = (),
        timeouts: Timeouts | None = None,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> Response:
        """Ask; the answer comes as soon as its headers have, and is to be closed.

        `may_repeat` is asked before a request is sent a second time, as the server was just closing the connection; it
        cannot be told from one that read the request and answered nothing.
        """
        size = f"content-length: {len(body)}\r\n" if body or method == "POST" else ""
        head = (
            f"{method} {self.origin.base}{path} HTTP/1.1\r\nhost: {self.origin.authority}\r\n"
            f"{size}{framing.lines(headers)}\r\n"
        )
        data = head.encode("latin-1") + body
        timeouts = timeouts or self._timeouts
        connection = self._kept() or await self._connect(timeouts)
        began_s = self._loop.time()
        try:
            return await self._ask(connection, data, timeouts)
        except Interrupted:
            is_closing = not (connection.is_fresh or connection.has_heard)
            if not is_closing or self._loop.time() > began_s + CLOSING_S or not may_repeat():
                raise
        return await self._ask(await self._connect(timeouts), data, timeouts)

    def close(self) -> None:
        """Break off everything; who waits for an answer is told."""
        for connection in [*self._all]:
            connection.close()

    async def _ask(self, connection: Outgoing, data: bytes, timeouts: Timeouts) -> Response:
        try:
            return await connection.ask(data, timeouts)
        except asyncio.CancelledError:
            connection.cancel()
            raise

    def _kept(self) -> Outgoing | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        return None

    async def _connect(self, timeouts: Timeouts) -> Outgoing:
        origin = self.origin
        try:
            async with asyncio.timeout(timeouts.connect_s):
                if origin.socket:
                    _, connection = await self._loop.create_unix_connection(self._made, origin.socket)
                else:
                    tls = self._tls
                    _, connection = await self._loop.create_connection(
                        self._made,
                        origin.host,
                        origin.port,
                        ssl=tls,
                        server_hostname=origin.host if tls else None,
                    )
        except TimeoutError:
            raise CannotConnect(f"{origin.authority} did not answer in {timeouts.connect_s:g} s") from None
        except (OSError, UnicodeError) as error:
            raise CannotConnect(f"cannot reach {origin.authority}: {error}") from None
        self._all.add(connection)
        self._deadlines.watch(connection)
        return connection

    def _made(self) -> Outgoing:
        return Outgoing(self._loop, self._free)

    def _free(self, connection: Outgoing, is_usable: bool) -> None:
        if is_usable and len(self._idle) < MOST_IDLE:
            connection.deadline_s = self._loop.time() + IDLE_S
            self._idle.append(connection)
            return
        if is_usable:
            connection.cancel()
            return
        if connection in self._all:
            self._all.discard(connection)
            self._deadlines.forget(connection)
        if connection in self._idle:
            self._idle.remove(connection)
