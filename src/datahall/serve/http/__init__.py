"""HTTP/1.1 as asyncio protocols on httptools: a server, a client, and one border for both, the exchange.

A handler answers an `Exchange`, and cannot tell whether it came over a socket or from this process.
"""

from datahall.serve.http.client import Client, Origin
from datahall.serve.http.exchange import Exchange, Handler
from datahall.serve.http.failures import CannotConnect, Failure, Interrupted, TimedOut
from datahall.serve.http.framing import error_body
from datahall.serve.http.limits import Limits, Timeouts
from datahall.serve.http.local import answer_of
from datahall.serve.http.loop import run
from datahall.serve.http.request import Request
from datahall.serve.http.response import Response
from datahall.serve.http.server import Server, serve

__all__ = [
    "CannotConnect",
    "Client",
    "Exchange",
    "Failure",
    "Handler",
    "Interrupted",
    "Limits",
    "Origin",
    "Request",
    "Response",
    "Server",
    "TimedOut",
    "Timeouts",
    "answer_of",
    "error_body",
    "run",
    "serve",
]
