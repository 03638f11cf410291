"""The studio as one handler: its page, its forms, and questions that processes answer."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any
from urllib.parse import unquote

import msgspec

from datahall.errors import DatahallError, UnknownNameError
from datahall.serve.http import Exchange
from datahall.serve.openapi import PATH
from datahall.studio.bench import Bench, Full
from datahall.studio.bundle import POLICY, page_files
from datahall.studio.described import ASK, FORMS, description
from datahall.studio.forms import ASKED, form_for, forms
from datahall.studio.names import names_of
from datahall.studio.task import Done, Progress, Refused, Task

EVENTS = "text/event-stream"
BUSY_S = 1
NEVER_OLD, ALWAYS_NEW = "public, max-age=31536000, immutable", "no-cache"


class Studio:
    """Everything below one address."""

    def __init__(self, bench: Bench, version: str) -> None:
        self._bench = bench
        self._version = version

    def __call__(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        """Answer one request."""
        path, method = exchange.request.path, exchange.request.method
        if path == ASK:
            if method == "POST":
                return self._ask(exchange)
            _refuse(exchange, 405, "a question is sent by POST", (("Allow", "POST"),))
        elif method not in ("GET", "HEAD"):
            _refuse(exchange, 405, "only questions are sent", (("Allow", "GET, HEAD"),))
        elif path == FORMS:
            _send(exchange, forms())
        elif path == PATH:
            exchange.send(200, description(self._version))
        elif path.startswith(f"{FORMS}/"):
            _form(exchange, path.removeprefix(f"{FORMS}/"))
        else:
            _file(exchange)
        return None

    async def _ask(self, exchange: Exchange) -> None:
        """A question: whole, or as events with how far it is; who leaves ends the work."""
        try:
            task = msgspec.json.decode(exchange.request.body, type=Task)
        except msgspec.DecodeError as error:
            _refuse(exchange, 400, f"not a question: {error}")
            return
        if task.verb not in ASKED:
            _refused(exchange, 404, _unknown(task.verb))
            return
        is_streamed = EVENTS in exchange.request.header("accept")
        try:
            async for message in self._bench.answer(task):
                if isinstance(message, Progress):
                    if is_streamed:
                        _event(exchange, "progress", msgspec.json.encode({"said": message.said}))
                elif is_streamed:
                    _last_event(exchange, message)
                elif isinstance(message, Done):
                    exchange.send(200, message.body, content_type=message.content_type)
                else:
                    _send(exchange, {"error": message.error}, message.status)
        except Full:
            _refuse(exchange, 503, "too many questions wait", (("Retry-After", str(BUSY_S)),))


def _last_event(exchange: Exchange, message: Done | Refused) -> None:
    if isinstance(message, Done):
        _event(exchange, "answer", message.body)
    else:
        _event(exchange, "refused", msgspec.json.encode({"error": message.error}))
    exchange.end()


def _event(exchange: Exchange, name: str, data: bytes) -> None:
    if not exchange.is_started:
        exchange.start(200, (("Cache-Control", "no-store"),), EVENTS)
    lines = b"\n".join(b"data: " + line for line in data.splitlines())
    exchange.write(b"event: %s\n%s\n\n" % (name.encode(), lines))


def _form(exchange: Exchange, path: str) -> None:
    verb, _, name = unquote(path).partition("/")
    if verb not in ASKED:
        _refused(exchange, 404, _unknown(verb))
    elif not name:
        _send(exchange, form_for(verb))
    elif (found := names_of(verb, name)) is not None:
        _send(exchange, found)
    else:
        _refuse(exchange, 404, f"{name} of {verb} has no names to choose from")


def _unknown(verb: str) -> UnknownNameError:
    return UnknownNameError("verb", verb, ASKED, hint=f"all of them: GET {FORMS}")


def _file(exchange: Exchange) -> None:
    """A file of the page; every path that is none of them is the page itself, which reads it."""
    request = exchange.request
    known = page_files()
    found = known.get(request.path)
    if found is None:
        if "." in request.path.rpartition("/")[2] or request.path.startswith("/api/"):
            _refuse(exchange, 404, "there is nothing here")
            return
        found = known["/"]
    headers = [
        ("Content-Security-Policy", POLICY),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", NEVER_OLD if request.path.startswith("/assets/") else ALWAYS_NEW),
        ("ETag", f'"{found.tag}"'),
        ("Vary", "Accept-Encoding"),
    ]
    if request.header("if-none-match") == f'"{found.tag}"':
        exchange.send(304, b"", headers)
        return
    packs = "gzip" in request.header("accept-encoding") and len(found.packed) < len(found.body)
    if packs:
        headers.append(("Content-Encoding", "gzip"))
    exchange.send(200, found.packed if packs else found.body, headers, found.content_type)


def _send(exchange: Exchange, content: object, status: int = 200) -> None:
    exchange.send(status, msgspec.json.encode(content), (("Cache-Control", "no-store"),))


def _refuse(exchange: Exchange, status: int, why: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
    exchange.send(status, msgspec.json.encode({"error": {"code": "request", "message": why}}), headers)


def _refused(exchange: Exchange, status: int, error: DatahallError) -> None:
    _send(exchange, {"error": error.record()}, status)
