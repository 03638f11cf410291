"""How long a service is simulated, and which part of that is measured.

A run fills an empty fleet, holds it under its load, and drains it when no more requests come.  Only the middle says
what the service does for long: requests that arrive in it are measured, and rates are of what ends in it.

    warm-up = drain = min(2 stays, 1/6 of the run)      a stay: TTFT + TPOT · output tokens, in closed form
"""

from __future__ import annotations

from math import ceil, inf, isfinite
from typing import NamedTuple

from datahall.inference.closed_form.load import load_of
from datahall.inference.closed_form.steady_state import State
from datahall.scenario.sections.traffic import DEFAULT_REQUESTS
from datahall.workload.traffic.traffic import Traffic

EDGE_STAYS, EDGE_FRACTION = 2.0, 1 / 6  # that fill the fleet, and again that drain it
UNKNOWN_FRACTION = 0.1  # of a run, where nobody knows how long a request stays
LEAST_CYCLES, MOST_CYCLES = 6, 12  # stays, with the pause between them, that a run is long when nobody says
MANY_REQUESTS = 200_000  # for which the fewer cycles do


class Measured(NamedTuple):
    """The part of a run whose arrivals are measured."""

    start_s: float
    end_s: float


def stay_s(traffic: Traffic, steady: State | None) -> float:
    """From the arrival of a request to its last token on average, in closed form; 0 where that knows no end."""
    if steady is None:
        return 0.0
    stay = steady.ttft_s + steady.tpot_s * load_of(traffic).output
    return stay if isfinite(stay) else 0.0


def enough_requests(traffic: Traffic, stay: float) -> int:
    """Requests of a run that is long beside a stay, without end where there are many at once."""
    if traffic.users is not None:
        at_once, cycles = float(traffic.users.num), MANY_REQUESTS / traffic.users.num
    elif traffic.arrivals is not None and isfinite(traffic.arrivals.rate_per_s):
        at_once = traffic.arrivals.rate_per_s * stay
        cycles = MANY_REQUESTS / at_once if at_once else 0.0
    else:
        return DEFAULT_REQUESTS
    return max(DEFAULT_REQUESTS, ceil(min(max(cycles, LEAST_CYCLES), MOST_CYCLES) * at_once))


def expected_s(traffic: Traffic, stay: float = 0.0) -> float:
    """How long requests come, where that is known before they do; otherwise 0."""
    if traffic.users is not None and not traffic.duration_s and stay:
        return traffic.num_requests * (stay + traffic.users.think.mean_s) / traffic.users.num
    if traffic.arrivals is None or not isfinite(traffic.arrivals.rate_per_s):
        return traffic.duration_s
    sessions = traffic.num_requests / traffic.conversation.num_turns
    return traffic.duration_s or sessions / traffic.arrivals.rate_per_s


def measured_part(coming_s: float, stay: float, *, rush_s: float = 0.0) -> Measured:
    """Of a time in which requests come; without the first round of users."""
    if coming_s <= stay:  # nothing lasts: a burst
        return Measured(0.0, inf)
    if not stay:
        return Measured(UNKNOWN_FRACTION * coming_s, inf)
    edge_s = min(EDGE_STAYS * stay, EDGE_FRACTION * coming_s)
    start_s = max(edge_s, rush_s)
    return Measured(start_s, coming_s - edge_s if coming_s - edge_s > start_s else inf)
