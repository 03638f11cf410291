"""The busiest stretch of a recorded trace: the part of it that a service is made for.

rate(i) = requests from the i-th that begins until one begins W later or more / time between these two beginnings
busiest = the i whose rate is greatest, over all stretches that lie in the trace; all of it where it is no longer than W

A stretch ends where the next request comes, not at W: of equal gaps it has their rate, whatever W is.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError, option
from datahall.events import stream
from datahall.workload.traffic.recorded.replay import replay
from datahall.workload.traffic.recorded.trace_file import Trace
from datahall.workload.traffic.requests import Floats, Ints, Requests, join
from datahall.workload.traffic.traffic import TraceReplay

CLOSE = 1.0 - 1e-9  # of a window: times that are added up end a little before it


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a trace as it is played: its requests by the time since it began, and how often they come."""

    trace: Trace  # of its own requests, which may be played over and over
    start_s: float  # since the trace began
    num_recorded: int  # requests of the whole trace that an engine accepts
    num_too_long: int  # and others, which pass its context
    mean_per_s: float  # of those that it accepts, in the mean of the whole trace

    @property
    def requests(self) -> Requests:
        return self.trace.requests

    @property
    def rate_per_s(self) -> float:
        return self.trace.rate_per_s

    @property
    def span_s(self) -> float:
        return self.trace.duration_s

    @property
    def is_whole(self) -> bool:
        return len(self.requests) == self.num_recorded

    def thinned(self, share: float, seed: int) -> Trace:
        """What so many of the sessions bring, drawn by a seed: what comes to some of many replicas."""
        own = self.requests
        sessions, which = np.unique(own.session, return_inverse=True)
        kept = (stream(seed, "traffic", "share").random(sessions.size) < share)[which]
        return msgspec.structs.replace(self.trace, requests=own.chosen(kept)) if kept.any() else self.trace


def busiest(played: TraceReplay, window_s: float, max_context: int = 0) -> Stretch:
    """The stretch of a trace in which most requests a second come; those that pass a context are refused.

    A turn that waits for an earlier one comes with the request that its conversation begins with.
    """
    trace = played.read()
    recorded = join(replay(trace, speed_ratio=played.speed_ratio))
    whole = recorded.chosen(_accepted(recorded, max_context)) if max_context else recorded
    end_s = trace.duration_s / played.speed_ratio
    if not len(whole) or not end_s:
        raise _without_rate(played, len(recorded), len(whole), max_context)
    first, begins = _first_turn(whole), np.flatnonzero(whole.after < 0)
    edges_s = np.append(whole.arrival_s[begins], end_s)
    before = np.append(0, np.cumsum(np.bincount(first, minlength=len(whole))[begins]))
    start, stop = _busiest(edges_s, before, window_s)
    own = whole.chosen(np.isin(first, begins[start:stop]))
    since_s = np.where(own.after < 0, own.arrival_s - edges_s[start], own.arrival_s)
    return Stretch(
        trace=msgspec.structs.replace(
            trace,
            requests=msgspec.structs.replace(own, arrival_s=since_s),
            span_s=float(edges_s[stop] - edges_s[start]),
        ),
        start_s=float(edges_s[start]),
        num_recorded=len(whole),
        num_too_long=len(recorded) - len(whole),
        mean_per_s=len(whole) / end_s,
    )


def _busiest(edges_s: Floats, before: Ints, window_s: float) -> tuple[int, int]:
    """The beginnings from which to which the rate is greatest; `edges_s`: all of them, and the end of the trace."""
    last = np.searchsorted(edges_s, edges_s[:-1] + window_s * CLOSE, side="left")
    inside = np.flatnonzero(last < edges_s.size)
    if not inside.size:
        return 0, edges_s.size - 1
    rates = (before[last[inside]] - before[inside]) / (edges_s[last[inside]] - edges_s[inside])
    start = int(inside[np.argmax(rates)])
    return start, int(last[start])


def _accepted(requests: Requests, max_context: int) -> NDArray[np.bool_]:
    """Requests that fit a context, as do all that they wait for."""
    late = requests.prompt + requests.output > max_context
    follows = requests.after >= 0
    while np.any(further := follows & ~late & late[requests.after]):
        late |= further
    return np.asarray(~late)


def _without_rate(played: TraceReplay, recorded: int, accepted: int, max_context: int) -> ScenarioError:
    instead = f"{option('rate', 5)} with {option('isl', 1000)}"
    if not accepted:
        return ScenarioError(
            f"none of the {recorded:,} requests of {played.path} fits the context of {max_context:,} tokens",
            field="trace",
            hint="a model with a longer context",
        )
    return ScenarioError(
        f"the {accepted:,} requests of {played.path} come at one time, from which no rate follows",
        field="trace",
        hint=f"a trace that goes on for a while, or {instead}",
    )


def _first_turn(requests: Requests) -> NDArray[np.int64]:
    """The row that each row waits for in the end: its own where it waits for none."""
    first = np.where(requests.after < 0, np.arange(len(requests)), requests.after)
    while np.any(requests.after[first] >= 0):
        first = first[first]
    return first
