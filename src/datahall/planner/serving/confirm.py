"""Candidates simulated under their load: replicas are added until the limits are kept, or taken away while they are."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite
from typing import get_args

import msgspec

from datahall.basis import Basis
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.fleet.span import measured_window
from datahall.inference.simulation.simulate import simulate_serving
from datahall.planner.serving.candidate import Candidate
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.traffic import Traffic, generate

BASES = get_args(Basis)  # what constants rest on, the weakest first
LEAST_SIMULATED = 4  # replicas: more of the same under the same share behave nearly alike
REQUESTS_SIMULATED, STAYS_SIMULATED = 4500, 15  # at least, and times that a request stays
STEP, MOST_ADDED = (
    0.05,
    1.0,
)  # of the replicas: the first step of the search, and as many as are added at most
RESOLUTION = 0.01  # of the replicas, at which the search ends


def confirmed(candidates: Sequence[Candidate], *, seed: int) -> tuple[Candidate, ...]:
    """The best of each chip, simulated; others that could do with fewer chips are simulated with so many.

    Of chips that need equally many the one that is known best comes first.
    """
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        name = candidate.replica.chip.name
        known = best.get(name)
        if known is None or not known.keeps:
            found = confirm(candidate, seed=seed)
            best[name] = found if known is None or found.keeps else known
        elif candidate.num_least * candidate.replica.num_chips < known.num_chips:
            rival = confirm(candidate, seed=seed, most=(known.num_chips - 1) // candidate.replica.num_chips)
            best[name] = rival if rival.keeps else known
    return tuple(sorted(best.values(), key=_order))


def _order(candidate: Candidate) -> tuple[bool, int, int]:
    return not candidate.keeps, candidate.num_chips, -BASES.index(candidate.held.price.level)


def confirm(candidate: Candidate, *, seed: int, most: int = 0) -> Candidate:
    """The fewest replicas, at most so many, that keep the limits when simulated under the load and the headroom on top.

    From what the closed form asks for in steps that double, up or down, until one keeps the limits and a smaller one
    does not; then halfway between the two.
    """
    most = most or ceil((1.0 + MOST_ADDED) * candidate.num_replicas)
    tried = min(candidate.num_replicas, most)
    step = max(1, round(STEP * tried))
    best = _simulated(candidate, tried, seed)
    broken, enough = (0, tried) if best.keeps else (tried, 0)
    while (broken < most and not enough) or (enough > 1 and not broken):
        tried = max(1, enough - step) if enough else min(most, broken + step)
        found, step = _simulated(candidate, tried, seed), 2 * step
        best = found if found.keeps or not enough else best
        broken, enough = (broken, tried) if found.keeps else (tried, enough)
    while best.keeps and enough - broken > max(1.0, RESOLUTION * enough):
        tried = (broken + enough) // 2
        found = _simulated(candidate, tried, seed)
        best = found if found.keeps else best
        broken, enough = (broken, tried) if found.keeps else (tried, enough)
    return msgspec.structs.replace(best, num_fewer=enough - broken if best.keeps and broken else 0)


def _simulated(candidate: Candidate, count: int, seed: int) -> Candidate:
    """Some of so many replicas under their share of the load: as many as the least number of requests keeps busy."""
    waits_s = candidate.state.ttft_s if isfinite(candidate.state.ttft_s) else 0.0
    stay_s = waits_s + candidate.state.tpot_s * candidate.demand.load.output
    each = candidate.full_rate_per_s / count
    num = min(count, max(LEAST_SIMULATED, int(REQUESTS_SIMULATED / (STAYS_SIMULATED * each * stay_s))))
    share = each * num
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
    added = count - candidate.num_replicas
    return msgspec.structs.replace(candidate, num_replicas=count, num_added=added, run=run)


def _at_rate(traffic: Traffic, rate_per_s: float) -> Arrivals:
    """The same kind of arrivals at another rate of requests; conversations come, each with its turns."""
    per_s = rate_per_s / max(1.0, traffic.conversation.num_turns)
    if traffic.arrivals is None:
        return Arrivals(rate_per_s=per_s)
    return msgspec.structs.replace(traffic.arrivals, rate_per_s=per_s)
