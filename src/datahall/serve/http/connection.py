"""One connection of a server: reads requests, answers them in order, and notices when the client leaves."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, cast

from datahall.serve.http import framing
from datahall.serve.http.deadlines import NEVER
from datahall.serve.http.exchange import Exchange
from datahall.serve.http.failures import Refused
from datahall.serve.http.framing import Headers
from datahall.serve.http.reader import Reader
from datahall.serve.http.request import Request

if TYPE_CHECKING:
    from datahall.serve.http.server import Server

MOST_JOINED_BYTES = 64 * 1024  # a body up to this is copied behind its head, to go out in one call
MOST_UNREAD_BYTES = 256 * 1024  # of an answer, before its writer is asked to wait
MOST_AHEAD_BYTES = 64 * 1024  # that a client may send of its next requests while it waits for an answer
CROWDED = Refused(503, "too many connections")


class Connection(asyncio.Protocol):
    """Serves one client."""

    def __init__(self, server: Server) -> None:
        self.deadline_s = NEVER
        self.current: WireExchange | None = None
        self.can_write: asyncio.Future[None] | None = None  # while the client does not read
        self._server = server
        self._loop = server.loop
        self._waiting: deque[tuple[Request, bool]] = deque()
        self._refused: Refused | None = None  # to be said after what was asked before it
        self._is_deaf = False  # what still comes is dropped
        self._unread_bytes = 0
        self._ahead_bytes = 0  # of requests after the one that is answered
        self._held_bytes = 0  # of a request that has not come whole
        self._is_new = True  # nothing has been asked
        self._is_let_in = False  # the head of what is coming has been looked at

    # what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(MOST_UNREAD_BYTES)
        peer = transport.get_extra_info("peername")
        self._peer = str(peer[0]) if isinstance(peer, tuple) else ""
        self._reader = Reader(self._server.limits, self._peer, self._on_request)
        if not self._server.welcome(self):
            self._refuse(CROWDED)
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        reader = self._reader
        was_between = reader.is_between
        try:
            reader.feed(data)
            if not reader.is_between or self._held_bytes:
                self._gather()
        except Refused as refused:
            self._is_deaf = True
            self._refused = refused
        if self.current is None:
            self._next()
            if self.current is None and was_between and not reader.is_between:
                self._await_head()
        else:
            self._look_ahead(len(data))

    def eof_received(self) -> None:
        """A client that says no more is taken to have left: the transport closes."""

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self._is_deaf = True
        self._server.part(self, self._held_bytes)
        self._reader.close()
        self._waiting.clear()
        self.resume_writing()
        exchange, self.current = self.current, None
        if exchange is not None:
            exchange.leave()

    def pause_writing(self) -> None:
        self.can_write = self._loop.create_future()
        self._await_reading()

    def resume_writing(self) -> None:
        waiting, self.can_write = self.can_write, None
        if waiting is None:
            return
        if not waiting.done():
            waiting.set_result(None)
        if self.current is not None:
            self.deadline_s = NEVER
        elif not self._is_deaf:
            self._await_head()

    # deadlines

    def expire(self) -> None:
        """The client was too slow."""
        unread_bytes = self.transport.get_write_buffer_size()
        if 0 < unread_bytes < self._unread_bytes:
            self._await_reading()
        elif self._is_deaf or self.can_write is not None:
            self.transport.abort()
        elif self._reader.is_between:
            self.transport.close()
        else:
            self._refuse(Refused(408, "the request took too long to come"))

    def _await_head(self) -> None:
        limits, reader = self._server.limits, self._reader
        wait_s = limits.body_s if reader.in_body else limits.head_s
        if reader.is_between:
            wait_s = min(limits.idle_s, limits.head_s) if self._is_new else limits.idle_s
        self.deadline_s = self._loop.time() + wait_s

    def _await_reading(self) -> None:
        """A client may take long to read an answer, but not stand still."""
        self._unread_bytes = self.transport.get_write_buffer_size()
        self.deadline_s = self._loop.time() + self._server.limits.write_s

    # what has not come whole

    def _gather(self) -> None:
        """Wait for the rest of a request, if its head lets it in and there is room for it."""
        reader, server = self._reader, self._server
        if reader.in_body and not self._is_let_in:
            self._is_let_in = True
            head = reader.head()
            if not server.lets_in(head):
                reader.cut()
            elif self.current is None and not self._waiting:
                server.awaited.pop(self, None)
                server.halves[self] = None
                self.deadline_s = self._loop.time() + server.limits.body_s
                if head.headers.get("expect", "").lower() == "100-continue":
                    self.transport.write(framing.CONTINUE)
        held_bytes = reader.held_bytes
        server.hold(held_bytes - self._held_bytes)
        self._held_bytes = held_bytes

    def _look_ahead(self, num_bytes: int) -> None:
        """Read on while a request is answered, as only who reads sees the client leave.

        Who asks for too much before he is answered is not answered to all of it (RFC 9112, 9.3.2).
        """
        self._ahead_bytes += num_bytes
        if self._waiting and self._ahead_bytes > MOST_AHEAD_BYTES:
            self._is_deaf = True
            self._refused = None
            request, _ = self._waiting.pop()
            self._waiting.append((request, False))

    # what the reader calls

    def _on_request(self, request: Request, keep: bool) -> None:
        self._is_new = self._is_let_in = False
        self._waiting.append((request, keep))
        if not keep:
            self._is_deaf = True

    # one request after another

    def _next(self) -> None:
        """Hand the next request to the handler, or say what was wrong with what came after the last."""
        if self._waiting:
            self._server.awaited.pop(self, None)
            self._server.halves.pop(self, None)
            self.deadline_s = NEVER
            request, keep = self._waiting.popleft()
            self.current = WireExchange(self, request, keep and not self._server.is_closing)
            self._server.handle(self.current)
        elif self._refused is not None:
            self._refuse(self._refused)

    def finished(self, keep: bool) -> None:
        """The answer to the current request has been written."""
        self.current = None
        if not keep or self._server.is_closing:
            self._close()
            return
        if self.transport.is_closing():
            return
        if self._waiting or self._refused is not None:
            self._loop.call_soon(
                self._go_on
            )  # a handler that answers at once would call itself for each of many
            return
        if not self._is_deaf:
            self._ahead_bytes = 0
            waiting = self._server.halves if self._is_let_in else self._server.awaited
            waiting[self] = None
            self._await_head()

    def _go_on(self) -> None:
        if self.current is None and not self.transport.is_closing():
            self._next()
            if not self._waiting:
                self._ahead_bytes = 0

    def close_if_idle(self) -> None:
        """The server goes: a connection without a request is closed now, another after its answer."""
        if self.current is None:
            self.transport.close()
        else:
            self.current.keep = False

    def cut_off(self) -> None:
        """The server goes before the answer has ended: who answers stops, and may still say so."""
        if self.current is not None:
            self.current.cut_off()

    def say_end(self) -> None:
        """Close; who has had nothing of an answer is told to come again."""
        exchange = self.current
        if exchange is not None and not exchange.is_started:
            body = framing.error_body(503, "the server is going down", code="overloaded")
            exchange.send(503, body, [("retry-after", "1")])
        if self.transport.get_write_buffer_size():
            self.transport.close()
        else:
            self.transport.abort()

    def give_way(self) -> None:
        """Go, as another has come: who was to be answered is told so."""
        if self._is_let_in:
            self._refuse(CROWDED)
            self.transport.close()
        else:
            self.transport.abort()

    def _refuse(self, refused: Refused) -> None:
        self._is_deaf = True
        self._server.awaited.pop(self, None)
        self._server.halves.pop(self, None)
        if self._server.tell is not None:
            self._server.tell(refused, self._peer)
        is_ours = refused.status == 503
        again = "retry-after: 1\r\n" if is_ours else ""
        body = framing.error_body(
            refused.status, refused.message, code="overloaded" if is_ours else "bad_request"
        )
        head = (
            f"{framing.status_line(refused.status)}content-type: application/json\r\n"
            f"content-length: {len(body)}\r\ndate: {framing.date()}\r\n{again}connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self._close()

    def _close(self) -> None:
        """Close so that the client can read what was written, even while it still sends."""
        self._is_deaf = True
        has_more = not self._reader.is_between or (self._is_new and self._server.may_linger)
        if has_more and self.transport.can_write_eof():
            self.transport.write_eof()
            self.deadline_s = self._loop.time() + self._server.limits.linger_s
        else:
            self._await_reading()
            self.transport.close()


class WireExchange(Exchange):
    """A request that came over a socket."""

    __slots__ = ("_connection", "_is_chunked", "_is_head", "keep")

    def __init__(self, connection: Connection, request: Request, keep: bool) -> None:
        super().__init__(request)
        self._connection = connection
        self._is_head = request.method == "HEAD"
        self._is_chunked = False
        self.keep = keep

    def send(
        self, status: int, body: bytes = b"", headers: Headers = (), content_type: str = "application/json"
    ) -> None:
        self._begin()
        if self.is_gone:
            self.is_ended = True
            return
        ending = "" if self.keep else "connection: close\r\n"
        size = "" if framing.has_no_body(status) else f"content-length: {len(body)}\r\n"
        head = (
            f"{framing.status_line(status)}content-type: {content_type}\r\n{size}date: {framing.date()}\r\n"
            f"{framing.lines(headers)}{ending}\r\n"
        ).encode("latin-1")
        transport = self._connection.transport
        if self._is_head or framing.has_no_body(status):
            transport.write(head)
        elif len(body) <= MOST_JOINED_BYTES:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        self.is_ended = True
        self._connection.finished(self.keep)

    def start(self, status: int, headers: Headers = (), content_type: str = "text/event-stream") -> None:
        self._begin()
        if self.is_gone:
            return
        self._is_chunked = self.request.version == "1.1"
        coding = "transfer-encoding: chunked\r\n" if self._is_chunked else ""
        ending = "" if self.keep else "connection: close\r\n"
        head = (
            f"{framing.status_line(status)}content-type: {content_type}\r\n{coding}date: {framing.date()}\r\n"
            f"{framing.lines(headers)}{ending}\r\n"
        )
        self._connection.transport.write(head.encode("latin-1"))

    def write(self, piece: bytes) -> None:
        if self.is_gone or self.is_ended or self._is_head or not piece:
            return
        self._connection.transport.write(framing.chunk(piece) if self._is_chunked else piece)

    @property
    def must_wait(self) -> bool:
        return self._connection.can_write is not None

    async def drain(self) -> None:
        waiting = self._connection.can_write
        if waiting is not None:
            await waiting

    def end(self) -> None:
        if self.is_ended:
            return
        self.is_ended = True
        if self.is_gone:
            return
        if self._is_chunked and not self._is_head:
            self._connection.transport.write(framing.LAST_CHUNK)
        self._connection.finished(self.keep and self._is_chunked)

    def abort(self) -> None:
        if not self.is_ended:
            self.is_ended = True
            self._connection.current = None
            self._connection.transport.abort()

    def _begin(self) -> None:
        if self.is_started:
            raise RuntimeError("this request has been answered")
        self.is_started = True
