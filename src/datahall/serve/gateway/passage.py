"""A stream on its way through: whole events go on as they came, and what it takes is read from them."""

from __future__ import annotations

from typing import Any

import msgspec

from datahall.serve.gateway.usage import usage_of_chunk
from datahall.serve.http import Failure, Interrupted
from datahall.serve.http.sse import data_of
from datahall.serve.ledger.money import Usage

MOST_EVENT_BYTES = 1_000_000
OTHER_EVENTS = 8  # of a stream that hold no token: role, beginnings and ends, usage
LAST = b"data: [DONE]"
# by which a stream says that it has come to its end; within a text quotes are escaped, and lines do not break
ENDS = (
    b'"finish_reason":"', b'"finish_reason": "', b'"type":"message_stop"', b'"type": "message_stop"', b"\n" + LAST,
    b"\ndata:[DONE]", b"\nevent: message_stop",
)  # fmt: skip


class StreamFailed(Failure):
    """An upstream has said within a stream that it failed."""

    def __init__(self, message: str, is_asked_for: bool = False) -> None:
        super().__init__(message)
        self.is_asked_for = is_asked_for  # by the question, and says nothing of the upstream


class Passage:
    """Lets whole events through, so that a stream that dies within one can still say so."""

    __slots__ = ("_hides_usage", "_rest", "failure", "is_ended", "num_bytes", "num_events", "usage")

    def __init__(self, hides_usage: bool) -> None:
        self._hides_usage = hides_usage  # the client did not ask for the event that says it
        self._rest = b""
        self.num_bytes = 0
        self.num_events = 0
        self.is_ended = False  # not only over: the upstream has said its last
        self.usage: Usage | None = None
        self.failure: StreamFailed | None = (
            None  # that the upstream said; told when what came before has gone on
        )

    def feed(self, piece: bytes) -> bytes:
        """What can go on now."""
        if self.failure is not None:
            raise self.failure
        if self._rest:
            piece = self._rest + piece
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n")
        if piece.endswith(b"\n\n"):
            self._rest = b""
        else:
            end = piece.rfind(b"\n\n") + 2
            if end == 1:
                end = 0
            piece, self._rest = piece[:end], piece[end:]
            if len(self._rest) > MOST_EVENT_BYTES:
                raise Interrupted(f"an event of more than {MOST_EVENT_BYTES} bytes")
        if b'"error"' in piece:
            piece = self._until_error(piece)
        self.num_bytes += len(piece)
        self.num_events += piece.count(b"\n\n")
        if not self.is_ended:
            self.is_ended = is_end(piece)
        if b'"usage":{' in piece or b'"usage": {' in piece:
            return self._read(piece)
        return piece

    def rest(self) -> bytes:
        """What goes on when nothing more comes: a last word without its empty line, and no part of an event."""
        if self.failure is not None:
            raise self.failure
        rest = self._rest.strip()
        if rest == LAST:
            self.is_ended = True
            return rest + b"\n\n"
        if not self.is_ended:
            raise Interrupted("it has no end")
        return b""

    @property
    def num_tokens(self) -> int:
        """Tokens that have come at least, one in an event, but for those that say something else."""
        return max(0, self.num_events - OTHER_EVENTS)

    def delivered(self, estimate: Usage) -> Usage:
        """What to charge: as the upstream said, or, where it could not, an event for a token."""
        said = self.usage
        if said is not None and self.is_ended:
            return said
        counted = max(min(self.num_events, estimate.completion), self.num_tokens)
        if said is None:
            return Usage(estimate.prompt, 0, counted)
        return Usage(said.prompt, said.cached, max(said.completion, counted))  # said at the beginning

    def _until_error(self, piece: bytes) -> bytes:
        """The events before the one that says an error; all of them where none does."""
        blocks = piece.split(b"\n\n")
        for place, block in enumerate(blocks):
            if b'"error"' in block and (failure := failure_of(data_of(block))) is not None:
                self.failure, self._rest = failure, b""
                return b"\n\n".join([*blocks[:place], b""])
        return piece

    def _read(self, piece: bytes) -> bytes:
        kept = []
        for block in piece.split(b"\n\n")[:-1]:
            usage, is_alone = usage_of_chunk(data_of(block), self.num_bytes)
            if usage is not None:
                before = self.usage
                if before is not None and not usage.prompt:  # said at the beginning
                    usage = Usage(before.prompt, before.cached, usage.completion)
                self.usage = usage
                if is_alone and self._hides_usage:
                    self.num_events -= 1
                    continue
            kept.append(block)
        return b"\n\n".join([*kept, b""]) if kept else b""


class _Event(msgspec.Struct):
    error: Any = None


_event = msgspec.json.Decoder(_Event)


def failure_of(data: bytes) -> StreamFailed | None:
    """The error that an event of a stream says, if it does.

    >>> failure_of(b'{"error": {"message": "out of memory", "code": 500}}'), failure_of(b'{"error": null}')
    (StreamFailed('out of memory'), None)
    """
    try:
        error = _event.decode(data).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not error:
        return None
    said = error if isinstance(error, dict) else {"message": error}
    message, code = said.get("message"), said.get("code")
    is_asked_for = isinstance(code, int) and 400 <= code < 500
    return StreamFailed(message if isinstance(message, str) and message else "an error", is_asked_for)


def is_end(piece: bytes) -> bool:
    """Whether whole events have the end of a stream among them.

    >>> is_end(b'data: {"text": "\\\\"finish_reason\\\\": \\\\"stop"}'), is_end(b"data: [DONE]")
    (False, True)
    """
    return piece.startswith(LAST) or any(end in piece for end in ENDS)
