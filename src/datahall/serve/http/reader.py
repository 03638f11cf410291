"""Requests out of bytes: what the parser lets through, held to limits and to one meaning.

httptools (llhttp, strict) refuses a length beside chunks, two lengths, bare line feeds, folded lines and a space
before a colon.  Here the rest: one Host, one plain coding, known versions, and sizes before anything is kept.
"""

from __future__ import annotations

from collections.abc import Callable

import httptools

from datahall.serve.http import framing
from datahall.serve.http.failures import Refused
from datahall.serve.http.limits import Limits
from datahall.serve.http.request import Request

ONE_ALONE = {
    "host",
    "authorization",
    "x-api-key",
    "content-type",
    "content-length",
    "transfer-encoding",
    "expect",
}
MOST_FRAMING = 8  # bytes on the wire for one of a body, in chunks as small as they can be


class Reader:
    """Reads the requests of one connection, one after another."""

    __slots__ = (
        "_body", "_head_bytes", "_headers", "_limits", "_num_headers", "_on_request", "_parser", "_peer", "_target",
        "in_body", "is_between", "num_bytes",
    )  # fmt: skip

    def __init__(
        self,
        limits: Limits,
        peer: str,
        on_request: Callable[[Request, bool], None],
    ) -> None:
        self._limits = limits
        self._peer = peer
        self._on_request = on_request  # told the request and whether the connection may be kept
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self.is_between = True  # nothing has come of the next request
        self._begin()

    def feed(self, data: bytes) -> None:
        """Read on; raises what the connection cannot go on after."""
        parser = self._parser
        if parser is None:
            return
        self.is_between = False
        self.num_bytes += len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._pass_over_upgrade(parser, data[upgrade.args[0] :])
            return
        except httptools.HttpParserCallbackError as error:
            if isinstance(error.__context__, Refused):
                raise error.__context__ from None
            raise
        except httptools.HttpParserInvalidMethodError:
            raise Refused(501, "no such method") from None
        except httptools.HttpParserError as error:
            raise Refused(400, f"not a request: {error}") from None
        if not self.is_between:
            self._hold_to_size()

    def close(self) -> None:
        """Part from the parser, which holds this reader too."""
        self._parser = None

    @property
    def held_bytes(self) -> int:
        """What is kept of a request that has not come whole."""
        return 0 if self.is_between else max(self.num_bytes, len(self._body))

    def head(self) -> Request:
        """The request that is coming, without its body."""
        parser = self._parser
        assert parser is not None
        path, _, query = _local(self._target.decode("latin-1")).partition("?")
        return Request(
            parser.get_method().decode(),
            path,
            query,
            self._headers,
            b"",
            self._peer,
            parser.get_http_version(),
        )

    def cut(self) -> None:
        """Read no more, and have the request answered without its body."""
        request = self.head()
        self._body = bytearray()
        self._on_request(request, False)

    def _pass_over_upgrade(self, parser: httptools.HttpRequestParser, rest: bytes) -> None:
        """Read a request as if it had not asked for another protocol (RFC 9110, 7.8); a tunnel is none."""
        method = parser.get_method()
        if method == b"CONNECT":
            raise Refused(400, "a tunnel is not opened here")
        headers = dict(self._headers)
        headers.pop("upgrade", None)
        said = headers.pop("connection", "").split(",")
        kept = ",".join(word for word in said if word.strip().lower() != "upgrade")
        lines = framing.lines([*headers.items(), *([("connection", kept)] if kept else [])])
        start = b"%b %b HTTP/%b\r\n" % (method, self._target, parser.get_http_version().encode())
        self._begin()
        self._parser = httptools.HttpRequestParser(self)
        self.feed(start + lines.encode("latin-1") + b"\r\n" + rest)

    def _begin(self) -> None:
        self._target = b""
        self._headers: dict[str, str] = {}
        self._num_headers = self._head_bytes = 0
        self.num_bytes = 0  # that have come of the request
        self._body = bytearray()
        self.in_body = False

    def _hold_to_size(self) -> None:
        if not self.in_body and self.num_bytes > self._limits.head_bytes:
            raise Refused(431, f"headers of more than {self._limits.head_bytes} bytes")
        if self.num_bytes > self._limits.head_bytes + MOST_FRAMING * self._limits.body_bytes:
            raise Refused(413, "a body of too many too small chunks")

    # what the parser calls

    def on_message_begin(self) -> None:
        self.is_between = False

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.in_body:
            return  # trailers are read and dropped
        self._num_headers += 1
        if self._num_headers > self._limits.num_headers:
            raise Refused(431, f"more than {self._limits.num_headers} headers")
        self._head_bytes += len(name) + len(value)
        if self._head_bytes + len(self._target) > self._limits.head_bytes:  # it may have come in one piece
            raise Refused(431, f"headers of more than {self._limits.head_bytes} bytes")
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1").rstrip(" \t")
        if key in self._headers:
            if key in ONE_ALONE:
                raise Refused(400, f"two headers {key}")
            text = f"{self._headers[key]}, {text}"
        self._headers[key] = text

    def on_headers_complete(self) -> None:
        parser, headers = self._parser, self._headers
        if parser is None or parser.should_upgrade():
            return
        version = parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise Refused(505, "only HTTP/1 is spoken here")
        if version == "1.1" and "host" not in headers:
            raise Refused(400, "no header Host")
        coding = headers.get("transfer-encoding")
        if coding is not None and (coding.lower() != "chunked" or version == "1.0"):
            raise Refused(
                501 if version == "1.1" else 400, f"transfer coding {coding[:20]}: only chunked is known"
            )
        if len(self._target) > self._limits.head_bytes:
            raise Refused(414, "too long a path")
        if int(headers.get("content-length", "0")) > self._limits.body_bytes:
            raise Refused(413, f"a body of more than {self._limits.body_bytes} bytes")
        self.in_body = True
        self.num_bytes = 0

    def on_body(self, part: bytes) -> None:
        self._body += part
        if len(self._body) > self._limits.body_bytes:
            raise Refused(413, f"a body of more than {self._limits.body_bytes} bytes")

    def on_message_complete(self) -> None:
        parser = self._parser
        if parser is None or parser.should_upgrade():
            return
        path, _, query = _local(self._target.decode("latin-1")).partition("?")
        request = Request(
            parser.get_method().decode(), path, query, self._headers, bytes(self._body), self._peer,
            parser.get_http_version(),
        )  # fmt: skip
        keep = parser.should_keep_alive()
        self._begin()
        self.is_between = True
        self._on_request(request, keep)


def _local(target: str) -> str:
    """The path and query of a target; a proxy's absolute form loses its origin.

    >>> _local("http://localhost:1/x?y")
    '/x?y'
    """
    if target.startswith("/"):
        return target
    if target.startswith(("http://", "https://")):
        return "/" + target.split("://", 1)[1].partition("/")[2]
    if target == "*":
        return target
    raise Refused(400, "a path begins with /")
