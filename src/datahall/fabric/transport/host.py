"""What a transport asks of a host: cores that move its bytes, and memory that they pass through."""

from __future__ import annotations

from math import isinf

from datahall.catalog.entries.network.transport import Transport
from datahall.fabric.transport.message import kept_fraction
from datahall.fabric.transport.path import Path


def cores(transport: Transport, path: Path) -> float:
    """Cores that receive what a port delivers: B · kept / rate of a core; none where the adapter alone does it."""
    if isinf(transport.core_bytes_per_s):
        return 0.0
    return path.port_bytes_per_s * kept_fraction(transport) / transport.core_bytes_per_s


def memory_bytes_per_s(transport: Transport, path: Path) -> float:
    """Traffic of the receiving host's memory while a port is full [B/s].

    One write, and a read and a write for each copy; nothing where the adapter writes into the memory of the chip.
    """
    if not transport.num_copies:
        return 0.0
    return path.port_bytes_per_s * kept_fraction(transport) * (1.0 + 2.0 * transport.num_copies)
