"""Figures of a replayed run, taken as its benchmark takes them."""

from __future__ import annotations

import numpy as np

from datahall.inference.simulation.run import Records
from datahall.validation.inference.run import THROUGHPUT, TPOT, TTFT, Traffic

FILLED = 0.4  # of an offline run's time, until young requests and old ones are mixed as they stay


def figures_of(traffic: Traffic, records: Records) -> dict[str, float]:
    """Means over requests in seconds, and output tokens per second."""
    if traffic.num_requests and traffic.kind == "closed":
        return _while_full(traffic, records)
    counted = records.row >= traffic.warm_rounds * traffic.users
    tpot_s = float(np.nanmean(records.tpot_s[counted])) if np.any(records.output > 1) else float("nan")
    return {
        TTFT: float(np.mean(records.ttft_s[counted])),
        TPOT: tpot_s,
        THROUGHPUT: _throughput(traffic, records),
    }


def _while_full(traffic: Traffic, records: Records) -> dict[str, float]:
    """Of the time from when all places are taken until nobody waits for one any more.

    The last request comes when a place falls free and none is left behind it.
    """
    start_s = float(records.first_s[records.row < traffic.users].max())
    stop_s = max(float(records.arrival_s.max()), start_s)
    if stop_s - start_s < (records.end_s.max() - start_s) * 1e-3:  # the list is no longer than the places
        stop_s = float(np.median(records.end_s))
    tokens, streaming_s = _streamed(records, start_s, stop_s)
    return {
        TTFT: float(np.mean(records.ttft_s)),
        TPOT: streaming_s / tokens,
        THROUGHPUT: tokens / (stop_s - start_s),
    }


def _streamed(records: Records, start_s: float, stop_s: float) -> tuple[float, float]:
    """Output tokens between two times, and how long their requests decoded in all: each at a steady pace."""
    decoding_s = np.maximum(records.end_s - records.first_s, 1e-9)
    begun, ended = (np.clip((at_s - records.first_s) / decoding_s, 0.0, 1.0) for at_s in (start_s, stop_s))
    share = ended - begun
    return float((share * records.output).sum()), float((share * decoding_s).sum())


def _throughput(traffic: Traffic, records: Records) -> float:
    """Output tokens per second: of an offline run while the engine is full, of a closed loop by Little's law."""
    arrival_s, end_s, output = records.arrival_s, records.end_s, records.output
    if traffic.kind == "closed":
        middle = slice(traffic.users, max(traffic.users + 1, arrival_s.size - traffic.users))
        stay_s = (end_s - arrival_s)[middle]
        return float(traffic.users * output[middle].sum() / stay_s.sum())
    if traffic.spread_ratio:  # a run of many thousand requests: neither filling nor draining counts
        stop_s = float(records.scheduled_s.max())
        return _streamed(records, FILLED * stop_s, stop_s)[0] / ((1.0 - FILLED) * stop_s)
    return float(output.sum() / (end_s.max() - arrival_s.min()))
