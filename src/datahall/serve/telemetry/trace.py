"""The context of a trace as W3C has it: which trace a request is part of, and whether anybody keeps it.

Whether is decided at its head, by who began it or by lot, before anything is made: what is not kept costs a look at a
header.
"""

from __future__ import annotations

import random
import re

import msgspec

_HEADER = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1


class Trace(msgspec.Struct, frozen=True, gc=False):
    """The place of a request in a trace."""

    trace_id: str
    span_id: str  # of the request here
    parent_id: str = ""  # of who asked
    is_kept: bool = False

    def header(self, span_id: str = "") -> str:
        """What an upstream is told, as a child of the request here or of one call of it."""
        return f"00-{self.trace_id}-{span_id or self.span_id}-{'01' if self.is_kept else '00'}"


def new_span_id() -> str:
    return f"{random.getrandbits(64) or 1:016x}"


def trace_of(traceparent: str, kept_fraction: float) -> Trace | None:
    """The trace that a request says it is part of, or a new one by lot; None where there is neither.

    >>> trace_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", 0.0).parent_id
    '00f067aa0ba902b7'
    """
    if traceparent:
        found = _HEADER.fullmatch(traceparent)
        if found is not None:
            version, trace_id, parent_id, flags, more = found.groups()
            legal = version != "ff" and not (version == "00" and more)
            if legal and int(trace_id, 16) and int(parent_id, 16):
                return Trace(trace_id, new_span_id(), parent_id, bool(int(flags, 16) & _SAMPLED))
    if kept_fraction > 0.0 and random.random() < kept_fraction:
        return Trace(f"{random.getrandbits(128) or 1:032x}", new_span_id(), "", True)
    return None
