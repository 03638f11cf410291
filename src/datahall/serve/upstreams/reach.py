"""How an upstream is asked: over HTTP, or in this process by its handler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from datahall.serve.http import Handler, Request, Response, TimedOut, Timeouts, answer_of
from datahall.serve.http.framing import Headers


class Reach(Protocol):
    """What takes a request and gives an answer as soon as its headers are there."""

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Headers = (),
        timeouts: Timeouts | None = None,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> Response: ...

    def close(self) -> None: ...


class Inside:
    """A handler of this process: a model that is served here, or a virtual one."""

    __slots__ = ("_handler",)

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Headers = (),
        timeouts: Timeouts | None = None,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> Response:
        del may_repeat  # nothing is lost on the way
        request = Request(
            method,
            path,
            "",
            {name.lower(): value for name, value in headers},
            body,
            "in process",
        )
        wait = timeouts or Timeouts()
        try:
            async with asyncio.timeout(min(wait.first_byte_s, wait.total_s)):
                return await answer_of(self._handler, request)
        except TimeoutError:
            raise TimedOut("no answer in time") from None

    def close(self) -> None:
        """Nothing is held."""
