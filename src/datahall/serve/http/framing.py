"""Bytes of heads, chunks and errors as HTTP/1.1 has them (RFC 9112)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from email.utils import formatdate
from http import HTTPStatus

import msgspec

Headers = Iterable[tuple[str, str]]

LAST_CHUNK = b"0\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus if status >= 200
}
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_date: tuple[int, str] = (0, "")


def status_line(status: int) -> str:
    return _STATUS_LINES.get(status) or f"HTTP/1.1 {status} \r\n"


def date() -> str:
    """The date of an answer, made once a second."""
    global _date
    second = int(time.time())
    if _date[0] != second:
        _date = second, formatdate(second, usegmt=True)
    return _date[1]


def lines(headers: Headers) -> str:
    """Headers as lines; a value that would be more than one line is a mistake of ours, never sent."""
    text = ""
    for name, value in headers:
        if "\n" in value or "\r" in value:
            raise ValueError(f"{name} has a value of more than one line")
        text += f"{name}: {value}\r\n"
    return text


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def has_no_body(status: int) -> bool:
    return status in (204, 304)


def error_body(
    status: int, message: str, *, code: str = "", kind: str = "", param: str | None = None
) -> bytes:
    """An error as OpenAI's clients read it.

    >>> error_body(404, "no model x", code="model_not_found")
    b'{"error":{"message":"no model x","type":"not_found_error","param":null,"code":"model_not_found"}}'
    """
    kind = kind or _TYPES.get(status) or ("invalid_request_error" if status < 500 else "server_error")
    return msgspec.json.encode(
        {"error": {"message": message, "type": kind, "param": param, "code": code or None}}
    )
