"""Conversations in closed form: what caches have of their prompts when a load lasts, and what a replica holds then.

T        time for which a cache keeps what nobody uses: room = rate · E[tokens left · min(T, until used again)]
cached   tokens of a prompt whose last turn was less than T ago: the more come, the fewer
held     the rate at which the limits are reached with as much cached as there is at that rate
"""

from __future__ import annotations

from math import isfinite

import msgspec

from datahall.errors import InfeasibleError
from datahall.events import stream
from datahall.inference.closed_form.capacity import Held, held
from datahall.inference.closed_form.steady_state import Load, State
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.memory.offload import lower_tiers
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.traffic.conversation import UnderWay
from datahall.workload.traffic.sharing import Remembered, Reuse, reuse_of
from datahall.workload.traffic.traffic import Traffic, first_rows, generate

SAMPLED = 16_384  # requests that stand for all
HALVINGS, CLOSE = 10, 0.03  # of the search for the rate that is held, and how near it comes
TRICKLE_PER_S, LEAST_FRACTION = 1e-9, 0.02  # a rate at which all is cached; the least that is looked at


def in_turns(traffic: Traffic) -> bool:
    """Whether requests are turns of conversations that are drawn."""
    return traffic.trace is None and traffic.conversation.num_turns > 1


def reuse(traffic: Traffic, num_replicas: int = 1) -> Reuse:
    """How its conversations use again what they left; of many replicas where any of them may get the next turn."""
    asked = msgspec.structs.replace(traffic, num_requests=SAMPLED, duration_s=0.0)
    return reuse_of(first_rows(generate(asked, 0), SAMPLED), stream(0, "reuse"), num_replicas)


def room_tokens(replica: Replica) -> float:
    """Tokens that the caches of a replica have room for, those below its chips included."""
    if not replica.engine.prefix_caching:
        return 0.0
    below = sum(tier.num_blocks for tier in lower_tiers(replica))
    return float((kv_capacity(replica).num_blocks * replica.dp + below) * replica.engine.block_tokens)


def stay_of(load: Load, state: State) -> float:
    """How long a request stays: TTFT + TPOT · output; without the wait where more comes than is held [s]."""
    return (state.ttft_s if isfinite(state.ttft_s) else 0.0) + state.tpot_s * load.output


def with_cached(load: Load, found: Remembered) -> Load:
    """The mean request of which so much is cached."""
    share = found.cached / (found.cached + found.computed)
    return msgspec.structs.replace(load, cached=share * load.prompt, spread=found.spread)


def under_way(replica: Replica, uses: Reuse, rate_per_s: float, stay_s: float, num_replicas: int) -> UnderWay:
    """Conversations and caches of a replica that gets so many requests, when a run of it begins."""
    found = uses.at(rate_per_s, room_tokens(replica), stay_s)
    return UnderWay(stay_s=stay_s, remembered_s=found.time_s, same_fraction=1.0 / num_replicas)


def held_in_turns(replica: Replica, load: Load, slo: Promise, uses: Reuse) -> Held:
    """The most that a replica holds of conversations: as much is cached at that rate as it was found with.

    The more come, the less is cached, and the fewer are held: from the rate that all cached would hold downwards.
    """
    room = room_tokens(replica)
    found = held(replica, with_cached(load, uses.at(TRICKLE_PER_S, room, 0.0)), slo)
    low, high, kept = 0.0, found.rate_per_s, found
    for _ in range(HALVINGS):
        tried = high if not low else (low + high) / 2.0
        stay_s = stay_of(kept.load, kept.state)
        there = _held_or_none(replica, with_cached(load, uses.at(tried, room, stay_s)), slo)
        rate = there.rate_per_s if there is not None else 0.0
        if there is not None and rate >= tried * (1.0 - CLOSE):
            low, kept = tried, there
        else:
            high = tried
            low = low or max(rate, LEAST_FRACTION * tried)
        if high - low < CLOSE * high:
            break
    if kept.rate_per_s <= low * (1.0 + CLOSE):
        return kept
    return msgspec.structs.replace(
        kept,
        rate_per_s=low,
        state=kept.at(low),
        beyond=kept.at(high),
        ends="cache",
    )


def _held_or_none(replica: Replica, load: Load, slo: Promise) -> Held | None:
    try:
        return held(replica, load, slo)
    except InfeasibleError:
        return None
