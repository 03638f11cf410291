"""What the forms of an API have in common: an answer that is whole, and the same one as events of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from datahall.serve.http.sse import data_of
from datahall.serve.ledger.money import Usage

Table: TypeAlias = dict[str, Any]
END = b"data: [DONE]"
encode = msgspec.json.encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class NotStreamed(Exception):
    """Events that are not those of one whole answer."""


class Form(msgspec.Struct, frozen=True):
    """How the answers of one route are joined and taken apart."""

    joined: Callable[[list[bytes]], bytes]
    apart: Callable[[bytes], list[bytes]]
    is_usage: Callable[[bytes], bool]  # an event that only who asks for it is given
    is_end: Callable[[bytes], bool]
    is_whole: Callable[[list[bytes]], bool]
    usage_event: Callable[[bytes, Usage], bytes]
    ends_with_done: bool


def events_of(stream: bytes) -> list[bytes]:
    """The events of a whole stream, without the empty lines between."""
    return [event for event in stream.replace(b"\r\n", b"\n").split(b"\n\n") if event.strip()]


def table_of(event: bytes) -> Table:
    """The data of an event; empty where it has none, as a comment."""
    data = data_of(event)
    if not data or data == b"[DONE]":
        return {}
    return table_in(data)


def table_in(data: bytes) -> Table:
    """A table as JSON, of an event or whole, that is no error."""
    try:
        found = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotStreamed(str(error)) from error
    if found.get("error"):
        raise NotStreamed("an error")
    return found


def event_of(table: Table, name: str = "") -> bytes:
    """An event without the empty line behind it."""
    data = b"data: " + encode(table)
    return f"event: {name}\n".encode() + data if name else data


def grown(into: Table, delta: Table) -> None:
    """Add what came to what was there: text behind text, lists by their index, all else in its place."""
    for name, value in delta.items():
        there = into.get(name)
        if value is None:
            into.setdefault(name, None)
        elif there is None:
            into[name] = [] if isinstance(value, list) else value
            if isinstance(value, list):
                _grown_list(into[name], value)
        elif isinstance(there, list) and isinstance(value, list):
            _grown_list(there, value)
        elif isinstance(there, dict) and isinstance(value, dict):
            grown(there, value)
        elif isinstance(there, str) and isinstance(value, str) and name not in ONCE:
            into[name] = there + value
        else:
            into[name] = value


ONCE = ("role", "id", "type", "index")  # said again, not said on; names of functions come in one piece


def _grown_list(into: list[Any], items: list[Any]) -> None:
    for item in items:
        index = item.get("index") if isinstance(item, dict) else None
        if index is None:
            into.append(item)
            continue
        mine = next((one for one in into if one.get("index") == index), None)
        if mine is None:
            mine = {}
            into.append(mine)
        grown(mine, item)


def asked_usage(usage: Usage) -> Table:
    """Tokens as OpenAI's answers have them."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }
