"""The closed form of a whole fleet: equal replicas, requests that share nothing, or turns of conversations."""

from __future__ import annotations

from math import inf, isfinite

import msgspec

from datahall.inference.closed_form.conversations import (
    in_turns,
    reuse,
    room_tokens,
    stay_of,
    under_way,
    with_cached,
)
from datahall.inference.closed_form.load import load_of
from datahall.inference.closed_form.steady_state import Load, State, at_concurrency, at_rate, curve
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.step.price import StepPrice
from datahall.workload.traffic.conversation import UnderWay
from datahall.workload.traffic.sharing import Reuse
from datahall.workload.traffic.traffic import Traffic

ROUNDS = 4  # in which what is cached and how long requests stay agree


def closed_form(fleet: Fleet, traffic: Traffic, price: StepPrice, uses: Reuse | None = None) -> State | None:
    """The state of one rank under the fleet's traffic; None where the closed form does not know what happens."""
    if len(fleet.pools) > 1 or fleet.autoscaling or traffic.trace:
        return None
    pool = fleet.pools[0]
    if pool.replica.engine.batching != "continuous":
        return None
    load = msgspec.structs.replace(
        load_of(traffic), tokens_per_step=price.tokens_per_step, verified=float(price.table.num_verified)
    )
    if not in_turns(traffic) or not isfinite(requests_per_s(traffic, 1.0)):
        return _state(pool, traffic, price, load)
    state, uses = None, uses or reuse(traffic, turn_replicas(fleet))
    for _ in range(ROUNDS):
        stay_s = stay_of(load, state) if state is not None else 0.0
        found = uses.at(replica_rate(fleet, traffic, stay_s), room_tokens(pool.replica), stay_s)
        load = with_cached(load, found)
        state = _state(pool, traffic, price, load)
        if state is None:
            return None
    return state


def _state(pool: Pool, traffic: Traffic, price: StepPrice, load: Load) -> State | None:
    states = curve(price.table, pool.replica, load, kv_capacity(pool.replica))
    ranks = pool.count * pool.replica.dp
    if traffic.users is not None:
        return at_concurrency(states, traffic.users.num / ranks, load, think_s=traffic.users.think.mean_s)
    if traffic.arrivals is None or not isfinite(traffic.arrivals.rate_per_s):
        return None
    return at_rate(states, requests_per_s(traffic) / ranks)


def requests_per_s(traffic: Traffic, stay_s: float = 0.0) -> float:
    """Requests that come, later turns included; of users who wait so long for each answer."""
    if traffic.users is not None:
        round_s = stay_s + traffic.users.think.mean_s
        return traffic.users.num / round_s if round_s else inf
    assert traffic.arrivals is not None
    return traffic.arrivals.rate_per_s * traffic.conversation.num_turns


def replica_rate(fleet: Fleet, traffic: Traffic, stay_s: float) -> float:
    """Requests that come to one replica of those that compute prompts."""
    num = sum(pool.count for pool in fleet.pools if pool.role != "decode")
    return requests_per_s(traffic, stay_s) / num


def under_way_of(fleet: Fleet, traffic: Traffic, stay_s: float, uses: Reuse | None = None) -> UnderWay | None:
    """What is under way in a fleet that conversations have come to for long; None where none do, or all at once."""
    if not in_turns(traffic) or not isfinite(requests_per_s(traffic, max(stay_s, 1.0))):
        return None
    num = turn_replicas(fleet)
    rate = replica_rate(fleet, traffic, stay_s)
    return under_way(fleet.pools[0].replica, uses or reuse(traffic, num), rate, stay_s, num)


def turn_replicas(fleet: Fleet) -> int:
    """Replicas that the next turn of a conversation may go to."""
    return (
        1 if fleet.routing == "session" else sum(pool.count for pool in fleet.pools if pool.role != "decode")
    )
