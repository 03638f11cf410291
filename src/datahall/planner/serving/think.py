"""What think time does to a plan: the same users on the same replicas, if they pause for longer between answers.

requests/s = users / (time to read an answer + think)
replicas   = ⌈requests/s / (kept · (1 − headroom))⌉ + spare      kept: by one replica, as it was confirmed

Of conversations what a cache still has after a longer pause is found anew, and what is kept in the proportion that it
changes in closed form.
"""

from __future__ import annotations

from math import ceil

import msgspec

from datahall.errors import InfeasibleError
from datahall.inference.closed_form.conversations import held_in_turns, reuse
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.demand import Demand, users_per_s

THINK_S = (0.0, 10.0, 30.0, 60.0)  # from nobody who reads to a reader of long answers


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Users who pause for so long, and what they take."""

    think_s: float
    rate_per_s: float
    num_replicas: int
    num_chips: int
    is_asked: bool


def paces_of(best: Candidate) -> tuple[Pace, ...]:
    """At a few think times and the one that was asked, shortest first; nothing where no users were given."""
    demand = best.demand
    if not demand.users:
        return ()
    times_s = sorted({*THINK_S, demand.think_s})
    return tuple(pace for think_s in times_s if (pace := _pace(best, think_s)) is not None)


def _pace(best: Candidate, think_s: float) -> Pace | None:
    demand, is_asked = best.demand, think_s == best.demand.think_s
    # what users who ask again make of the time that answers took is taken to last
    rate = (
        users_per_s(demand.users, demand.load, demand.promise, think_s)
        * best.offered_per_s
        / demand.rate_per_s
    )
    kept = best.held_per_s * (1.0 if is_asked else _kept_ratio(best, demand, think_s))
    if not kept:
        return None
    needed = best.num_replicas if is_asked else ceil(rate / (kept * (1.0 - best.headroom_fraction)) - 1e-9)
    count = max(1, needed) + best.num_spare
    return Pace(
        think_s=think_s,
        rate_per_s=rate,
        num_replicas=count,
        num_chips=count * best.replica.num_chips,
        is_asked=is_asked,
    )


def _kept_ratio(best: Candidate, demand: Demand, think_s: float) -> float:
    """What a replica holds at another think time over what it holds at that which was asked; 0: not one request."""
    if demand.reuse is None or demand.traffic.users is None:
        return 1.0
    talk = demand.traffic.conversation
    paused = msgspec.structs.replace(talk.think, mean_s=think_s)
    traffic = msgspec.structs.replace(
        demand.traffic,
        conversation=msgspec.structs.replace(talk, think=paused),
        users=msgspec.structs.replace(demand.traffic.users, think=paused),
    )
    load = msgspec.structs.replace(demand.load, cached=0.0)
    try:
        there = held_in_turns(best.replica, load, demand.promise, reuse(traffic))
    except InfeasibleError:
        return 0.0
    return there.rate_per_s / best.held.rate_per_s
