"""Requests that a page of a browser sends where no key is asked for, told by the headers that a page cannot choose.

A name whose owner points it at this machine reaches it (DNS rebinding), but stays in Host; a page of another site is
named in Origin.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from datahall.serve.http.exchange import Exchange, Handler
from datahall.serve.http.framing import error_body
from datahall.serve.http.request import Request


def guarded(handler: Handler, host: str) -> Handler:
    """A handler that listens on a host and asks nobody for a key, behind a look at who asks."""

    def answer(exchange: Exchange) -> object:
        if not is_from_elsewhere(exchange.request, host):
            return handler(exchange)
        message = "a page of a browser, or a name that is not of this machine, is not answered without a key"
        exchange.send(403, error_body(403, message, code="not_permitted"))
        return None

    return answer  # type: ignore[return-value]


def is_from_elsewhere(request: Request, host: str) -> bool:
    """Whether a request to a host was sent by a page of another site, or under a name that is not the host's."""
    said, origin = request.headers.get("host", ""), request.headers.get("origin")
    if is_loopback(host):
        return (bool(said) and not _is_here(f"//{said}")) or (origin is not None and not _is_here(origin))
    return origin is not None and origin.partition("//")[2].lower() != said.lower()


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@lru_cache(256)
def _is_here(url: str) -> bool:
    """Whether a URL is of this machine by a name that nobody else can own.

    >>> _is_here("http://localhost:3000"), _is_here("//127.0.0.1.example.com"), _is_here("null")
    (True, False, False)
    """
    try:
        name = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return is_loopback(name) or name.endswith(".localhost")
