"""What handlers of this room share: tables of paths, and the header that says when to come again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, TypeAlias

import msgspec

from datahall.serve.http import Exchange
from datahall.serve.modelserver.refused import PredictRefusal

Answering: TypeAlias = Callable[[Exchange], None]
Routes: TypeAlias = Mapping[str, Mapping[str, Answering]]  # path, then method

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
NOT_READY_S = 1.0  # to come again


def routed(routes: Routes, exchange: Exchange) -> bool:
    """Whether a path is in the table, and then its answer or that another method is wanted."""
    request = exchange.request
    by_method = routes.get(request.path)
    if by_method is None:
        return False
    answer = by_method.get(request.method)
    if answer is not None:
        answer(exchange)
    else:
        exchange.send(405, detail("Method Not Allowed"), (("Allow", ", ".join(by_method)),))
    return True


def nowhere(exchange: Exchange) -> None:
    """A path that nobody answers."""
    exchange.send(404, detail("Not Found"))


def detail(said: str | list[Any]) -> bytes:
    """An error as FastAPI's servers write it."""
    return msgspec.json.encode(PredictRefusal(said))


def live(exchange: Exchange) -> None:
    """The process answers, whatever is loaded."""
    exchange.send(200, b'{"status":"live"}')


def ready(exchange: Exchange, *, is_ready: bool) -> None:
    """503 until the model answers, so that nobody sends requests here before."""
    if is_ready:
        exchange.send(200, b'{"status":"ready"}')
    else:
        exchange.send(503, b'{"status":"loading"}', retry_after(NOT_READY_S))


def metrics(exchange: Exchange, text: str) -> None:
    """Counters in the text format of Prometheus."""
    exchange.send(200, text.encode(), content_type=METRICS_TYPE)


def retry_after(wait_s: float) -> tuple[tuple[str, str], ...]:
    """Whole seconds, as the header has them, and never at once.

    >>> retry_after(0.2)
    (('Retry-After', '1'),)
    """
    return (("Retry-After", str(max(1, ceil(wait_s)))),) if wait_s else ()
