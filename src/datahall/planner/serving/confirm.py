"""Candidates simulated under their load, with the fewest replicas with which they keep the limits."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple, get_args

import msgspec

from datahall.basis import Basis
from datahall.inference.closed_form.conversations import stay_of
from datahall.inference.closed_form.fleet_state import closed_form, requests_per_s, under_way_of
from datahall.inference.closed_form.steady_state import at_concurrency
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.fleet.span import EDGE_STAYS, enough_turns, measured_window, stay_s, warm_s
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.demand import Demand
from datahall.planner.serving.fewest import fewest
from datahall.planner.serving.length import (
    LEAST_SIMULATED,
    MOST_SIMULATED,
    REQUESTS_SIMULATED,
    STAYS_SIMULATED,
    USUALLY_SIMULATED,
    Length,
    glance,
    length_of,
    longest_wait_s,
    wide,
)
from datahall.planner.serving.objective import CHIPS, Aim
from datahall.scenario.words import Routing
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.recorded.replay import replay
from datahall.workload.traffic.recorded.stretch import Stretch
from datahall.workload.traffic.traffic import Traffic, generate

BASES = get_args(Basis)  # what constants rest on, the weakest first
RECORDED_SIMULATED = 20_000  # requests of a stretch of a trace, before only some of its replicas are
HOPELESS = 0.8  # of the share that has to keep the limits: what begins with less does not end with enough
TURNS_ROUTING: Routing = "session"  # a conversation stays where its history is
MOST_ADDED = (
    1.0  # of the replicas: as many are added at most, and one for each request that comes with others
)


class Confirmed(NamedTuple):
    """What was simulated: the best of each chip, the best of them first, and all that keep the limits."""

    best: tuple[Candidate, ...]
    kept: tuple[Candidate, ...]


def confirmed(candidates: Sequence[Candidate], *, seed: int, aim: Aim = CHIPS) -> Confirmed:
    """The best of each chip, simulated; others that could do with less are simulated with so many replicas.

    Of chips that are equally good the one that is known best comes first.
    """
    best: dict[str, Candidate] = {}
    kept: list[Candidate] = []
    for candidate in candidates:
        name = candidate.replica.chip.name
        known = best.get(name)
        if known is None or not known.keeps:
            found = confirm(candidate, seed=seed)
            best[name] = found if known is None or found.keeps else known
        elif most := aim.most(candidate, known):
            found = confirm(candidate, seed=seed, most=most)
            best[name] = found if found.keeps and aim.key(found) < aim.key(known) else known
        else:
            continue
        if found.keeps:
            kept.append(found)

    def order(candidate: Candidate) -> tuple[bool, float, int, int]:
        level = candidate.held.price.level
        return not candidate.keeps, *aim.key(candidate), -BASES.index(level)

    return Confirmed(tuple(sorted(best.values(), key=order)), tuple(kept))


def confirm(candidate: Candidate, *, seed: int, most: int = 0) -> Candidate:
    """The fewest replicas, at most so many, that keep the limits when simulated under the load and the headroom.

    Fewer than hold the load in closed form are not tried: in a run that ends, their queue does not grow to its end.
    A rival of which users who ask again at once find the limits broken by so many is not simulated under the load too.
    """
    least, rivals = candidate.num_bound, most > 0
    most = max(least, most or _most(candidate))
    floor, at_once, loaded = least, dict[int, ServingRun](), dict[int, Candidate]()

    def so_many(count: int) -> Candidate:
        return msgspec.structs.replace(
            candidate, num_replicas=count, num_added=count - candidate.num_replicas
        )

    def serve(count: int) -> bool:
        """Whether users who ask again at once find the limits kept."""
        at_once[count] = _hurried(so_many(count), seed, candidate.demand.promise.percentile)
        return candidate.kept_in(at_once[count])

    def at(count: int) -> Candidate:
        if count not in loaded:
            hurried = at_once.get(floor if floor <= most else most)
            loaded[count] = msgspec.structs.replace(_loaded(so_many(count), seed), hurried=hurried)
        return loaded[count]

    if candidate.demand.traffic.users is not None and candidate.demand.reuse is None:
        floor = fewest(serve, expected=candidate.num_replicas, least=least, most=most).enough
        if floor > most and rivals:
            return so_many(most)
        if floor > most:
            at_once[most] = _hurried(so_many(most), seed)
            return at(most)
    expected = max(floor, candidate.num_replicas) if floor == least else floor
    found = fewest(
        lambda count: count >= floor and at(count).keeps, expected=expected, least=least, most=most
    )
    best = at(min(found.enough, most))
    fewer = best.num_replicas - found.broken if best.keeps and found.broken >= least else 0
    return msgspec.structs.replace(best, num_fewer=fewer)


def _most(candidate: Candidate) -> int:
    """The most replicas that are tried where nothing else is to be beaten; the closed form knows nothing of bursts."""
    arrivals = candidate.demand.traffic.arrivals
    clump = 1.0 if arrivals is None else max(1.0, arrivals.clump)
    return ceil((1.0 + MOST_ADDED) * candidate.num_replicas + clump - 1.0)


def _loaded(candidate: Candidate, seed: int) -> Candidate:
    """Some of its replicas under their share of the load."""
    demand, count = candidate.demand, candidate.num_replicas
    each = candidate.full_rate_per_s / count
    recorded = 0 if demand.stretch is None else ceil(RECORDED_SIMULATED / (each * demand.stretch.span_s))
    long = length_of(candidate.held, each, count, least_replicas=recorded, arrivals=demand.traffic.arrivals)
    if demand.reuse is not None:
        run = _in_turns(candidate, long.num_replicas, each, seed)
    else:
        run = _singly(candidate, count, long, seed)
    return msgspec.structs.replace(candidate, run=run)


def _fleet(candidate: Candidate, count: int) -> Fleet:
    return Fleet(pools=(Pool(replica=candidate.replica, count=count, table=candidate.held.price.table),))


def _singly(candidate: Candidate, count: int, long: Length, seed: int) -> ServingRun:
    """Single requests: at a glance, for as long as it takes, of more replicas; each where it may change the answer."""
    demand, least = candidate.demand, candidate.demand.promise.percentile

    def played(length: Length) -> ServingRun:
        num = length.num_replicas
        return in_share(_fleet(candidate, num), demand, length, num / count, seed)

    first, more = glance(long), wide(long, count)
    run = played(first)
    if first != long and run.good_fraction >= HOPELESS * least:
        run = played(long)
    keeps = run.stable and run.good_fraction >= least
    return played(more) if more != long and not keeps and run.good_fraction >= HOPELESS * least else run


def in_share(fleet: Fleet, demand: Demand, long: Length, part: float, seed: int) -> ServingRun:
    """Single requests at a rate, or those that were recorded, which come to so large a part of all replicas."""
    if demand.stretch is not None:
        return _replayed(fleet, demand, demand.stretch, long, part, seed)
    return _alone(fleet, demand, long, part, seed)


def _alone(fleet: Fleet, demand: Demand, long: Length, part: float, seed: int) -> ServingRun:
    """Single requests that come at a rate, to a part of all."""
    asked = msgspec.structs.replace(
        demand.traffic,
        arrivals=_at_rate(demand.traffic, long.rate_per_s, part),
        users=None,
        num_requests=long.num_requests,
    )
    return simulate_serving(
        fleet,
        generate(asked, seed),
        slo=demand.promise,
        seed=seed,
        warmup_s=long.window.start_s,
        measure_until_s=long.window.end_s,
        measure_rows=long.window.num_rows,
    )


def _replayed(
    fleet: Fleet, demand: Demand, recorded: Stretch, long: Length, part: float, seed: int
) -> ServingRun:
    """The stretch of a trace as it was recorded, faster by the headroom; of many replicas what comes to some of them.

    It is played on from its beginning until each of its requests is measured, and until there are enough.
    """
    trace = recorded.thinned(part, seed) if part < 1.0 else recorded.trace
    filling = ceil((max(long.fills_s, EDGE_STAYS * long.stay_s) + EDGE_STAYS * long.stay_s) * long.rate_per_s)
    long = long._replace(num_requests=max(long.num_requests, len(trace.requests) + filling))
    return simulate_serving(
        fleet,
        replay(trace, speed_ratio=long.rate_per_s / trace.rate_per_s, num=long.num_requests),
        slo=demand.promise,
        seed=seed,
        warmup_s=long.window.start_s,
        measure_until_s=long.window.end_s,
        measure_rows=long.window.num_rows,
    )


def _in_turns(candidate: Candidate, num_replicas: int, each_per_s: float, seed: int) -> ServingRun:
    """Conversations, each of which stays on its replica; users ask again when they have read and thought.

    A run begins as the closed form has it at that load: where that holds less, with caches that have dropped what was
    there, from which replicas that keep their limits recover.  Where it has a queue without end nobody waits in it
    longer than an answer takes, as nobody does when single requests are played.
    """
    demand, held = candidate.demand, candidate.held
    fleet = msgspec.structs.replace(_fleet(candidate, num_replicas), routing=TURNS_ROUTING)
    share = num_replicas * each_per_s
    users = demand.traffic.users
    if users is not None:
        num = max(1, round(demand.users * candidate.full_load_ratio * share / candidate.full_rate_per_s))
        users = msgspec.structs.replace(users, num=num)
    arrivals = None if users else _at_rate(demand.traffic, share, num_replicas / candidate.num_replicas)
    asked = msgspec.structs.replace(demand.traffic, arrivals=arrivals, users=users)
    state = closed_form(fleet, asked, held.price, demand.reuse)
    assert state is not None
    longest = longest_wait_s(held, state) + state.tpot_s * held.load.output
    stay = min(stay_s(asked, state), longest)
    going = under_way_of(fleet, asked, stay, demand.reuse)
    assert going is not None
    per_s = requests_per_s(asked, stay)
    least = max(REQUESTS_SIMULATED, int(STAYS_SIMULATED * per_s * stay))
    num_requests = enough_turns(asked, going, least=least)
    if num_requests > MOST_SIMULATED and num_replicas > LEAST_SIMULATED:
        fewer = max(LEAST_SIMULATED, min(num_replicas - 1, int(num_replicas * MOST_SIMULATED / num_requests)))
        return _in_turns(candidate, fewer, each_per_s, seed)
    num_requests = min(num_requests, MOST_SIMULATED)
    asked = msgspec.structs.replace(asked, num_requests=num_requests)
    coming_s = num_requests / per_s
    window = measured_window(
        coming_s, stay, num_requests=num_requests, first_s=warm_s(asked, stay, going, coming_s)
    )
    return simulate_serving(
        fleet,
        generate(asked, seed, under_way=going),
        users=users.num if users else 0,
        users_over_s=stay + demand.think_s if users else 0.0,
        slo=demand.promise,
        seed=seed,
        warmup_s=window.start_s,
        measure_until_s=window.end_s,
        measure_rows=window.num_rows,
        most_arrivals=num_requests,
        drain_apart=True,
    )


def _hurried(candidate: Candidate, seed: int, share_wanted: float = 0.0) -> ServingRun:
    """Its users without headroom, who ask again as soon as they are answered and have thought."""
    demand = candidate.demand
    assert demand.traffic.users is not None
    fleet = _fleet(candidate, min(candidate.num_replicas, USUALLY_SIMULATED))
    (pool,) = fleet.pools
    num = max(1, round(demand.users * pool.count / candidate.num_replicas))
    each = num / pool.count / pool.replica.dp
    state = at_concurrency(candidate.held.curve, each, candidate.held.load, think_s=demand.think_s)
    return at_once(fleet, demand, num, stay_of(candidate.held.load, state), seed, share_wanted)


def at_once(
    fleet: Fleet, demand: Demand, num: int, stay: float, seed: int, share_wanted: float = 0.0
) -> ServingRun:
    """So many users who ask again as soon as they are answered and have thought; each answer takes about a stay.

    Where a share is wanted the run may end when it is certain that fewer keep the limits.
    """
    assert demand.traffic.users is not None
    users = msgspec.structs.replace(demand.traffic.users, num=num)
    num_requests = max(REQUESTS_SIMULATED, STAYS_SIMULATED * num)
    asked = msgspec.structs.replace(demand.traffic, users=users, num_requests=num_requests)
    coming_s = num_requests * (stay + demand.think_s) / num
    window = measured_window(
        coming_s, stay, num_requests=num_requests, first_s=warm_s(asked, stay, None, coming_s)
    )
    return simulate_serving(
        fleet,
        generate(asked, seed),
        users=num,
        users_over_s=stay + demand.think_s,
        slo=demand.promise,
        seed=seed,
        warmup_s=window.start_s,
        measure_until_s=window.end_s,
        measure_rows=window.num_rows,
        share_wanted=share_wanted,
    )


def _at_rate(traffic: Traffic, rate_per_s: float, part: float) -> Arrivals:
    """What comes to a part of the replicas at so many requests a second; conversations come, each with its turns."""
    per_s = rate_per_s / max(1.0, traffic.conversation.num_turns)
    if traffic.arrivals is None:
        return Arrivals(rate_per_s=per_s)
    return msgspec.structs.replace(traffic.arrivals.shared(part), rate_per_s=per_s)
