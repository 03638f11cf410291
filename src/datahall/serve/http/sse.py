"""Server-sent events: whole events out of pieces of a stream, and one event as bytes."""

from __future__ import annotations

DONE = b"data: [DONE]\n\n"


def event(data: bytes, name: str = "") -> bytes:
    """One event.

    >>> event(b"{}")
    b'data: {}\\n\\n'
    """
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data) if name else b"data: %b\n\n" % data


def data_of(block: bytes) -> bytes:
    """The data of one event, its lines joined; nothing of comments.

    >>> data_of(b"event: x\\ndata: a\\r\\ndata:b")
    b'a\\nb'
    """
    if block.startswith(b"data: ") and b"\n" not in block:
        return block[6:].rstrip(b"\r")
    found = [line[5:].removeprefix(b" ") for line in block.splitlines() if line.startswith(b"data:")]
    return b"\n".join(found)


class Events:
    """Cuts a stream into events, whatever pieces it comes in; the end of an event is an empty line."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """The events that are complete now, without the empty line."""
        text = self._rest + piece if self._rest else piece
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        *blocks, self._rest = text.split(b"\n\n")
        return [block for block in blocks if block]

    @property
    def rest(self) -> bytes:
        """What has come of an event that is not complete."""
        return self._rest
