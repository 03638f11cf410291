"""The closed form of a whole fleet: equal replicas, requests that share nothing."""

from __future__ import annotations

from math import isfinite

import msgspec

from datahall.inference.closed_form.load import load_of
from datahall.inference.closed_form.steady_state import State, at_concurrency, at_rate, curve
from datahall.inference.fleet.fleet import Fleet
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.step.price import StepPrice
from datahall.workload.traffic.traffic import Traffic


def closed_form(fleet: Fleet, traffic: Traffic, price: StepPrice) -> State | None:
    """The state of one rank under the fleet's traffic; None where the closed form does not know what happens."""
    if len(fleet.pools) > 1 or fleet.autoscaling or traffic.trace or traffic.conversation.num_turns > 1:
        return None
    pool = fleet.pools[0]
    if pool.replica.engine.batching != "continuous":
        return None
    load = msgspec.structs.replace(
        load_of(traffic), tokens_per_step=price.tokens_per_step, verified=float(price.table.num_verified)
    )
    states = curve(price.table, pool.replica, load, kv_capacity(pool.replica))
    ranks = pool.count * pool.replica.dp
    if traffic.users is not None:
        return at_concurrency(states, traffic.users.num / ranks, load, think_s=traffic.users.think.mean_s)
    if traffic.arrivals is None or not isfinite(traffic.arrivals.rate_per_s):
        return None
    return at_rate(states, traffic.arrivals.rate_per_s / ranks)
