"""How long a service is simulated, and which part of that is measured.

A run fills an empty fleet, holds it under its load, and drains it when no more requests come.  Only the middle says
what the service does for long: the requests that arrive in it are measured.

    warm-up = drain = min(2 stays, 1/6 of the run)      a stay: TTFT + TPOT · output tokens, in closed form

A run of conversations begins with those that are open and with what caches have of them, both in closed form.  Its
warm-up lasts until caches have dropped what they drop by themselves, or until hardly any turn is that late:

    warm-up = min(time that caches keep what nobody uses, 5 · (stay + think), 1/2 of the run)
"""

from __future__ import annotations

from math import ceil, inf, isfinite
from typing import NamedTuple

from datahall.inference.closed_form.fleet_state import requests_per_s
from datahall.inference.closed_form.load import load_of
from datahall.inference.closed_form.steady_state import State
from datahall.inference.simulation.state import ALL_ROWS
from datahall.scenario.sections.traffic import DEFAULT_REQUESTS
from datahall.workload.traffic.conversation import UnderWay
from datahall.workload.traffic.traffic import Traffic

EDGE_STAYS, EDGE_FRACTION = 2.0, 1 / 6  # that fill the fleet, and again that drain it
UNKNOWN_FRACTION = 0.1  # of a run, where nobody knows how long a request stays
LEAST_CYCLES, MOST_CYCLES = 6, 12  # stays, with the pause between them, that a run is long when nobody says
MANY_REQUESTS = 200_000  # for which the fewer cycles do
SETTLED_GAPS = 5.0  # times between turns, after which 1 of 150 comes
TURN_REQUESTS = 2500  # so many conversations that their rate is within 2 %, if each had one turn


class MeasuredWindow(NamedTuple):
    """The requests that are measured: those that arrive from a time to another, up to a row."""

    start_s: float = 0.0
    end_s: float = inf
    num_rows: int = ALL_ROWS


def stay_s(traffic: Traffic, steady: State | None) -> float:
    """How long a request stays in closed form: TTFT + TPOT · output; without the wait where more comes than is held."""
    if steady is None:
        return 0.0
    waits_s = steady.ttft_s if isfinite(steady.ttft_s) else 0.0
    return waits_s + steady.tpot_s * load_of(traffic).output


def settled_s(traffic: Traffic, going: UnderWay) -> float:
    """Until caches have dropped what they drop, or hardly any turn is that late."""
    return min(going.remembered_s, SETTLED_GAPS * (going.stay_s + traffic.conversation.think.mean_s))


def warm_s(traffic: Traffic, stay: float, going: UnderWay | None, coming_s: float) -> float:
    """Until users have begun, and until caches and conversations have settled: at most half of the run.

    Users begin spread over a stay and a pause, and pause first: their first round takes two pauses.
    """
    round_s = stay + 2 * traffic.users.think.mean_s if traffic.users is not None and stay else 0.0
    return round_s if going is None else max(round_s, min(settled_s(traffic, going), coming_s / 2.0))


def enough_turns(traffic: Traffic, going: UnderWay, *, least: int) -> int:
    """Requests of a run of conversations: those of the warm-up, and so many that their rate is that which was asked.

    A conversation of geometric turns brings several requests or none: their number has 2 · turns − 1 times the variance
    of single ones.
    """
    uneven = 2.0 * traffic.conversation.num_turns - 1.0
    before = requests_per_s(traffic, going.stay_s) * settled_s(traffic, going)
    return ceil(before + max(least, min(uneven * TURN_REQUESTS, MANY_REQUESTS)))


def enough_requests(traffic: Traffic, stay: float) -> int:
    """Requests of a run that is long beside a stay, without end where there are many at once."""
    if traffic.users is not None:
        at_once, cycles = float(traffic.users.num), MANY_REQUESTS / traffic.users.num
    elif traffic.arrivals is not None and not is_at_once(traffic):
        at_once = traffic.arrivals.rate_per_s * stay
        cycles = MANY_REQUESTS / at_once if at_once else 0.0
    else:
        return DEFAULT_REQUESTS
    return max(DEFAULT_REQUESTS, ceil(min(max(cycles, LEAST_CYCLES), MOST_CYCLES) * at_once))


def is_at_once(traffic: Traffic) -> bool:
    """Whether all requests, or all conversations, begin at 0."""
    return traffic.arrivals is not None and not isfinite(traffic.arrivals.rate_per_s)


def expected_s(traffic: Traffic, stay: float = 0.0) -> float:
    """How long requests come, where that is known before they do; otherwise 0."""
    limit_s = traffic.duration_s or inf
    if traffic.users is not None and traffic.num_requests and stay:
        round_s = stay + traffic.users.think.mean_s
        return min(limit_s, traffic.num_requests * round_s / traffic.users.num)
    if is_at_once(traffic):
        return 0.0
    if traffic.arrivals is None or not traffic.num_requests:
        return traffic.duration_s
    sessions = traffic.num_requests / traffic.conversation.num_turns
    return min(limit_s, sessions / traffic.arrivals.rate_per_s)


def measured_window(coming_s: float, stay: float, *, num_requests: int, first_s: float) -> MeasuredWindow:
    """Of a time in which requests come: all of them where it has no middle, as a burst or a first round of users.

    The end is told by the number of requests, where that is known: they may come faster or slower than is expected.
    """
    if not stay:
        return MeasuredWindow(UNKNOWN_FRACTION * coming_s)
    edge_s = min(EDGE_STAYS * stay, EDGE_FRACTION * coming_s)
    start_s = max(edge_s, first_s)
    if coming_s <= stay or start_s >= coming_s - edge_s:
        return MeasuredWindow()
    if num_requests:
        return MeasuredWindow(start_s, num_rows=round(num_requests * (1.0 - edge_s / coming_s)))
    return MeasuredWindow(start_s, coming_s - edge_s)
