"""A request that is answered in this process: the same exchange, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, cast

from datahall.serve.http.exchange import Exchange, Handler
from datahall.serve.http.failures import Interrupted
from datahall.serve.http.framing import Headers
from datahall.serve.http.request import Request
from datahall.serve.http.response import Response


class LocalExchange(Exchange):
    """Feeds what a handler answers to who waits for it."""

    __slots__ = ("_can_write", "_loop", "_response", "answer")

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Response] = self._loop.create_future()
        self._response: Response | None = None
        self._can_write: asyncio.Future[None] | None = None

    def send(
        self, status: int, body: bytes = b"", headers: Headers = (), content_type: str = "application/json"
    ) -> None:
        self.start(status, headers, content_type)
        self.write(body)
        self.end()

    def start(self, status: int, headers: Headers = (), content_type: str = "text/event-stream") -> None:
        if self.is_started:
            raise RuntimeError("this request has been answered")
        self.is_started = True
        said = {name.lower(): value for name, value in headers}
        self._response = Response(status, {"content-type": content_type, **said}, self)
        if not self.answer.done():
            self.answer.set_result(self._response)

    def write(self, piece: bytes) -> None:
        if self._response is not None and piece and not self.is_gone:
            self._response.feed(piece)

    @property
    def must_wait(self) -> bool:
        return self._can_write is not None

    async def drain(self) -> None:
        if self._can_write is not None:
            await self._can_write

    def end(self) -> None:
        self.is_ended = True
        if self._response is not None:
            self._response.finish()

    def abort(self) -> None:
        self.is_ended = True
        self.fail("the answer was broken off")

    def fail(self, why: str) -> None:
        error = Interrupted(why)
        if self._response is not None:
            self._response.fail(error)
        elif not self.answer.done():
            self.answer.set_exception(error)

    # what the response says

    def pause(self) -> None:
        self._can_write = self._loop.create_future()

    def resume(self) -> None:
        waiting, self._can_write = self._can_write, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def cancel(self) -> None:
        self.resume()
        self.leave()


async def answer_of(handler: Handler, request: Request) -> Response:
    """Ask a handler of this process, as a client asks a server."""
    exchange = LocalExchange(request)
    work = handler(exchange)
    if work is not None:
        task = asyncio.ensure_future(cast(Coroutine[Any, Any, None], work))
        exchange.on_gone(task.cancel)
        task.add_done_callback(partial(_settled, exchange))
    try:
        return await exchange.answer
    except asyncio.CancelledError:
        exchange.cancel()
        raise


def _settled(exchange: LocalExchange, task: asyncio.Future[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        exchange.fail(f"{type(error).__name__} in this process")
        task.get_loop().call_exception_handler({"message": "a request failed", "exception": error})
    elif not exchange.is_ended:
        exchange.fail("no answer came")
