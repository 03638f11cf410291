"""What caches find of conversations, on the chips, in their hosts' memory and on drives: a function of room and rate.

found  = E[history · (pause + stay ≤ T)]     T: how long the room lasts at this rate (`closed_form/conversations.py`)
lifted = tokens found below the chips / tokens of a block · time of a block         of the tier that each stands in
TTFT   = that of what is computed + max(lifted / layers, lifted − its compute)
held   = min(rate within the limits, 1 / lifted)                                    no link lifts more than all the time
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

import msgspec

from datahall.errors import InfeasibleError
from datahall.inference.closed_form.capacity import Held
from datahall.inference.closed_form.conversations import held_in_turns, room_tokens, stay_of, with_cached
from datahall.inference.closed_form.fleet_state import ROUNDS
from datahall.inference.closed_form.steady_state import Load, State, at_rate, curve
from datahall.inference.engine.replica import Replica
from datahall.inference.ladder.techniques import Setting, prompt_time
from datahall.inference.memory.offload import lower_tiers
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.traffic.sharing import Reuse


class Stores(msgspec.Struct, frozen=True, kw_only=True):
    """Room below the chips of a replica; 0 where there is none, or nothing is published of it."""

    host_bytes: float = 0.0
    drive_bytes: float = 0.0


class Tiered(msgspec.Struct, frozen=True, kw_only=True):
    """Caches of one depth: what they find at the rate asked, and what a chip then holds."""

    name: str
    size_bytes: float  # of the tier that is added
    found_fraction: float  # of prompt tokens
    below_fraction: float  # of them, below the chips
    lifted_s: float  # of a request, over links and drives
    held_per_s: float  # by a chip
    ttft_s: float  # means, at the rate asked
    tpot_s: float


def tiers_of(
    setting: Setting, slo: Promise, rate_per_s: float, uses: Reuse, stores: Stores
) -> tuple[Tiered, ...]:
    """No cache of prefixes, one on the chips, and each tier below it that is there."""
    return tuple(
        _tiered(name, size, one, setting, slo, rate_per_s, uses)
        for name, size, one in _depths(setting, stores)
    )


def _depths(setting: Setting, stores: Stores) -> Iterator[tuple[str, float, Replica]]:
    replica = setting.replica
    none = msgspec.structs.replace(replica.engine, prefix_caching=False)
    chips = msgspec.structs.replace(replica.engine, prefix_caching=True)
    yield "nothing found", 0.0, msgspec.structs.replace(replica, engine=none)
    cached = msgspec.structs.replace(replica, engine=chips)
    yield "on the chips", nan, cached
    host = msgspec.structs.replace(cached, host_cache_bytes=stores.host_bytes)
    if stores.host_bytes:
        yield "and in the hosts' memory", stores.host_bytes, host
    if stores.drive_bytes and replica.drive_bytes_per_s > 0:
        deep = msgspec.structs.replace(host, drive_cache_bytes=stores.drive_bytes)
        yield "and on drives", stores.drive_bytes, deep


def _tiered(
    name: str, size_bytes: float, replica: Replica, setting: Setting, slo: Promise, rate: float, uses: Reuse
) -> Tiered:
    try:
        most = held_in_turns(replica, setting.load, slo, uses)
    except InfeasibleError:
        return Tiered(
            name=name, size_bytes=size_bytes, found_fraction=nan, below_fraction=nan, lifted_s=nan, held_per_s=0.0,
            ttft_s=nan, tpot_s=nan,
        )  # fmt: skip
    load, state = _settled(most, uses, rate)
    below, lifted_s = _lifted(replica, load, state, uses, rate)
    _, at_most_s = _lifted(replica, *_settled(most, uses, most.rate_per_s), uses, most.rate_per_s)
    links = replica.dp / at_most_s if at_most_s else inf
    shown_s = max(lifted_s / replica.model.num_layers, lifted_s - prompt_time(replica, load))
    return Tiered(
        name=name,
        size_bytes=size_bytes,
        found_fraction=load.cached / load.prompt,
        below_fraction=below / load.prompt,
        lifted_s=lifted_s,
        held_per_s=min(most.rate_per_s, links) / replica.num_chips,
        ttft_s=state.ttft_s + shown_s,
        tpot_s=state.tpot_s,
    )


def _settled(most: Held, uses: Reuse, rate: float) -> tuple[Load, State]:
    """A replica at some rate, as much cached as there is then."""
    replica, load, state = most.replica, most.load, most.at(rate)
    for _ in range(ROUNDS):
        load = with_cached(load, uses.at(rate, room_tokens(replica), stay_of(load, state)))
        states = curve(most.price.table, replica, load, most.capacity, percentile=most.slo.percentile)
        state = at_rate(states, rate / replica.dp)
    return load, state


def _lifted(replica: Replica, load: Load, state: State, uses: Reuse, rate: float) -> tuple[float, float]:
    """Tokens of a prompt that are found below the chips, and the time of lifting them [s]."""
    host, drives = lower_tiers(replica)
    block = replica.engine.block_tokens
    rooms = [room_tokens(replica) - block * (host.num_blocks + drives.num_blocks)]
    rooms += [rooms[0] + block * host.num_blocks, room_tokens(replica)]
    stay_s = stay_of(load, state)
    there = [uses.at(rate, room, stay_s) for room in rooms]
    found = [load.prompt * one.cached / (one.cached + one.computed) for one in there]
    from_host, from_drives = found[1] - found[0], found[2] - found[1]
    lifted_s = (from_host * host.block_s + from_drives * drives.block_s) / block
    return from_host + from_drives, lifted_s
