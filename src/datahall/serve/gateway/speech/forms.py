"""Whether what an upstream says is in a form that our clients read, and what it says is wrong."""

from __future__ import annotations

import json
from typing import Any

import msgspec


def is_json(body: bytes) -> bool:
    """Whether a body is whole; numbers that are none, as engines say them, are let pass.

    >>> is_json(b'{"logprob": -Infinity}'), is_json(b'{"choices": [{}'), is_json(b"<html>")
    (True, False, False)
    """
    try:
        msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            return isinstance(json.loads(body), dict)
        except (ValueError, RecursionError):
            return False
    return True


class _Reason(msgspec.Struct):
    message: str


class _Wrong(msgspec.Struct):
    error: _Reason


def is_told(body: bytes) -> bool:
    """Whether an error is in the form that our clients read, which is OpenAI's and Anthropic's alike."""
    try:
        msgspec.json.decode(body, type=_Wrong)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def message_of(body: bytes) -> str:
    """What an upstream says is wrong, in whichever form.

    >>> message_of(b'{"error":{"message":"too long"}}'), message_of(b'{"detail":"Not Found"}'), message_of(b"no")
    ('too long', 'Not Found', 'refused')
    """
    try:
        said = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "refused"
    error = said.get("error")
    told = (
        error.get("message") if isinstance(error, dict) else error,
        said.get("message"),
        said.get("detail"),
    )
    return next((one for one in told if isinstance(one, str) and one), "refused")
