"""A published serving run as we understand it: machine, traffic, what was measured."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from datahall.inference.engine.replica import Replica
from datahall.scenario.sections.wanted.promise import Promise
from datahall.validation.measurement import Row, RowError

TPOT, TTFT, THROUGHPUT = "TPOT", "TTFT", "throughput"
MILLI = 1e-3


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """How the requests of a run came."""

    kind: Literal["closed", "offline", "server"]
    prompt_tokens: float  # , the longest where they vary
    output_tokens: float
    users: int = 0  # closed: requests in flight
    limits: Promise | None = None  # server: what 99 of 100 requests must keep at the greatest Poisson rate
    shortest_fraction: float = 1.0  # lengths are uniform between this share of the longest and the longest
    spread_ratio: float = 0.0  # lengths vary as a Weibull law of one over this shape; 1 is exponential
    rounds: int = 10  # requests of each user
    num_requests: int = 0  # all there are; a closed loop is measured until the last has begun
    warm_rounds: int = 0  # requests of each user that are not counted
    unseen_tokens: float = (
        0.0  # decode steps that pass between the first token and the client's first sight of it
    )


class Pools(msgspec.Struct, frozen=True, kw_only=True):
    """Two pools of a run that prefills and decodes on different machines."""

    prefill: Replica
    num_prefill: int
    num_decode: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One row: the machine, the traffic and the measured figures in SI units."""

    row: Row
    replica: Replica
    num_replicas: int
    traffic: Traffic
    measured: dict[str, float]
    pools: Pools | None = None


def lengths(row: Row) -> tuple[int, int]:
    """Tokens of a prompt and of an output, as the workload states them."""
    found = re.search(r"isl=(\d+)(?: osl=(\d+))?", row.text("workload"))
    if not found:
        raise RowError("the row does not state the lengths of prompts and outputs")
    return int(found[1]), int(found[2] or 1)


def whole(row: Row, column: str, default: int) -> int:
    """A whole number, or what stands for an empty cell."""
    text = row.text(column)
    return int(float(text)) if text else default


def latencies(row: Row) -> dict[str, float]:
    """The latencies that a row states [s]."""
    figures = {}
    for metric, column in ((TPOT, "tpot_ms"), (TTFT, "ttft_ms")):
        if row.text(column):
            figures[metric] = row.positive(column) * MILLI
    return figures
