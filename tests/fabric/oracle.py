"""Fair shares and the simulation once more, slow and short: no heap, no region, every rate anew each time."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from datahall.fabric.flows.jobs import Traffic
from datahall.fabric.flows.order import Order
from datahall.fabric.flows.simulate import NO_CHANGES, Changes, Flows
from datahall.fabric.topology.graph import Floats, Ints, Paths, select


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


def unrolled(order: Order) -> Order:
    """The same order with a row for every round: it waits for all of the round before that its sender had a part in."""
    last: dict[int, int] = {}  # of each row, the row of its last round
    rows: list[tuple[int, int, list[int]]] = []  # row, round, what it waits for
    for begin, end in pairwise(_begins(order)):
        group = range(begin, end)
        before: dict[int, int] = {}
        for turn in range(int(order.num_times[begin])):
            now = {}
            for row in group:
                waits = [
                    last[one] for one in order.after[slice(*order.after_offsets[row : row + 2])].tolist()
                ]
                if turn:
                    rank = order.sender[row]
                    waits = [before[one] for one in group if rank in (order.sender[one], order.receiver[one])]
                now[row] = len(rows)
                rows.append((row, turn, waits))
            before = now
        last |= before
    row = np.array([one for one, _, _ in rows])
    counts = [len(waits) for _, _, waits in rows]
    return msgspec.structs.replace(
        order, phase=order.phase[row], member=order.member[row], num_rounds=order.num_rounds[row],
        num_times=np.ones(row.size, np.int32), sender=np.full(row.size, -1, np.int32),
        receiver=np.full(row.size, -1, np.int32),
        wait_s=np.where([turn == 0 for _, turn, _ in rows], order.wait_s[row], 0.0),
        after=np.array([one for _, _, waits in rows for one in waits], np.int32),
        after_offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    )  # fmt: skip


def _begins(order: Order) -> list[int]:
    """Where rows begin that go through their rounds together: as many rounds, and none of them waits for another."""
    begins = [0]
    for row in range(1, order.phase.size):
        waits = order.after[slice(*order.after_offsets[row : row + 2])]
        if order.num_times[row] != order.num_times[row - 1] or (waits >= begins[-1]).any():
            begins.append(row)
    return [*begins, order.phase.size]


def message_by_message(made: Traffic) -> tuple[Flows, Ints]:
    """Flows of one round each in place of flows of several, and which each one stands for."""
    flows, rounds = made.flows, made.flows.rounds
    assert rounds is not None
    assert flows.after is not None
    assert flows.after_offsets is not None
    ones = np.ones(flows.num_flows, np.int32)
    bare = Order(
        phase=made.phase, member=np.arange(flows.num_flows, dtype=np.int32), num_rounds=ones,
        num_times=rounds.num_rounds, sender=rounds.sender, receiver=rounds.receiver, wait_s=flows.delay_s,
        after=flows.after, after_offsets=flows.after_offsets,
    )  # fmt: skip
    # a pause is before the first round only, so `wait_s` tells which row is one
    told = unrolled(msgspec.structs.replace(bare, wait_s=np.ones(flows.num_flows)))
    row = told.member
    return msgspec.structs.replace(
        flows, paths=select(flows.paths, row), num_bytes=flows.num_bytes[row], start_s=flows.start_s[row],
        delay_s=np.where(told.wait_s > 0, flows.delay_s[row], rounds.delay_s[row]), weight=flows.weight[row],
        share_fraction=None if flows.share_fraction is None else _shares(flows, row),
        after=told.after, after_offsets=told.after_offsets, label=flows.label[row], rounds=None,
    ), row  # fmt: skip


def _shares(flows: Flows, row: Ints) -> Floats:
    of = Paths(np.arange(flows.paths.links.size, dtype=np.int32), flows.paths.offsets)
    return flows.share_fraction[select(of, row).links]
