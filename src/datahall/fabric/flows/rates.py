"""Max-min fair rates: what many flows get from the links they share.

Progressive filling (Bertsekas & Gallager, Data Networks, 1992, §6.5.2): the rate per unit of weight of every
flow rises together; the link whose capacity is used up first freezes its flows; the rest go on.  The shares
of links only grow while flows freeze, so a heap with stale keys finds the next bottleneck:  O(path length ·
log links).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import Kernel, inline
from datahall.errors import ScenarioError
from datahall.fabric.topology.graph import Floats, Ints, Paths

NOTHING: Floats = np.empty(0)
CAPPED = -1  # the bottleneck of a flow that its own cap holds back
SMALL = 2_000  # path entries below which loading a compiler costs more than it saves


def max_min_rates(
    paths: Paths,
    link_bytes_per_s: Floats,
    *,
    weight: Floats | None = None,
    cap_bytes_per_s: Floats | float | None = None,
    share_fraction: Floats | None = None,
    head_of_line: bool = False,
) -> Floats:
    """Rate of each flow [B/s]; every flow is at its cap or has a full link on which no flow has more per
    weight.

    `share_fraction` is the part of its flow that each entry of `paths.links` carries: 1 on a single path, 1/q
    on each of q paths that packets are sprayed over.  With `head_of_line`, a flow that waits for its
    bottleneck holds everything on the links before it to its own level, as one virtual lane of a lossless
    network does.

    >>> shared = Paths(np.array([0, 0, 1], np.int32), np.array([0, 1, 3]))  # the second goes on over link 1
    >>> max_min_rates(shared, np.array([10.0, 3.0])).tolist()
    [7.0, 3.0]
    """
    weights, caps, share = columns(paths, link_bytes_per_s, weight, cap_bytes_per_s, share_fraction)
    rate, bottleneck = np.zeros(paths.num_flows), np.full(paths.num_flows, CAPPED, np.int32)
    slot = np.full(link_bytes_per_s.size, -1, np.int32)
    solve = fill if paths.links.size > SMALL else fill.interpreted
    every = np.arange(paths.num_flows, dtype=np.int32)
    ways = every, paths.links, paths.offsets[:-1], paths.offsets[1:]
    solve(*ways, share, link_bytes_per_s, weights, caps, slot, rate, bottleneck)
    if head_of_line:
        hold = hold_back if paths.links.size > SMALL else hold_back.interpreted
        held = hold(*ways, link_bytes_per_s.size, weights, caps, rate, bottleneck)
        solve(*ways, share, link_bytes_per_s, weights, held, slot, rate, bottleneck)
    return rate


def columns(
    paths: Paths,
    link_bytes_per_s: Floats,
    weight: Floats | None = None,
    cap_bytes_per_s: Floats | float | None = None,
    share_fraction: Floats | None = None,
) -> tuple[Floats, Floats, Floats]:
    """The weights, caps and shares of flows as whole columns; what cannot be solved is a `ScenarioError`."""
    num_flows = paths.num_flows
    weights = np.ones(num_flows) if weight is None else np.asarray(weight, float)
    caps = np.full(num_flows, np.inf) if cap_bytes_per_s is None else np.asarray(cap_bytes_per_s, float)
    caps = np.ascontiguousarray(np.broadcast_to(caps, num_flows))
    share = NOTHING if share_fraction is None else np.asarray(share_fraction, float)
    capacity = np.asarray(link_bytes_per_s)
    if weights.shape != (num_flows,):
        raise ScenarioError(f"{weights.size:,} weights for {num_flows:,} flows")
    if share.size not in (0, paths.links.size):
        raise ScenarioError(f"{share.size:,} shares for {paths.links.size:,} steps of the paths")
    _above("weight", weights)
    _above("share", share)
    _above("cap", caps)
    if not np.all(capacity >= 0):  # also catches nan
        place = int(np.argmin(capacity >= 0))
        raise ScenarioError(f"link {place} has a bandwidth of {capacity[place]:g} B/s; it must be 0 or more")
    if paths.links.size and not (0 <= int(paths.links.min()) <= int(paths.links.max()) < capacity.size):
        worst = int(paths.links.max() if paths.links.min() >= 0 else paths.links.min())
        raise ScenarioError(f"a path passes link {worst}; the fabric has {capacity.size:,}, counted from 0")
    return weights, caps, share


def _above(name: str, values: Floats) -> None:
    if not np.all(values > 0):
        place = int(np.argmin(values > 0))
        raise ScenarioError(f"the {name} of flow {place} is {values[place]:g}; it must be above 0")


@inline
def sift(heap: Ints, key: Floats, size: int, hole: int) -> None:
    """Let the item at `hole` sink to its place in a heap of four children each."""
    moved, moved_key = heap[hole], key[hole]
    while True:
        child = 4 * hole + 1
        if child >= size:
            break
        best = child
        for other in range(child + 1, min(child + 4, size)):
            if key[other] < key[best]:
                best = other
        if key[best] >= moved_key:
            break
        heap[hole], key[hole] = heap[best], key[best]
        hole = best
    heap[hole], key[hole] = moved, moved_key


@inline
def fill_rates(
    flows: Ints,
    links: Ints,
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    share: Floats,
    free: Floats,
    weight: Floats,
    cap: Floats,
    slot: Ints,
    rate: Floats,
    bottleneck: Ints,
) -> Ints:
    """Give each of `flows` its rate and bottleneck, from the capacity that `free` leaves on each link.

    Only links that these flows pass are looked at; they are returned.  `slot` is scratch, -1 before and
    after.
    """
    num_entries = 0
    some_cap = False
    for flow in flows:
        num_entries += ends[flow] - begins[flow]
        some_cap = some_cap or cap[flow] < np.inf
        rate[flow] = -1.0
    touched = np.empty(min(num_entries, slot.size), np.int32)
    first = np.zeros(touched.size + 1, np.int64)
    size = 0
    for flow in flows:
        for entry in range(begins[flow], ends[flow]):
            link = links[entry]
            if slot[link] < 0:
                slot[link] = size
                touched[size] = link
                size += 1
            first[slot[link] + 1] += 1
    touched = touched[:size]

    # the flows on link touched[i] are members[first[i]:first[i + 1]]; active of them, with weight need, want
    # left
    heap, active = np.empty(size, np.int32), np.empty(size, np.int32)
    key, left, need = np.empty(size), np.empty(size), np.zeros(size)
    for place in range(size):
        active[place] = first[place + 1]
        left[place] = max(0.0, free[touched[place]])
        heap[place] = place
        first[place + 1] += first[place]
    upto = first[:size].copy()
    members = np.empty(num_entries, np.int32)
    for flow in flows:
        for entry in range(begins[flow], ends[flow]):
            place = slot[links[entry]]
            members[upto[place]] = flow
            upto[place] += 1
            need[place] += weight[flow] * (share[entry] if share.size else 1.0)
    for place in range(size):
        key[place] = left[place] / need[place]
    for hole in range((size - 2) // 4, -1, -1):
        sift(heap, key, size, hole)
    rising = np.argsort(cap[flows] / weight[flows]) if some_cap else np.empty(0, np.int64)

    unfrozen = flows.size
    next_cap = 0
    single = np.empty(1, np.int32)
    while unfrozen > 0:
        while next_cap < rising.size and rate[flows[rising[next_cap]]] >= 0.0:
            next_cap += 1
        level, place = np.inf, -1
        if next_cap < rising.size:
            single[0] = flows[rising[next_cap]]
            level = cap[single[0]] / weight[single[0]]
        if size > 0 and level > key[0]:
            place = heap[0]
            level = left[place] / need[place] if active[place] > 0 else np.inf
            if active[place] > 0 and level > key[0] * (1.0 + 1e-12):  # flows froze since: it waits its turn
                key[0] = level
                sift(heap, key, size, 0)
                continue
            size -= 1
            heap[0], key[0] = heap[size], key[size]
            sift(heap, key, size, 0)
        elif level == np.inf:  # these pass no link and have no cap
            for flow in flows:
                if rate[flow] < 0.0:
                    rate[flow], bottleneck[flow] = np.inf, -1
            break
        for flow in members[first[place] : first[place + 1]] if place >= 0 else single:
            if rate[flow] >= 0.0:
                continue
            rate[flow] = weight[flow] * level if place >= 0 else cap[flow]
            bottleneck[flow] = touched[place] if place >= 0 else -1
            unfrozen -= 1
            for entry in range(begins[flow], ends[flow]):
                other = slot[links[entry]]
                part = share[entry] if share.size else 1.0
                left[other] = max(0.0, left[other] - rate[flow] * part)
                need[other] -= weight[flow] * part
                active[other] -= 1
    for link in touched:
        slot[link] = -1
    return touched


@inline
def held_back(
    flows: Ints,
    links: Ints,
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    num_links: int,
    weight: Floats,
    cap: Floats,
    rate: Floats,
    bottleneck: Ints,
) -> Floats:
    """Caps under head-of-line blocking: the lowest level of any flow that queues on one's own way."""
    blocked = np.full(num_links, np.inf)
    for flow in flows:
        if bottleneck[flow] >= 0:
            for entry in range(begins[flow], ends[flow]):
                link = links[entry]
                if link == bottleneck[flow]:
                    break
                blocked[link] = min(blocked[link], rate[flow] / weight[flow])
    held = cap.copy()
    for flow in flows:
        for entry in range(begins[flow], ends[flow]):
            held[flow] = min(held[flow], blocked[links[entry]] * weight[flow])
    return held


fill = Kernel(fill_rates, compile_s=6.0)
hold_back = Kernel(held_back, compile_s=2.0)
