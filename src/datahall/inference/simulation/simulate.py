"""Serving, event by event: requests meet a fleet of engines, and every step of every engine is simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from math import inf, isfinite

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError, option
from datahall.events.queue import num_pending
from datahall.events.schedule import push
from datahall.events.streams import stream
from datahall.inference.fleet.autoscale import Scaler
from datahall.inference.fleet.fleet import Fleet
from datahall.inference.simulation.feed import Feed, shares_prefixes
from datahall.inference.simulation.loop import advance, widen_queue
from datahall.inference.simulation.result import Meter, read_meter, summarise
from datahall.inference.simulation.run import Scaling, ServingRun
from datahall.inference.simulation.setup import (
    NUM_SLOTS,
    new_state,
    of_one_length,
    stack,
    step_tables,
    uneven_contexts,
)
from datahall.inference.simulation.state import (
    ACTIVE,
    ALL_ROWS,
    DONE,
    DRAINING,
    NEED_RECORDS,
    NEED_ROWS,
    NEED_SLOTS,
    NEXT,
    NO_MORE_ROWS,
    NONE,
    OFF,
    POST,
    SLOT,
    STARTING,
    STATUS,
    TWO_CHOICES,
    UNTIL,
    Records,
    State,
    Tables,
)
from datahall.inference.simulation.watch import NUM_LOOKS
from datahall.scenario.sections.wanted.promise import NO_LIMITS, Promise
from datahall.workload.traffic.requests import Requests

ALWAYS = 1 << 40  # steps of a leap: no limit
TRACE_STEPS = 200_000  # kept for a timeline
FEW_EVENTS = 20_000  # that are moved to a larger queue sooner than a compiler is loaded


def simulate_serving(
    fleet: Fleet,
    traffic: Requests | Iterable[Requests],
    *,
    users: int = 0,
    users_over_s: float = 0.0,
    users_until_s: float = inf,
    slo: Promise | None = None,
    seed: int = 0,
    record: bool = False,
    cached_tokens: NDArray[np.generic] | None = None,
    answer_s: NDArray[np.float64] | None = None,
    region: NDArray[np.int64] | None = None,
    warmup_s: float = 0.0,
    measure_until_s: float = inf,
    measure_rows: int = ALL_ROWS,
    most_arrivals: int = 0,
    drain_apart: bool = False,
    share_wanted: float = 0.0,
    until_s: float = inf,
    trace_s: float = 0.0,
    watch: bool = False,
    max_leap: int = ALWAYS,
    compiled: bool = True,
) -> ServingRun:
    """Play requests on a fleet until all have ended, or until a time.

    Open loop: each request comes at its arrival_s.  With `users`, each of them sends the next row when its last request
    has ended and arrival_s (think time) has passed, unless that is after `users_until_s`; they begin evenly spread over
    `users_over_s`, so that those who ask alike do not march together for ever.  Requests of one length that come at a
    rate would keep the order in which an empty fleet deals them for tens of thousands of requests: until the warm-up
    ends each goes to the less busy of two replicas.  `cached_tokens` says how much of each prompt a prefix cache holds,
    instead of the engines' own; `answer_s` the latency of a cache in front, −1 for a request that it passes on.
    Requests that arrive from `warmup_s` to `measure_until_s` in the first `measure_rows` rows are measured; with
    `most_arrivals` conversations go on beyond the end: so many requests arrive, and are counted as they do, in
    whichever row they stand; with `drain_apart`, rates and means over time leave out the time in which no more
    requests come; with `share_wanted` a run ends when those that are measured have ended, or as soon as it is certain
    that fewer of them keep the limits, and says no more than that; with `watch` the fleet is read over time.
    """
    if users < 0 or not until_s > 0:
        raise ScenarioError(
            f"{users} users until {until_s:g} s", hint="0 or more users, until a time after 0"
        )
    traffic, first = _peeked(traffic)
    caching = (
        cached_tokens is None
        and shares_prefixes(first)
        and any(p.replica.engine.prefix_caching for p in fleet.pools)
    )
    dealt = fleet.routing == "least-outstanding" and fleet.autoscaling is None and not users
    mixes = dealt and warmup_s > 0 and of_one_length(first)
    feed = Feed(
        traffic,
        cached_tokens=cached_tokens,
        answer_s=answer_s,
        region=region,
        open_loop=users == 0,
        luck=stream(seed, "serving", "speculation")
        if any(p.replica.speculation for p in fleet.pools)
        else None,
        picks=stream(seed, "serving", "routing") if fleet.routing == "two-choices" or mixes else None,
    )
    tables = step_tables(fleet)
    state = new_state(
        fleet,
        tables,
        caching=caching,
        record=record,
        trace_steps=TRACE_STEPS if trace_s > 0 else 0,
        num_looks=NUM_LOOKS if watch else 0,
        num_slots=max(min(NUM_SLOTS, len(first) + 64), 2 * users + 64),
    )
    state.pools["uneven"] = uneven_contexts(first, state.pools["lanes"])
    whole = state.fleet[0]
    whole["users"], whole["num_posts"], whole["warmup_s"] = users, users, warmup_s
    whole["users_until_s"], whole["measure_until_s"] = users_until_s, measure_until_s
    whole["measure_rows"], whole["share_wanted"] = measure_rows, share_wanted
    whole["goes_on"], whole["most_arrivals"] = most_arrivals > 0, most_arrivals or ALL_ROWS
    state.posts["kind"][:users] = NEXT
    state.posts["time_s"][:users] = np.arange(users) * (users_over_s / max(1, users))
    limits = slo or NO_LIMITS
    whole["ttft_limit_s"], whole["tpot_limit_s"] = limits.ttft_s, limits.tpot_s
    whole["trace_until_s"], whole["max_leap"] = trace_s, max(1, max_leap)
    for outage in fleet.outages:
        push(
            state.queue,
            outage.start_s,
            STATUS,
            outage.replica,
            DRAINING if outage.drain else OFF,
            priority=STATUS,
        )
        back_s = outage.start_s + outage.duration_s
        if isfinite(back_s):
            push(state.queue, back_s, STATUS, outage.replica, ACTIVE, priority=STATUS)
    play = Play(fleet, state, stack(tables), feed, compiled)
    if mixes:
        play.mix(min(warmup_s, until_s))
    return play.run(until_s, (warmup_s, users_until_s) if drain_apart else None)


class Play:
    """One run: hands the loop what it asks for until it is done."""

    def __init__(self, fleet: Fleet, state: State, tables: Tables, feed: Feed, compiled: bool = True) -> None:
        self.fleet, self.state, self.tables, self.feed = fleet, state, tables, feed
        self._compiled = compiled
        self._advance: Callable[[float], int] | None = None
        self._advances: State | None = None  # what it was bound to
        self._ended: list[Records] = []
        self._looks: list[tuple[float, int, int, int]] = []
        self._begun: Meter | None = None  # read at the end of the warm-up
        self._closed: Meter | None = None  # and when no more requests come
        self._load_s: tuple[float, float] | None = None
        self._more_rows()

    def mix(self, until_s: float) -> None:
        """Play the warm-up with each request at the less busy of two replicas."""
        whole = self.state.fleet[0]
        routing, whole["routing"] = int(whole["routing"]), TWO_CHOICES
        self._advance_to(until_s)
        self.state.fleet[0]["routing"] = routing

    def run(self, until_s: float, load_s: tuple[float, float] | None = None) -> ServingRun:
        """Play to the end, or to a time, with the autoscaler in between; `load_s`: when the load begins and ends."""
        self._load_s = load_s
        rule = self.fleet.autoscaling
        if rule is None:
            self.play(until_s)
            return self._result()
        scaler, now_s = Scaler(rule), 0.0
        while now_s < until_s:
            now_s = min(until_s, now_s + rule.interval_s)
            done = self.play(now_s) == DONE
            whole = self.state.fleet[0]
            waiting = (
                whole["num_arrived"] - whole["num_finished"] - whole["num_too_long"] - whole["num_too_large"]
            )
            self._look(now_s, int(waiting))
            if done and waiting == 0:
                break
            self._scale(scaler.decide(now_s, int(waiting)), now_s)
        return self._result()

    def play(self, until_s: float) -> int:
        """Advance to a time, reading the meters when the load begins and ends; returns `UNTIL` or `DONE`."""
        if self._load_s is None:
            return self._advance_to(until_s)
        start_s, end_s = self._load_s
        if self._begun is None and self._closed is None and start_s <= until_s:
            self._advance_to(start_s)
            self._begun = read_meter(self.state) if self._closed is None else None
        if self._begun is not None and self._closed is None and end_s <= until_s:
            self._advance_to(end_s)
            self._close()
        return self._advance_to(until_s)

    def _close(self) -> None:
        """No more requests come, for one reason or the other; the first counts."""
        if self._closed is None and self._load_s is not None:
            self._closed = read_meter(self.state)

    def _advance_to(self, until_s: float) -> int:
        while True:
            if self._advance is None or self._advances is not self.state:
                self._advance, self._advances = self._bound(), self.state
            why = self._advance(until_s)
            if why in (UNTIL, DONE):
                return int(why)
            if why == NEED_ROWS:
                self._more_rows()
            elif why == NO_MORE_ROWS:
                self._close()
            elif why == NEED_SLOTS:
                self._more_slots(self.state.slots.size)
            elif why == NEED_RECORDS:
                self._take_records()

    def _bound(self) -> Callable[[float], int]:
        """The loop on the state as it is now."""
        if self._compiled:
            return advance.bound(self.state, self.tables)
        return partial(advance.interpreted, self.state, self.tables)

    def _more_rows(self) -> None:
        whole, more = self.state.fleet[0], self.feed.next_rows()
        if more is None:
            whole["last_rows"] = 1
            return
        rows, following, before = more
        if following.size:
            self._link(rows, following, before)
        left = self.state.rows[whole["next_row"] :]
        whole["next_row"], whole["any_priority"] = 0, self.feed.any_priority
        whole["explicit_tokens"] = self.feed.explicit_tokens
        self.state = self.state._replace(
            rows=np.concatenate([left, rows]) if left.size else np.ascontiguousarray(rows),
            keys=self.feed.keys,
        )

    def _link(self, rows: Records, following: Records, before: NDArray[np.int64]) -> None:
        """Requests that follow another get their slots now, and are chained to it."""
        num = following.size
        if self.state.fleet[0]["num_free_slots"] < num + 4:
            self._more_slots(max(num + 4, self.state.slots.size))
        whole, slots = self.state.fleet[0], self.state.slots
        free = whole["num_free_slots"]
        taken = slots["free"][free - num : free].copy()
        whole["num_free_slots"] = free - num
        for name in following.dtype.names or ():
            slots[name][taken] = following[name]
        order = np.argsort(before, kind="stable")
        same = np.append(before[order][1:] == before[order][:-1], False)
        sibling = np.where(same, np.append(taken[order][1:], NONE), NONE)
        slots["sibling"][taken[order]] = sibling
        first = np.append(True, ~same[:-1])
        parents, children = before[order][first], taken[order][first]
        own = parents < rows.size
        rows["child"][parents[own]] = children[own]
        slots["child"][taken[parents[~own] - rows.size]] = children[~own]

    def _more_slots(self, num: int) -> None:
        state, old = self.state, self.state.slots.size
        whole = state.fleet[0]
        slots = np.concatenate([state.slots, np.zeros(num, SLOT)])
        posts = np.concatenate([state.posts, np.zeros(num, POST)])
        held = whole["num_free_slots"]
        slots["free"][num : num + held] = state.slots["free"][:held]
        slots["free"][:num] = np.arange(old + num - 1, old - 1, -1)
        whole["num_free_slots"] = held + num
        widen = widen_queue.interpreted if num_pending(state.queue) < FEW_EVENTS else widen_queue
        self.state = state._replace(slots=slots, posts=posts, queue=widen(state.queue, 2 * (old + num)))

    def _take_records(self) -> None:
        whole = self.state.fleet[0]
        self._ended.append(self.state.ended[: whole["num_ended"]].copy())
        whole["num_ended"] = 0

    def _scale(self, wanted: int, now_s: float) -> None:
        """Start or drain replicas of the first pool until as many are there, or on their way, as are wanted."""
        assert self.fleet.autoscaling is not None
        replicas, queue = self.state.replicas, self.state.queue
        own = np.flatnonzero(replicas["pool"] == 0)
        status = replicas["status"][own]
        there = own[(status == ACTIVE) | (status == STARTING)]
        for replica in own[status == OFF][: max(0, wanted - there.size)]:
            replicas[replica]["status"] = STARTING
            replicas[replica]["active_since_s"] = now_s
            push(
                queue,
                now_s + self.fleet.autoscaling.cold_start_s,
                STATUS,
                int(replica),
                ACTIVE,
                priority=STATUS,
            )
        running = own[status == ACTIVE]
        surplus = there.size - wanted
        for replica in running[np.argsort(replicas["outstanding"][running], kind="stable")][
            : max(0, surplus)
        ]:
            push(queue, now_s, STATUS, int(replica), DRAINING, priority=STATUS)

    def _look(self, now_s: float, num_requests: int) -> None:
        """Write down what the autoscaler sees."""
        status = self.state.replicas["status"][self.state.replicas["pool"] == 0]
        active, starting = np.count_nonzero(status == ACTIVE), np.count_nonzero(status == STARTING)
        self._looks.append((now_s, int(active), int(starting), num_requests))

    def _result(self) -> ServingRun:
        self._take_records()
        ended = self._ended[0] if len(self._ended) == 1 else np.concatenate(self._ended)
        run = summarise(self.state, ended, self._begun, self._closed)
        if not self._looks:
            return run
        time_s, active, starting, requests = (np.array(column) for column in zip(*self._looks, strict=True))
        seen = Scaling(time_s=time_s, num_active=active, num_starting=starting, num_requests=requests)
        return msgspec.structs.replace(run, scaling=seen)


def _peeked(traffic: Requests | Iterable[Requests]) -> tuple[Requests | Iterable[Requests], Requests]:
    """The traffic, and its first chunk to look at."""
    empty = ScenarioError(
        "no request comes in that time", field="duration", hint=f"a longer {option('duration')}"
    )
    if isinstance(traffic, Requests):
        if not len(traffic):
            raise empty
        return traffic, traffic
    chunks = iter(traffic)
    first = next(chunks, None)
    if first is None or not len(first):
        raise empty
    return chain((first,), chunks), first
