"""A request from its arrival to its end: queued on a replica, handed on, answered, followed by the next turn."""

from __future__ import annotations

from datahall.compiled import inline
from datahall.events.unchecked_queue import move_event, remove_event
from datahall.inference.memory.tiers import clear_tiers
from datahall.inference.simulation.decode_clock import count_gaps, leap_time, steps_until
from datahall.inference.simulation.histogram import E2E, ITL, QUEUE, TPOT, TTFT, add
from datahall.inference.simulation.replica_queue import forget_computed, leave_queue, queue_last
from datahall.inference.simulation.scheduler import DECODES, IDLE, WAITS
from datahall.inference.simulation.state import (
    ACTIVE,
    ANSWERED,
    ARRIVE,
    DRAINING,
    FINISHED,
    HANDED,
    NEXT,
    NONE,
    OFF,
    PREFILL,
    REROUTE,
    STEP,
    TOO_LARGE,
    TOO_LONG,
    State,
    ceil_div,
    fixed_blocks,
    give_slot,
    is_counted,
    is_measured,
    post,
    take_slot,
)


@inline
def take_row(s: State) -> int:
    """The next row gets a slot."""
    slot, fleet = take_slot(s), s.fleet[0]
    row, one = s.rows[fleet["next_row"]], s.slots[slot]
    fleet["next_row"] += 1
    one["row"], one["prompt"], one["output"] = row["row"], row["prompt"], row["output"]
    one["group"], one["shared"], one["session"] = row["group"], row["shared"], row["session"]
    one["priority"], one["region"], one["cached"] = row["priority"], row["region"], row["cached"]
    one["child"], one["key_start"], one["key_count"] = row["child"], row["key_start"], row["key_count"]
    one["pick"], one["luck"] = row["pick"], row["luck"]
    one["answer_s"], one["sibling"], one["arrival_s"] = row["answer_s"], NONE, row["arrival_s"]
    return slot


@inline
def arrive(s: State, slot: int, now: float) -> None:
    """A request enters the system."""
    one, fleet = s.slots[slot], s.fleet[0]
    one["arrival_s"], one["scheduled_s"], one["first_s"] = now, -1.0, -1.0
    one["todo"], one["done"], one["emitted"], one["chunk"] = one["prompt"], 0, 0, 0
    one["hit"], one["keyed"], one["blocks"], one["preempted"] = 0, 0, 0, 0
    one["waits"], one["place"], one["ready"], one["parked"] = NONE, NONE, 0, 0
    one["replica"], one["delay_s"], one["prefill_s"] = NONE, 0.0, 0.0
    one["number"] = fleet["num_arrived"] if fleet["goes_on"] else one["row"]
    fleet["num_arrived"] += 1
    fleet["last_arrival_s"] = now
    if is_measured(s, slot):
        fleet["last_measured_s"] = now
    else:
        fleet["num_never"] += one["number"] < fleet["measure_rows"]
    fleet["sum_t"] += now
    fleet["sum_tt"] += now * now
    fleet["sum_q"] += fleet["num_waiting"]
    fleet["sum_tq"] += now * fleet["num_waiting"]


@inline
def misfit(s: State, slot: int, replica: int) -> int:
    """Why a replica can never run a request, or `FINISHED`."""
    one, pool = s.slots[slot], s.pools[s.replicas[replica]["pool"]]
    tokens = one["prompt"] + one["output"] - 1
    if tokens > pool["max_context"]:
        return TOO_LONG
    if pool["role"] == PREFILL:
        tokens = one["prompt"]
    one["fixed"] = fixed_blocks(s, s.replicas[replica]["pool"], tokens)
    if ceil_div(tokens, pool["block_tokens"]) + one["fixed"] > pool["blocks"]:
        return TOO_LARGE
    return FINISHED


@inline
def enqueue(s: State, replica: int, slot: int, now: float) -> None:
    """A request reaches its replica, which looks at it when its step ends, or at once where it is idle."""
    rep = s.replicas[replica]
    pool = s.pools[rep["pool"]]
    alone = rep["queue_head"] == NONE or s.fleet[0]["any_priority"]
    s.slots[slot]["queued_s"] = now
    queue_last(s, replica, slot, now)
    room = pool["sequences"] * pool["lanes"]
    if rep["in_flight"] == IDLE:
        rep["in_flight"] = WAITS
        post(s, now, STEP, replica)
        return
    ends_s = -1.0
    if rep["in_flight"] == WAITS:
        if rep["queued"] == room:
            ends_s = now
    elif rep["leap"] > 1 and alone and rep["running"] < room:
        steps = steps_until(rep["step_s"], rep["growth_s"], now - rep["start_s"], rep["leap"])
        if steps < rep["leap"]:
            rep["leap"] = steps
            ends_s = max(now, rep["start_s"] + leap_time(rep["step_s"], rep["growth_s"], steps))
    if ends_s >= 0.0:
        move_event(s.queue, rep["token"], ends_s)


@inline
def emit_token(s: State, slot: int, now: float) -> None:
    """A prompt is computed and gives a token: the first, or the next of a request whose cache was lost."""
    one = s.slots[slot]
    one["emitted"] += 1
    if one["first_s"] < 0.0:
        one["first_s"] = now + one["delay_s"]
    elif is_counted(s, slot):
        add(s.histograms, ITL, now - one["token_s"])
    one["token_s"] = now


@inline
def end_request(s: State, slot: int, status: int, now: float) -> None:
    """A request is over: count it, start what waited for it, and free its slot."""
    one, fleet = s.slots[slot], s.fleet[0]
    first_s, end_s, follows = one["first_s"], now + one["delay_s"], one["child"]
    fleet["last_end_s"] = max(fleet["last_end_s"], end_s)
    if status in (FINISHED, ANSWERED):
        fleet["num_finished"] += 1
        fleet["num_answered"] += status == ANSWERED
        fleet["all_prompt_tokens"] += one["prompt"]
        fleet["all_output_tokens"] += one["output"]
        if is_measured(s, slot):
            count_request(s, slot, first_s, end_s)
    elif status == TOO_LONG:
        fleet["num_too_long"] += 1
    else:
        fleet["num_too_large"] += 1
    if fleet["record"]:
        row = s.ended[fleet["num_ended"]]
        row["row"], row["status"], row["replica"] = one["row"], status, one["replica"]
        row["prompt"], row["output"], row["hit"] = one["prompt"], one["output"], one["hit"]
        row["preempted"], row["arrival_s"] = one["preempted"], one["arrival_s"]
        row["scheduled_s"], row["first_s"], row["end_s"] = one["scheduled_s"], first_s, end_s
        fleet["num_ended"] += 1
    give_slot(s, slot)
    if follows == NONE and fleet["users"] > 0:
        post(s, end_s, NEXT, NONE)
    while follows != NONE:
        post(s, end_s + s.slots[follows]["arrival_s"], ARRIVE, follows)
        follows = s.slots[follows]["sibling"]


@inline
def count_request(s: State, slot: int, first_s: float, end_s: float) -> None:
    """Whether a request that got its answer kept the limits, and its latencies."""
    one, fleet = s.slots[slot], s.fleet[0]
    ttft_s = first_s - one["arrival_s"]
    tpot_s = (end_s - first_s) / (one["output"] - 1) if one["output"] > 1 else 0.0
    fleet["num_measured"] += 1
    fleet["prompt_tokens"] += one["prompt"]
    fleet["output_tokens"] += one["output"]
    fleet["hit_tokens"] += one["hit"]
    fleet["num_good"] += ttft_s <= fleet["ttft_limit_s"] and tpot_s <= fleet["tpot_limit_s"]
    if not is_counted(s, slot):
        return
    add(s.histograms, TTFT, ttft_s)
    add(s.histograms, E2E, end_s - one["arrival_s"])
    add(s.histograms, QUEUE, max(0.0, one["scheduled_s"] - one["arrival_s"]))
    if one["output"] > 1:
        add(s.histograms, TPOT, tpot_s)


@inline
def hand_over(s: State, replica: int, slot: int, now: float) -> None:
    """A prompt is computed: its cache goes to a replica that decodes, most of it while the prompt was computed.

    shown = setup + max(bytes/bandwidth · share of the last layer, bytes/bandwidth − time of the prompt)
    """
    one, pool = s.slots[slot], s.pools[s.replicas[replica]["pool"]]
    whole_s = pool["handoff_token_s"] * one["todo"]
    shown_s = pool["handoff_setup_s"] + max(
        pool["handoff_shown"] * whole_s, whole_s - (now - one["scheduled_s"])
    )
    one["prefill_s"] = now  # tells this hand-over from one that a failure has undone
    post(s, now + shown_s, HANDED, slot, replica, now)


@inline
def change_status(s: State, replica: int, status: int, now: float) -> None:
    """A replica starts, drains or is off."""
    rep, fleet = s.replicas[replica], s.fleet[0]
    if rep["status"] == OFF and status != OFF:
        rep["active_since_s"] = now
    if status == OFF and rep["status"] != OFF:
        rep["active_s"] += now - rep["active_since_s"]
    rep["status"] = status
    drained(s, replica, now)
    if status == ACTIVE:
        while fleet["held"] != NONE:
            slot = fleet["held"]
            fleet["held"] = s.slots[slot]["waits"]
            post(s, now, REROUTE, slot)


@inline
def stop_replica(s: State, replica: int, now: float) -> None:
    """A replica is lost: its whole steps have brought tokens, the one in flight has not, and its cache is gone."""
    rep = s.replicas[replica]
    if rep["in_flight"] != IDLE:
        remove_event(s.queue, rep["token"])
    if rep["in_flight"] == DECODES:
        elapsed_s = now - rep["start_s"]
        steps = steps_until(rep["step_s"], rep["growth_s"], elapsed_s, rep["leap"])
        if leap_time(rep["step_s"], rep["growth_s"], steps) > elapsed_s:
            steps -= 1
        if steps > 0:
            count_gaps(s, replica, steps)
            rep["tick_s"] = rep["start_s"] + leap_time(rep["step_s"], rep["growth_s"], steps)
        rep["clock"] += steps
        rep["context"] += rep["decoding"] * steps * s.pools[rep["pool"]]["tokens_per_step"]
    rep["in_flight"], rep["partial"], rep["step_head"] = IDLE, NONE, NONE
    while rep["queue_head"] != NONE:
        send_again(s, leave_queue(s, replica, now), now)


@inline
def send_again(s: State, slot: int, now: float) -> None:
    """A request of a lost replica looks for another."""
    forget_computed(s, slot)
    s.slots[slot]["replica"], s.slots[slot]["prefill_s"] = NONE, -1.0
    s.fleet[0]["num_rerouted"] += 1
    post(s, now, REROUTE, slot)


@inline
def clear_replica(s: State, replica: int) -> None:
    """Nothing is left on a lost replica."""
    rep = s.replicas[replica]
    clear_tiers(s, replica)
    rep["outstanding"], rep["free"] = 0, s.pools[rep["pool"]]["blocks"]


@inline
def drained(s: State, replica: int, now: float) -> None:
    """A replica that takes no more requests is off when the last has left."""
    rep = s.replicas[replica]
    if rep["status"] == DRAINING and rep["outstanding"] == 0:
        rep["status"] = OFF
        rep["active_s"] += now - rep["active_since_s"]
