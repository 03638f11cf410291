"""One connection of a client: a request goes out, its answer is fed as it comes, and the connection is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from datahall.serve.http.deadlines import NEVER
from datahall.serve.http.failures import Failure, Interrupted, TimedOut
from datahall.serve.http.framing import has_no_body
from datahall.serve.http.limits import Timeouts
from datahall.serve.http.response import Response

MOST_HEAD_BYTES = 64 * 1024
MOST_HEADERS = 200


class Outgoing(asyncio.Protocol):
    """Asks one server, one request at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_free: Callable[[Outgoing, bool], None]) -> None:
        self.deadline_s = NEVER
        self.is_fresh = True  # nothing has been asked by it
        self.has_heard = False  # anything of the answer
        self._is_unasked = False  # what has come behind an answer
        self._loop = loop
        self._on_free = on_free  # told when the connection may be used again, or is lost
        self._answer: asyncio.Future[Response] | None = None
        self._response: Response | None = None
        self._timeouts = Timeouts()
        self._latest_s = NEVER

    def ask(self, data: bytes, timeouts: Timeouts) -> asyncio.Future[Response]:
        """Send a request; the answer comes with its headers, before its body."""
        self._answer = answer = self._loop.create_future()
        self._begin()
        self.has_heard = False
        self._timeouts = timeouts
        now_s = self._loop.time()
        self._latest_s = now_s + timeouts.total_s
        self.deadline_s = min(now_s + timeouts.first_byte_s, self._latest_s)
        self._transport.write(data)
        return answer

    @property
    def is_open(self) -> bool:
        return not self._transport.is_closing()

    def close(self) -> None:
        """Break off, and tell who waits."""
        self._break(Interrupted("the client was closed"))

    # what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        if self._parser is None or (self._answer is None and self._response is None):
            self.cancel()  # nobody asked
            return
        self.has_heard = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._break(Interrupted("the server changed the protocol"))
        except httptools.HttpParserError as error:
            self._break(Interrupted(f"not an answer: {error}"))
        else:
            if self._is_unasked:
                self.cancel()  # or who asks next would hear it
            elif self._answer is not None:
                self._num_bytes += len(data)
                if self._num_bytes > MOST_HEAD_BYTES:
                    self._break(Interrupted(f"headers of more than {MOST_HEAD_BYTES} bytes"))
            elif self._response is not None:
                self.deadline_s = min(self._loop.time() + self._timeouts.between_s, self._latest_s)

    def eof_received(self) -> None:
        """The transport closes."""

    def connection_lost(self, error: Exception | None) -> None:
        if self._response is not None and self._is_until_close and error is None:
            self._response.finish()
            self._response = None
        self._break(
            Interrupted(f"the connection broke: {error}" if error else "the server closed the connection")
        )
        self._parser = None

    def expire(self) -> None:
        if self._answer is None and self._response is None:
            self.cancel()
        else:
            self._break(TimedOut("no answer in time" if self._response is None else "the answer stood still"))

    # what the answer says

    def pause(self) -> None:
        self._transport.pause_reading()
        self.deadline_s = self._latest_s

    def resume(self) -> None:
        if self.is_open:
            self._transport.resume_reading()
            self.deadline_s = min(self._loop.time() + self._timeouts.between_s, self._latest_s)

    def cancel(self) -> None:
        """Break off what is going on; the server sees the connection end."""
        self._answer = self._response = None
        self._transport.abort()
        self._on_free(self, False)

    # what the parser calls

    def on_message_begin(self) -> None:
        self._is_unasked = self._answer is None and self._response is None

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._response is not None:
            return  # trailers
        self._num_headers += 1
        if self._num_headers > MOST_HEADERS:
            raise ValueError("too many headers")
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        parser, answer = self._parser, self._answer
        if parser is None or answer is None:
            return
        status = parser.get_status_code()
        if status < 200:
            return
        headers = self._headers
        self._is_until_close = not (
            "content-length" in headers or "transfer-encoding" in headers or has_no_body(status)
        )
        self._response = Response(status, headers, self)
        self._answer = None
        if not answer.done():
            answer.set_result(self._response)

    def on_body(self, part: bytes) -> None:
        if self._response is not None:
            self._response.feed(part)

    def on_message_complete(self) -> None:
        response, parser = self._response, self._parser
        if parser is None:
            return
        if response is None:  # 100 Continue and its like
            self._begin()
            return
        self._response = None
        self.is_fresh = False
        response.finish()
        self.deadline_s = NEVER
        self._on_free(self, parser.should_keep_alive())

    def _begin(self) -> None:
        self._headers: dict[str, str] = {}
        self._num_headers = 0
        self._num_bytes = 0
        self._is_until_close = False

    def _break(self, error: Failure) -> None:
        answer, response = self._answer, self._response
        self.cancel()
        if answer is not None and not answer.done():
            answer.set_exception(error)
        if response is not None:
            response.fail(error)
