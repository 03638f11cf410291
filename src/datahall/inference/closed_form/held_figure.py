"""What a replica holds as a figure: the load at which one of the latencies reaches its limit, and what it is there."""

from __future__ import annotations

from datahall.breakdown import Breakdown, derived, given, modelled, solved
from datahall.inference.closed_form.capacity import Held
from datahall.inference.closed_form.steady_state import State
from datahall.units import fmt

ENDS = {"cache": "the cache", "sequences": "the number of sequences", "budget": "the budget of a step"}
HELD = "held by a rank"


def rank_figure(most: Held, *beside: Breakdown) -> Breakdown:
    """The most requests of one rank; figures `beside` say what the latency that ends it is made of."""
    first = most.ends == "TTFT"
    latency, limit_s = ("TTFT", most.slo.ttft_s) if first else ("TPOT", most.slo.tpot_s)
    at = f"{latency} at {fmt(most.slo.percentile, 'percentile')}"
    kept = _latency(at, most.state, first, *beside)
    broken, why = None, f"here {ENDS.get(most.ends, most.ends)} ends it before the limit is reached"
    if most.ends == latency and most.beyond.stable:
        broken, why = _latency(f"{at}, a step of the search beyond", most.beyond, first), ""
    elif not most.beyond.stable:
        why = "beyond it requests come faster than they are answered"
    limit = given(f"{latency} limit", limit_s, "s", field=latency.lower())
    return solved(HELD, most.state.rate_per_s, "requests/s", kept, limit, broken, why)


def _latency(name: str, state: State, first: bool, *beside: Breakdown) -> Breakdown:
    """A latency at the percentile of the limit, at the load of one rank."""
    value_s = state.ttft_high_s if first else state.tpot_high_s
    load = derived(HELD, state.rate_per_s, "requests/s", "the load that it is found at")
    decoding = f"{float(f'{state.decoding:.3g}'):,g}"
    by = f"closed form of the steady state at {decoding} sequences: what load and uneven steps add"
    return modelled(name, value_s, "s", by, load, *beside)
