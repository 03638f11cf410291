"""What a translation does: the question on its way there, the answer on its way back, whole or event by event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from datahall.serve.gateway.question import Kind
from datahall.serve.http import Interrupted
from datahall.serve.http.sse import data_of

Table: TypeAlias = dict[str, Any]

# raised by questions and answers of no form that is known
ODD = (
    msgspec.MsgspecError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
encode = msgspec.json.encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Untranslatable(Exception):
    """A part of a question that the other language has no word for."""


class Translation(Protocol):
    """One question and its answer."""

    kind: Kind  # what the upstream is asked

    def question(self, body: Table) -> Table:
        """The question, as the upstream understands it."""

    def answer(self, body: bytes) -> bytes:
        """The whole answer, as the client understands it."""

    def events(self, blocks: bytes) -> bytes:
        """Whole events of the upstream, as events of the client."""


class Guarded:
    """A translation by which an answer of no form that is known is as if the upstream had broken off."""

    def __init__(self, by: Translation) -> None:
        self._by = by
        self.kind = by.kind
        self.question = by.question

    def answer(self, body: bytes) -> bytes:
        """The whole answer, as the client understands it."""
        return self._said(self._by.answer, body)

    def events(self, blocks: bytes) -> bytes:
        """Whole events of the upstream, as events of the client."""
        return self._said(self._by.events, blocks)

    def _said(self, by: Callable[[bytes], bytes], data: bytes) -> bytes:
        try:
            return by(data)
        except ODD as error:
            raise Interrupted(f"what came has not the form of an answer: {type(error).__name__}") from None


def table(data: bytes) -> Table:
    """An answer of an upstream; one that is none is as if the upstream had broken off."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Interrupted(f"not an answer: {error}") from None


def tables(blocks: bytes) -> list[Table]:
    """The events of a stream that hold a table; the word that ends one is an empty table."""
    found: list[Table] = []
    for block in blocks.split(b"\n\n"):
        data = data_of(block)
        if data == b"[DONE]":
            found.append({})
        elif data:
            found.append(table(data))
    return found


def listed(value: Any) -> list[Table]:
    """Parts of a message: a list of tables, whatever stands there."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(content: Any) -> str:
    """The text of a message, be it one text or parts."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in listed(content) if part.get("type") == "text")
