"""How much and how long: what a server takes from one client, and how long a client waits for a server."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one server. All hold before a handler sees anything."""

    head_bytes: int = 32 * 1024
    body_bytes: int = 10_000_000
    num_headers: int = 100
    num_connections: int = 10_000
    head_s: float = 10.0  # from the first byte of a request to the end of its headers
    body_s: float = 60.0  # from there to the end of its body
    idle_s: float = 75.0  # between requests
    write_s: float = 30.0  # that a client may leave an answer unread
    linger_s: float = 2.0  # that a refused client may go on sending, so that it reads why


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long a client waits for each step of one request, and for all of it."""

    connect_s: float = 5.0
    first_byte_s: float = 300.0
    between_s: float = 60.0  # between two pieces of an answer
    total_s: float = 600.0
