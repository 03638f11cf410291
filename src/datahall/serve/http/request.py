"""One request as a handler sees it: complete, within limits, unambiguous."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, frozen=True):
    """A whole request; names of headers are in lower case, repeated ones joined by a comma."""

    method: str
    path: str
    query: str = ""
    headers: dict[str, str] = {}
    body: bytes = b""
    peer: str = ""  # address of who asks
    version: str = "1.1"

    def header(self, name: str, otherwise: str = "") -> str:
        """A header, whatever the case of its name."""
        return self.headers.get(name.lower(), otherwise)
