"""A stream on its way through: whole events go on as they came, and what it takes is read from them."""

from __future__ import annotations

from datahall.serve.gateway.usage import usage_of_chunk
from datahall.serve.http import Interrupted
from datahall.serve.http.sse import data_of
from datahall.serve.ledger.money import Usage

MOST_EVENT_BYTES = 1_000_000
LAST = b"data: [DONE]"
# by which a stream says that it has come to its end; within a text quotes are escaped, and lines do not break
ENDS = (
    b'"finish_reason":"', b'"finish_reason": "', b'"type":"message_stop"', b'"type": "message_stop"', b"\n" + LAST,
    b"\ndata:[DONE]", b"\nevent: message_stop",
)  # fmt: skip


class Passage:
    """Lets whole events through, so that a stream that dies within one can still say so."""

    __slots__ = ("_hides_usage", "_rest", "is_ended", "num_bytes", "num_events", "usage")

    def __init__(self, hides_usage: bool) -> None:
        self._hides_usage = hides_usage  # the client did not ask for the event that says it
        self._rest = b""
        self.num_bytes = 0
        self.num_events = 0
        self.is_ended = False  # not only over: the upstream has said its last
        self.usage: Usage | None = None

    def feed(self, piece: bytes) -> bytes:
        """What can go on now."""
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
        self.num_bytes += len(piece)
        self.num_events += piece.count(b"\n\n")
        if not self.is_ended:
            self.is_ended = is_end(piece)
        if b'"usage":{' in piece or b'"usage": {' in piece:
            return self._read(piece)
        return piece

    def rest(self) -> bytes:
        """What goes on when nothing more comes: a last word without its empty line, and no part of an event."""
        rest = self._rest.strip()
        if rest == LAST:
            self.is_ended = True
            return rest + b"\n\n"
        if not self.is_ended:
            raise Interrupted("it has no end")
        return b""

    def delivered(self, estimate: Usage) -> Usage:
        """What to charge: as the upstream said, or, where it could not, an event for a token."""
        said = self.usage
        if said is not None and self.is_ended:
            return said
        counted = min(self.num_events, estimate.completion)
        if said is None:
            return Usage(estimate.prompt, 0, counted)
        return Usage(said.prompt, said.cached, max(said.completion, counted))  # said at the beginning

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


def is_end(piece: bytes) -> bool:
    """Whether whole events have the end of a stream among them.

    >>> is_end(b'data: {"text": "\\\\"finish_reason\\\\": \\\\"stop"}'), is_end(b"data: [DONE]")
    (False, True)
    """
    return piece.startswith(LAST) or any(end in piece for end in ENDS)
