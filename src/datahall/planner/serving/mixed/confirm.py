"""A mixture under its load, all pools behind one router, with a few replicas more where these do not do."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from datahall.inference.closed_form.conversations import stay_of
from datahall.inference.closed_form.steady_state import at_concurrency
from datahall.inference.simulation.run import ServingRun
from datahall.planner.serving.confirm import MOST_ADDED, at_once, in_share
from datahall.planner.serving.length import MOST_SIMULATED, REQUESTS_SIMULATED, Length, length_of
from datahall.planner.serving.mixed.mixture import Mixture

WHOLE = 60  # replicas that are simulated, all of them; of more a part, as long as each pool keeps so many:
LEAST_OF_A_POOL = 4
FIRST_STEP = 0.02  # of the load that is split anew where the limits are broken; doubled each time


def confirmed_mixture(split: Callable[[float], Mixture | None], *, seed: int) -> Mixture | None:
    """The first split, of more and more load, that keeps the limits when simulated; None where there are too few chips.

    `split` finds the cheapest one for a load that is so much more than is asked.
    """
    more, found = 0.0, None
    while more <= MOST_ADDED:
        next_one = split(1.0 + more)
        if next_one is None:
            break
        if found is None or next_one.counts != found.counts:
            found = _simulated(next_one, seed)
            if found.keeps:
                return found
        more = max(FIRST_STEP, 2.0 * more)
    return found


def _simulated(mix: Mixture, seed: int) -> Mixture:
    """Under the load with the headroom used up, and where there are users, under those who ask again at once."""
    counts, part = _part_of(mix)
    run = in_share(mix.fleet(counts), mix.demand, _length(mix, counts, part), part, seed)
    found = msgspec.structs.replace(mix, run=run)
    if mix.demand.users and found.keeps:
        found = msgspec.structs.replace(found, hurried=_hurried(mix, counts, part, seed))
    return found


def _part_of(mix: Mixture) -> tuple[tuple[int, ...], float]:
    """The replicas of each pool that are simulated, spare ones out, and the share of the load that comes to them."""
    serving = mix.serving
    part = min(1.0, max(WHOLE / sum(serving), LEAST_OF_A_POOL / min(one for one in serving if one)))
    counts = tuple(min(one, max(1, round(one * part))) if one else 0 for one in serving)
    rates = mix.rates_per_s
    held = [sum(rate * one for rate, one in zip(rates, many, strict=True)) for many in (counts, serving)]
    return counts, held[0] / held[1]


def _length(mix: Mixture, counts: tuple[int, ...], part: float) -> Length:
    """As long as the pool that takes longest to fill and to forget."""
    rate = mix.full_rate_per_s * part
    held = sum(each * count for each, count in zip(mix.rates_per_s, counts, strict=True))
    longs = [
        length_of(one.held, rate * each / held, count, least_replicas=count)
        for one, each, count in zip(mix.alone, mix.rates_per_s, counts, strict=True)
        if count
    ]
    long_s = max(one.num_requests / one.rate_per_s for one in longs)
    return Length(
        num_replicas=sum(counts),
        num_requests=max(REQUESTS_SIMULATED, min(MOST_SIMULATED, int(long_s * rate))),
        stay_s=max(one.stay_s for one in longs),
        fills_s=max(one.fills_s for one in longs),
        rate_per_s=rate,
    )


def _hurried(mix: Mixture, counts: tuple[int, ...], part: float, seed: int) -> ServingRun:
    """All users without headroom, as if none of them read: what each asks for comes at once."""
    demand = mix.demand
    num = max(1, round(demand.users * part))
    weighed = [weight * count for weight, count in zip(mix.weights, counts, strict=True)]
    stay = 0.0
    for one, weight, count in zip(mix.alone, weighed, counts, strict=True):
        if count:
            each = num * weight / sum(weighed) / count / one.replica.dp
            state = at_concurrency(one.held.curve, each, one.held.load, think_s=demand.think_s)
            stay = max(stay, stay_of(one.held.load, state))
    return at_once(mix.fleet(counts), demand, num, stay, seed)
