"""Requests as they reach a service: when they arrive, how long they are, what they share."""

from __future__ import annotations

from datahall.lazy import exporter

_HOMES = {
    "arrivals": (
        "Arrivals",
        "arrival_times",
    ),
    "conversation": (
        "Conversation",
        "Cut",
        "Think",
    ),
    "shapes": (
        "Empirical",
        "Fixed",
        "Lengths",
        "Lognormal",
        "Quantiles",
        "Uniform",
    ),
    "presets": (
        "Preset",
        "preset",
        "presets",
    ),
    "replay": (
        "replay",
        "write_trace",
    ),
    "requests": (
        "CHUNK_ROWS",
        "Requests",
        "in_chunks",
        "join",
    ),
    "sharing": ("reusable_tokens",),
    "trace_file": (
        "Trace",
        "read_trace",
    ),
    "traffic": (
        "TraceReplay",
        "Traffic",
        "TrafficFigures",
        "TrafficStream",
        "describe",
        "expected_tokens",
        "generate",
    ),
    "users": (
        "Users",
        "offered_per_s",
    ),
}
__getattr__ = exporter(__name__, _HOMES)
__all__ = [name for names in _HOMES.values() for name in names]
