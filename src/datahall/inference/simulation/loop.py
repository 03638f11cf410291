"""The compiled loop of the serving simulation: arrivals and events of a whole fleet in the order of their time.

It comes back when its time is up or when it needs rows, slots or room for records; called again it goes on from there.
"""

from __future__ import annotations

import numpy as np

from datahall.compiled import Bare, Kernel, inline
from datahall.events.heap import ROOT
from datahall.events.queue import num_pending, reserve
from datahall.events.unchecked_queue import pop_event, push_event
from datahall.inference.fleet.balancing import BACK, FRONT, choose, list_members
from datahall.inference.memory.prefix_cache import share_blocks
from datahall.inference.simulation.lifecycle import (
    arrive,
    change_status,
    clear_replica,
    drained,
    emit_token,
    end_request,
    enqueue,
    hand_over,
    misfit,
    send_again,
    stop_replica,
    take_row,
)
from datahall.inference.simulation.replica_queue import start_decoding, stop_running
from datahall.inference.simulation.scheduler import IDLE, WAITS, begin_step, end_decodes
from datahall.inference.simulation.state import (
    ACTIVE,
    ANSWERED,
    ARRIVE,
    DONE,
    FINISHED,
    HANDED,
    LAND,
    NEED_RECORDS,
    NEED_ROWS,
    NEED_SLOTS,
    NEXT,
    NO_MORE_ROWS,
    NONE,
    OFF,
    PREFILL,
    REROUTE,
    STATUS,
    STEP,
    UNTIL,
    State,
    Tables,
    post,
)
from datahall.inference.simulation.watch import look

FINISH, HAND, LOSE = range(3)  # why requests leave a replica


@inline
def find_replica(s: State, slot: int, back: bool) -> tuple[int, int]:
    """The replica for a request, and why none can take it, or `FINISHED`."""
    which, refused = BACK if back else FRONT, FINISHED
    replica = choose(s, slot, back)
    for other in range(-1, s.members[which, 0]):
        if other >= 0:
            replica = int(s.members[which, 1 + other])
        if replica == NONE:
            break
        refused = misfit(s, slot, replica)
        if refused == FINISHED:
            break
    return replica, refused


@inline
def emit_first(s: State, replica: int, now: float) -> int:
    """Prompts of the step that are computed emit a token; returns those that need no more, chained by `waits`."""
    rep = s.replicas[replica]
    pool, ready = s.pools[rep["pool"]], NONE
    caching = s.fleet[0]["caching"] and pool["caching"]
    slot = rep["step_head"]
    rep["step_head"] = NONE
    while slot != NONE:
        one = s.slots[slot]
        behind = one["waits"]
        one["waits"] = NONE
        one["done"] += one["chunk"]
        if one["done"] < one["todo"]:
            one["waits"], rep["partial"] = rep["partial"], slot  # ranks cut one prompt each: in their order
        else:
            emit_token(s, slot, now)
            if caching:
                size = pool["block_tokens"]
                share_blocks(s, replica, slot, size, one["keyed"], one["done"] // size, True)
            if one["emitted"] >= max(one["output"], one["ready"]):
                one["waits"], ready = ready, slot
            elif pool["role"] == PREFILL:
                hand_over(s, replica, slot, now)
            else:
                start_decoding(s, replica, slot)
        slot = behind
    return ready


@inline
def leave_replica(s: State, replica: int, slot: int, why: int, now: float) -> int:
    """Requests leave: those that have all their tokens, one that is handed over, or all; returns the ended ones."""
    rep, ended = s.replicas[replica], NONE
    ready = slot
    while True:
        slot = ready
        if slot != NONE:
            ready = s.slots[slot]["waits"]
        elif why == FINISH and rep["decoding"] > 0 and s.heap[replica, 0] <= rep["clock"]:
            slot = s.heap[replica, 1]
        elif why == LOSE and rep["run_head"] != NONE:
            slot = rep["run_head"]
        else:
            break
        stop_running(s, replica, slot)
        rep["outstanding"] -= 1
        if why == FINISH:
            rep["output_tokens"] += s.slots[slot]["output"]
            s.slots[slot]["waits"], ended = ended, slot
        elif why == LOSE:
            send_again(s, slot, now)
    drained(s, replica, now)
    return ended


@inline
def queue_posts(s: State) -> None:
    """The events that the present one has brought about go into the queue."""
    fleet = s.fleet[0]
    for place in range(fleet["num_posts"]):
        one = s.posts[place]
        time_s, kind, a = one["time_s"], one["kind"], one["a"]
        if kind == NEXT:
            if fleet["next_row"] >= s.rows.size:
                continue
            if time_s + s.rows[fleet["next_row"]]["arrival_s"] >= fleet["users_until_s"]:
                fleet["next_row"] += 1  # the user stays away, and nobody else has that pause
                continue
            a, kind = take_row(s), ARRIVE
            time_s += s.slots[a]["arrival_s"]
        token = push_event(s.queue, time_s, kind, a, one["b"], one["x"])
        if kind == STEP:
            s.replicas[a]["token"] = token
    fleet["num_posts"] = 0


@inline
def next_event(s: State, event_s: float, row_s: float) -> tuple[int, int, int, float]:
    """Kind, slot, replica and stamp of what is due first; a row gets its slot."""
    if row_s <= event_s:
        return ARRIVE, take_row(s), NONE, 0.0
    return pop_event(s.queue)


@inline
def is_over(s: State, now: float) -> bool:
    """Whether what arrives now is no part of the run: turns that go on beyond its end."""
    fleet = s.fleet[0]
    enough = fleet["num_arrived"] >= fleet["most_arrivals"] or now >= fleet["users_until_s"]
    return bool(fleet["goes_on"] and enough)


@inline
def is_told(s: State) -> bool:
    """Whether too many have missed a limit, whatever the others will do, or all that are measured have ended."""
    fleet = s.fleet[0]
    most = fleet["measure_rows"] - fleet["num_never"]
    missed = fleet["num_measured"] - fleet["num_good"]
    told = fleet["num_measured"] == most
    return bool(told or (most > 0 and (most - missed) / most < fleet["share_wanted"]))


@inline
def all_ended(s: State, now: float) -> bool:
    """Whether no request is in the system, and none comes any more."""
    fleet = s.fleet[0]
    if not is_over(s, now):
        return bool(fleet["num_free_slots"] == s.slots.size)
    return bool(
        fleet["num_arrived"] == fleet["num_finished"] + fleet["num_too_long"] + fleet["num_too_large"]
    )


@inline
def next_time(s: State) -> tuple[float, float]:
    """When the next event is due, and the next row."""
    fleet, event_s, row_s = s.fleet[0], np.inf, np.inf
    if num_pending(s.queue) > 0:
        event_s = float(s.queue.heap[ROOT]["time_s"])
    if fleet["users"] == 0 and fleet["next_row"] < s.rows.size:
        row_s = s.rows[fleet["next_row"]]["arrival_s"]
    return event_s, row_s


def _advance(s: State, tables: Tables, until_s: float) -> int:
    """Play all that happens up to a time; returns why it stopped."""
    fleet = s.fleet[0]
    while True:
        if fleet["num_free_slots"] < 2:
            return NEED_SLOTS
        if fleet["record"] and fleet["num_ended"] + s.heap.shape[1] // 2 + 2 > s.ended.size:
            return NEED_RECORDS
        if not fleet["last_rows"] and s.rows.size - fleet["next_row"] <= fleet["users"]:
            return NEED_ROWS
        queue_posts(s)
        if fleet["num_arrived"] >= fleet["most_arrivals"]:
            fleet["last_rows"], fleet["next_row"] = 1, s.rows.size
        if fleet["last_rows"] and not fleet["rows_out"] and fleet["next_row"] >= s.rows.size:
            fleet["rows_out"] = 1
            return NO_MORE_ROWS
        event_s, row_s = next_time(s)
        now = min(event_s, row_s)
        if now == np.inf or (fleet["rows_out"] and all_ended(s, now)):
            return DONE  # failures and repairs after the last request are no part of the run
        if now > until_s:
            fleet["now_s"] = max(fleet["now_s"], until_s)
            return UNTIL
        if fleet["look_s"] <= now:
            look(s, now)
        fleet["now_s"] = now
        fleet["num_events"] += 1
        kind, slot, replica, stamp = next_event(s, event_s, row_s)
        if kind == ARRIVE and is_over(s, now):
            continue
        leaves, why, ended, status, back = NONE, NONE, NONE, FINISHED, False
        stepped = kind == STEP and s.replicas[slot]["in_flight"] != WAITS
        if kind == STEP:
            replica, slot = slot, NONE
            if stepped:
                end_decodes(s, replica, now)
                leaves, why = emit_first(s, replica, now), FINISH
        elif kind == STATUS:
            status, replica, slot = replica, slot, NONE
            if status == OFF:
                stop_replica(s, replica, now)
                why = LOSE
            change_status(s, replica, status, now)
        elif kind == HANDED:
            one = s.slots[slot]
            if one["replica"] != replica or one["prefill_s"] != stamp:
                continue
            leaves, why = slot, HAND
        if why != NONE:
            ended = leave_replica(s, replica, leaves, why, now)
        if kind == STEP:
            s.replicas[replica]["in_flight"] = IDLE
        elif kind == STATUS:
            if status == OFF:
                clear_replica(s, replica)
            list_members(s)
        else:
            lands = kind == LAND and s.replicas[replica]["status"] >= ACTIVE
            if lands and s.replicas[replica]["active_since_s"] > stamp:
                lands = False  # it was lost and is back: nothing there knows of this request
            if kind == ARRIVE:
                arrive(s, slot, now)
                if s.slots[slot]["answer_s"] >= 0.0:
                    status = ANSWERED
                    s.slots[slot]["delay_s"] = s.slots[slot]["answer_s"]
                    s.slots[slot]["first_s"] = now + s.slots[slot]["answer_s"]
            elif kind == HANDED:
                back = True
                s.slots[slot]["parked"] = 1
                if s.slots[slot]["emitted"] == 1:
                    s.slots[slot]["first_s"] = now + s.slots[slot]["delay_s"]
                    s.slots[slot]["token_s"] = now
                rep = s.replicas[replica]
                if rep["in_flight"] == IDLE and rep["queue_head"] != NONE:
                    rep["in_flight"] = WAITS
                    post(s, now, STEP, replica)
            elif kind == REROUTE:
                back = s.slots[slot]["parked"] == 1
            if status == FINISHED and not lands:
                replica, status = find_replica(s, slot, back)
                if replica == NONE:
                    s.slots[slot]["waits"] = fleet["held"]
                    fleet["held"] = slot
                elif status == FINISHED:
                    lands = send(s, slot, replica, back, now)
            if lands:
                enqueue(s, replica, slot, now)
            elif status != FINISHED:
                s.slots[slot]["waits"] = NONE
                ended = slot
        while ended != NONE:
            behind = s.slots[ended]["waits"]
            end_request(s, ended, status, now)
            ended = behind
            if fleet["share_wanted"] > 0.0 and is_told(s):
                return DONE
        if kind == STEP:
            begin_step(s, tables, replica, now)


@inline
def send(s: State, slot: int, replica: int, back: bool, now: float) -> bool:
    """A request sets out for its replica; whether it is there at once."""
    one, rep = s.slots[slot], s.replicas[replica]
    rep["outstanding"] += 1
    distance_s = s.distance_s[one["region"], rep["region"]] if not back else 0.0
    delay_s = max(one["delay_s"], s.pools[rep["pool"]]["first_token_s"] + distance_s)
    one["token_s"] -= delay_s - one["delay_s"]  # the next comes by a longer way than the one that it has
    one["delay_s"] = delay_s
    one["replica"] = replica
    if distance_s > 0.0:
        post(s, now + distance_s, LAND, slot, replica, now)
    return distance_s == 0.0


advance = Bare(_advance, compile_s=30.0)
widen_queue = Kernel(reserve, compile_s=2.0)
