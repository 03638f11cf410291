"""Fair shares and the simulation once more, slow and short: no heap, no region, every rate anew each time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datahall.fabric.flows.simulate import NO_CHANGES, Changes, Flows
from datahall.fabric.topology.graph import Floats, Paths


class Played(NamedTuple):
    """What the slow simulation saw."""

    ready_s: Floats
    end_s: Floats
    left_bytes: Floats
    link_bytes: Floats
    link_peak_bytes_per_s: Floats


def use_of(paths: Paths, num_links: int, share: Floats | None) -> Floats:
    """What one byte of each flow (columns) puts on each link (rows)."""
    use = np.zeros((num_links, paths.num_flows))
    np.add.at(use, (paths.links, paths.owners()), 1.0 if share is None else share)
    return use


def fair_rates(use: Floats, capacity: Floats, weight: Floats, cap: Floats) -> Floats:
    """Raise all levels together; whoever meets a full link or a cap stays, and the others go on."""
    rate, rising = np.zeros(weight.size), np.ones(weight.size, bool)
    while rising.any():
        want = use[:, rising] @ weight[rising]
        spare = np.maximum(capacity - use @ rate, 0.0)
        room = np.divide(spare, want, out=np.full(capacity.size, np.inf), where=want > 1e-12)
        tall = np.where(rising, (cap - rate) / weight, np.inf)
        step = min(room.min(initial=np.inf), tall.min())
        if np.isinf(step):
            rate[rising] = np.inf
            break
        rate[rising] += step * weight[rising]
        full = room <= step * (1 + 1e-9) + 1e-15
        rising &= ~((use[full] > 0).any(axis=0) | (tall <= step * (1 + 1e-9) + 1e-15))
    return rate


def played(
    flows: Flows, link_bytes_per_s: Floats, changes: Changes = NO_CHANGES, until_s: float = np.inf
) -> Played:
    """Step from one moment at which anything happens to the next."""
    count, capacity = flows.num_flows, link_bytes_per_s.copy()
    use = use_of(flows.paths, capacity.size, flows.share_fraction)
    zero, one = np.zeros(count), np.ones(count)
    start = zero if flows.start_s is None else flows.start_s
    delay = zero if flows.delay_s is None else flows.delay_s
    weight = one if flows.weight is None else flows.weight
    cap = one * np.inf if flows.cap_bytes_per_s is None else flows.cap_bytes_per_s
    ready, end, left = np.full(count, np.nan), np.full(count, np.inf), flows.num_bytes.copy()
    carried, peak = np.zeros(capacity.size), np.zeros(capacity.size)
    now, told = 0.0, 0
    while True:
        for flow in range(count):
            after = [] if flows.after is None else flows.after[slice(*flows.after_offsets[flow : flow + 2])]
            if np.isnan(ready[flow]) and all(end[one] <= now for one in after):
                ready[flow] = max(now, start[flow])
        first = ready + delay
        over = np.isinf(end) & (first <= now) & (left <= 1e-9 * flows.num_bytes)
        if over.any():
            end[over], left[over] = now, 0.0
            continue
        on = np.isinf(end) & (first <= now)
        rate = zero.copy()
        rate[on] = fair_rates(use[:, on], capacity, weight[on], cap[on])
        if np.isinf(rate).any():
            left[np.isinf(rate)] = 0.0
            continue
        peak = np.maximum(peak, use @ rate)
        moments = [
            *(now + left[rate > 0] / rate[rate > 0]),
            *first[first > now],
            *changes.at_s[told : told + 1],
        ]
        soon = min([*moments, np.inf])
        done = min(soon, until_s) if on.any() or np.isfinite(soon) else soon
        if np.isfinite(done):
            carried += use @ (rate * (done - now))
            left = np.maximum(left - rate * (done - now), 0.0)
        if not soon <= until_s or np.isinf(soon):
            return Played(ready, end, left, carried, peak)
        now = soon
        while told < changes.at_s.size and changes.at_s[told] <= now:
            capacity[changes.link[told]] = changes.bytes_per_s[told]
            told += 1
