"""Candidates simulated under their load, with replicas added until the limits are kept."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite

import msgspec

from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.fleet.span import measured_window
from datahall.inference.simulation.simulate import simulate_serving
from datahall.planner.serving.candidate import Candidate
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.traffic import Traffic, generate

MOST_SIMULATED = 4  # replicas: more of the same under the same share behave alike
REQUESTS_SIMULATED, STAYS_SIMULATED = 4500, 15  # at least, and times that a request stays
STEP_ADDED, MOST_ADDED = 0.05, 1.0  # of the replicas, where the limits were not kept when it was simulated


def confirmed(candidates: Sequence[Candidate], *, seed: int) -> tuple[Candidate, ...]:
    """The best of each chip, simulated; where that takes more replicas, the next best ones are simulated too."""
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        name = candidate.replica.chip.name
        known = best.get(name)
        if known is None:
            best[name] = confirm(candidate, seed=seed)
        elif candidate.num_chips < known.num_chips:
            rival = confirm(candidate, seed=seed, below=known.num_chips)
            if rival.keeps and (rival.num_chips < known.num_chips or not known.keeps):
                best[name] = rival
    return tuple(sorted(best.values(), key=lambda candidate: (not candidate.keeps, candidate.num_chips)))


def confirm(candidate: Candidate, *, seed: int, below: int = 0) -> Candidate:
    """Simulate a candidate under its load and the headroom on top, and add replicas while the limits are not kept.

    Steps double until they are, then halve back; with `below`, no further than so many chips.
    """

    def with_more(steps: int) -> Candidate:
        return _simulated(candidate, steps * step, seed)

    step = max(1, round(STEP_ADDED * candidate.num_replicas))
    most = ceil(MOST_ADDED * candidate.num_replicas / step) + 1
    if below:
        most = min(most, max(0, below // candidate.replica.num_chips - candidate.num_replicas) // step)
    broken, enough = 0, 1
    best = with_more(0)
    while not best.keeps:
        if broken == most:
            return best
        enough = min(2 * broken or 1, most)
        best = with_more(enough)
        broken = broken if best.keeps else enough
    while best.num_added and enough - broken > 1:
        middle = (broken + enough) // 2
        fewer = with_more(middle)
        best, broken, enough = (fewer, broken, middle) if fewer.keeps else (best, middle, enough)
    return best


def _simulated(candidate: Candidate, added: int, seed: int) -> Candidate:
    """Some of the replicas, and of those added, under their share of the load."""
    count = candidate.num_replicas + added
    num = min(MOST_SIMULATED, count)
    share = candidate.full_rate_per_s * num / count
    waits_s = candidate.state.ttft_s if isfinite(candidate.state.ttft_s) else 0.0
    stay_s = waits_s + candidate.state.tpot_s * candidate.demand.load.output
    traffic = candidate.demand.traffic
    asked = msgspec.structs.replace(
        traffic,
        arrivals=_at_rate(traffic, share),
        users=None,
        num_requests=max(REQUESTS_SIMULATED, int(STAYS_SIMULATED * share * stay_s)),
    )
    window = measured_window(asked.num_requests / share, stay_s, num_requests=asked.num_requests)
    run = simulate_serving(
        Fleet(pools=(Pool(replica=candidate.replica, count=num, table=candidate.held.price.table),)),
        generate(asked, seed),
        slo=candidate.demand.promise,
        seed=seed,
        warmup_s=window.start_s,
        measure_until_s=window.end_s,
        measure_rows=window.num_rows,
    )
    return msgspec.structs.replace(candidate, num_replicas=count, num_added=added, run=run)


def _at_rate(traffic: Traffic, rate_per_s: float) -> Arrivals:
    """The same kind of arrivals at another rate of requests; conversations come, each with its turns."""
    per_s = rate_per_s / max(1.0, traffic.conversation.num_turns)
    if traffic.arrivals is None:
        return Arrivals(rate_per_s=per_s)
    return msgspec.structs.replace(traffic.arrivals, rate_per_s=per_s)
