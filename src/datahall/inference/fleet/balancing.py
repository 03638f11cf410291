"""Which replica gets a request."""

from __future__ import annotations

from datahall.compiled import inline
from datahall.inference.memory.prefix_cache import LOW, mixed
from datahall.inference.simulation.state import (
    ACTIVE,
    DECODE,
    LEAST_OUTSTANDING,
    NONE,
    PREFIX_AFFINITY,
    ROUND_ROBIN,
    SESSION,
    TWO_CHOICES,
    State,
)

FRONT, BACK, FIRST_REGION = (
    0,
    1,
    2,
)  # lists: all that take new requests, all that only decode, those of each region


@inline
def list_members(s: State) -> None:
    """Write down the replicas that take requests, after one of them changed."""
    s.members[:, 0] = 0
    for replica in range(s.replicas.size):
        rep = s.replicas[replica]
        if rep["status"] != ACTIVE:
            continue
        back = s.pools[rep["pool"]]["role"] == DECODE
        _join(s, BACK if back else FRONT, replica)
        if not back:
            _join(s, FIRST_REGION + rep["region"], replica)


@inline
def _join(s: State, which: int, replica: int) -> None:
    s.members[which, 0] += 1
    s.members[which, s.members[which, 0]] = replica


@inline
def choose(s: State, slot: int, back: bool) -> int:
    """The replica for a request, or −1 where none takes any."""
    one, fleet = s.slots[slot], s.fleet[0]
    which = BACK if back else FRONT
    if not back and s.distance_s.shape[0] > 1:
        local = FIRST_REGION + one["region"]
        num_local, total = s.members[local, 0], 0
        for place in range(num_local):
            total += s.replicas[s.members[local, 1 + place]]["outstanding"]
        if num_local > 0 and total < fleet["spill"] * num_local:
            which = local
    num = s.members[which, 0]
    if num == 0:
        return NONE
    if num == 1:
        return int(s.members[which, 1])
    routing = fleet["routing"]
    if back and routing == PREFIX_AFFINITY:
        routing = LEAST_OUTSTANDING
    if routing == ROUND_ROBIN:
        fleet["turn"] += 1
        return int(s.members[which, 1 + (fleet["turn"] - 1) % num])
    if routing == LEAST_OUTSTANDING:
        return _least(s, which, num)
    if routing == TWO_CHOICES:
        left = s.members[which, 1 + (one["pick"] & LOW) % num]
        right = s.members[which, 1 + (one["pick"] >> 31) % num]
        return int(right if _load(s, right) < _load(s, left) else left)
    owner = one["session"] * 2
    if routing == PREFIX_AFFINITY and one["group"] >= 0:
        owner = one["group"] * 2 + 1
    place = jump_hash(mixed(owner, 1), num)
    if routing == SESSION:
        return int(s.members[which, 1 + place])
    return _bounded(s, which, num, place)


@inline
def _least(s: State, which: int, num: int) -> int:
    """The one with the fewest requests for its weight, the first in turn of equals."""
    fleet = s.fleet[0]
    fleet["turn"] += 1
    place = fleet["turn"] % num
    best, fewest = NONE, 0.0
    for _ in range(num):
        replica = s.members[which, 1 + place]
        place = place + 1 if place + 1 < num else 0
        load = _load(s, replica)
        if best == NONE or load < fewest:
            best, fewest = int(replica), load
            if fewest == 0.0:
                break
    return best


@inline
def _load(s: State, replica: int) -> float:
    """Requests that a replica has, over the weight of its pool."""
    one = s.replicas[replica]
    return float(one["outstanding"] / s.pools[one["pool"]]["weight"])


@inline
def _bounded(s: State, which: int, num: int, place: int) -> int:
    """The next from a place whose load is below a bound over the mean (Mirrokni, Thorup, Zadimoghaddam, 2018)."""
    total = 1
    for other in range(num):
        total += s.replicas[s.members[which, 1 + other]]["outstanding"]
    bound = s.fleet[0]["affinity_load"] * total / num
    for _ in range(num):
        replica = s.members[which, 1 + place]
        if s.replicas[replica]["outstanding"] + 1 <= bound:
            return int(replica)
        place = (place + 1) % num
    return int(s.members[which, 1 + place])


@inline
def _scattered(number: int) -> int:
    """31 bits, each of which depends on all bits of a number: `mixed` leaves the low ones of small numbers small."""
    low = (number ^ (number >> 31)) & LOW
    low = (((low >> 16) ^ low) * 0x45D9F3B) & LOW
    low = (((low >> 16) ^ low) * 0x45D9F3B) & LOW
    return (low >> 16) ^ low


@inline
def jump_hash(key: int, num: int) -> int:
    """A place 0 … num − 1 that moves for 1/num of the keys when one more joins (Lamping & Veach, 2014)."""
    place, after, state = -1, 0, key
    while after < num:
        place = after
        state = mixed(state, place + 1)
        share = _scattered(state) + 1
        after = int((place + 1) * 2147483648.0 / share)
    return place
