"""How much and how long: what a server takes from one client, and how long a client waits for a server."""

from __future__ import annotations

import resource
from contextlib import suppress

import msgspec

KEPT_DESCRIPTORS = 64  # for files of the process and its listening sockets
PER_CONNECTION = 2  # a client's and, while it is answered, an upstream's


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one server. All hold before a handler sees anything."""

    head_bytes: int = 32 * 1024
    body_bytes: int = 10_000_000
    num_headers: int = 100
    gathered_bytes: int = 256_000_000  # of all requests together that have not come whole
    num_connections: int = 10_000
    head_s: float = (
        10.0  # to the end of headers, from the first byte of a request or a new connection's beginning
    )
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


def most_connections(wanted: int) -> int:
    """As many of the wanted connections as descriptors allow, of which upstreams, books and logs need some too.

    Their limit is raised as far as it may be.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = PER_CONNECTION * wanted + KEPT_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    with suppress(OSError, ValueError):  # a limit beyond the kernel's own
        raised = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft = raised
    return max(1, min(wanted, (soft - KEPT_DESCRIPTORS) // PER_CONNECTION))
