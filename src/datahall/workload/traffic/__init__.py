"""Requests as they reach a service: when they arrive, how long they are, what they share."""

from datahall.workload.traffic.arrivals import Arrivals, arrival_times
from datahall.workload.traffic.conversation import Conversation, Cut, Think
from datahall.workload.traffic.lengths import Empirical, Fixed, Lengths, Lognormal, Quantiles, Uniform
from datahall.workload.traffic.presets import Preset, preset, presets
from datahall.workload.traffic.replay import replay, write_trace
from datahall.workload.traffic.requests import CHUNK_ROWS, Requests, in_chunks, join
from datahall.workload.traffic.sharing import reusable_tokens
from datahall.workload.traffic.trace_file import Trace, read_trace
from datahall.workload.traffic.traffic import (
    TraceReplay,
    Traffic,
    TrafficFigures,
    TrafficStream,
    describe,
    expected_tokens,
    generate,
)
from datahall.workload.traffic.users import Users, offered_per_s

__all__ = [
    "CHUNK_ROWS",
    "Arrivals",
    "Conversation",
    "Cut",
    "Empirical",
    "Fixed",
    "Lengths",
    "Lognormal",
    "Preset",
    "Quantiles",
    "Requests",
    "Think",
    "Trace",
    "TraceReplay",
    "Traffic",
    "TrafficFigures",
    "TrafficStream",
    "Uniform",
    "Users",
    "arrival_times",
    "describe",
    "expected_tokens",
    "generate",
    "in_chunks",
    "join",
    "offered_per_s",
    "preset",
    "presets",
    "read_trace",
    "replay",
    "reusable_tokens",
    "write_trace",
]
