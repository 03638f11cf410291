"""One step of a replica: who gets tokens in it, how long it takes, and what is different after it.

The rules are those of vLLM's V1 engine: running requests first, then the queue in order, while the token budget, the
places and the blocks last; the last prompt may be cut; when no block is free the one admitted last gives way.
"""

from __future__ import annotations

from datahall.compiled import inline
from datahall.events.trace import record
from datahall.inference.memory.tiers import make_blocks, shown_time
from datahall.inference.simulation.admission import next_blocks, preempt, readmit, take_batch, take_prompts
from datahall.inference.simulation.decode_clock import blocks_needed, count_gaps, leap_time, ticks_that_fit
from datahall.inference.simulation.state import (
    CONTINUOUS,
    DYNAMIC,
    NONE,
    NUM_TIERS,
    STEP,
    State,
    Tables,
    ceil_div,
    post,
    step_table,
)
from datahall.inference.step.table import (
    decode_time,
    head_time,
    host_time,
    joined_time,
    prefill_time,
    ranks_time,
)

IDLE, DECODES, PROMPTS_ONLY, WAITS = range(4)  # what a replica has in flight
LEAST_LEAP = 32  # steps that are always leaped; beyond, no further than contexts grow by half
DECODE_STEPS, MIXED_STEP, PROMPT_STEP = range(3)  # kinds in a trace


@inline
def begin_step(s: State, tables: Tables, replica: int, now: float) -> None:
    """Decide on the next step, or leap, and when it ends."""
    rep = s.replicas[replica]
    pool = s.pools[rep["pool"]]
    rep["in_flight"], rep["step_head"] = IDLE, NONE
    period, needed, moved_s, preempted = pool["steps_per_block"], 0, 0.0, False
    if pool["batching"] == CONTINUOUS:
        moved_s = readmit(s, replica, now)
        while True:
            needed = s.phases[replica, (-rep["clock"]) % period]
            left = pool["budget"] * pool["lanes"]
            if pool["mixed"]:
                left -= rep["decoding"] * pool["verified"]
            if needed + next_blocks(s, replica, left) <= rep["free"]:
                break
            moved_s += preempt(s, replica, rep["run_tail"], now)
            preempted = True
        if pool["mixed"]:
            rep["free"] -= needed
        take_prompts(s, replica, left, preempted, now)
    elif rep["running"] == 0 and rep["queue_head"] != NONE:
        opens_s = s.slots[rep["queue_head"]]["queued_s"] + pool["wait_s"]
        if (
            pool["batching"] == DYNAMIC
            and rep["queued"] < pool["sequences"] * pool["lanes"]
            and opens_s > now
        ):
            rep["in_flight"], rep["start_s"] = WAITS, now
            post(s, opens_s, STEP, replica)
            return
        take_batch(s, replica, now)
    price_step(s, tables, replica, needed, moved_s, preempted, now)


@inline
def price_step(
    s: State, tables: Tables, replica: int, needed: int, moved_s: float, preempted: bool, now: float
) -> None:
    """The time of the step that was decided on; it is leaped where nobody can join before the next one ends.

    Data-parallel ranks (lanes) share decodes evenly and end their step together; a prompt is on one of them, and the
    rank with the longest contexts is waited for (`uneven_contexts`).
    """
    rep = s.replicas[replica]
    pool = s.pools[rep["pool"]]
    table, lanes = step_table(tables, rep["pool"], pool["verified"]), pool["lanes"]
    prompts, tokens, longest, ready, total_s, longest_s = 0, 0, 0, 0, 0.0, 0.0
    slot = rep["step_head"]
    while slot != NONE:
        one = s.slots[slot]
        alone_s = prefill_time(table, one["chunk"], one["done"])
        prompts, tokens, total_s = prompts + 1, tokens + one["chunk"], total_s + alone_s
        ready += one["done"] + one["chunk"] == one["todo"]
        longest, longest_s = max(longest, one["chunk"]), max(longest_s, alone_s)
        slot = one["waits"]
    decodes = rep["decoding"] if pool["mixed"] or prompts == 0 else 0
    if decodes + prompts == 0:
        return
    if decodes > 0 and not pool["mixed"]:
        rep["free"] -= needed
    num, context = ceil_div(decodes, lanes), 0.0
    if decodes > 0:
        context = rep["context"] / decodes + 1.0
        if decodes > lanes:
            context *= 1.0 + pool["uneven"] / num**0.5
    attention_s = decode_time(table, num, context)
    if prompts > 0:
        attention_s = joined_time(table, num, context, float(longest))
    step_s = (
        ranks_time(
            table,
            num * table.num_verified + max(longest, ceil_div(tokens, lanes)),
            num * table.num_verified + ceil_div(tokens, lanes),
        )
        + attention_s
        + max(longest_s, total_s / lanes)
        + head_time(table, ceil_div(decodes + ready, lanes))
        + host_time(table, ceil_div(decodes + prompts, lanes))
        + moved_s
    )
    if s.fleet[0]["caching"] and s.cache.tiers[NUM_TIERS * replica]["lifted_s"] > 0.0:
        step_s += shown_time(s, replica, step_s - moved_s)
    leap, growth_s = 1, 0.0
    if prompts == 0:
        leap = s.heap[replica, 0] - rep["clock"]
        leap = min(
            leap, s.fleet[0]["max_leap"], max(LEAST_LEAP, int(context / (2.0 * pool["tokens_per_step"])))
        )
        if preempted or moved_s > 0.0:  # the next step may admit again
            leap = 1
        if leap > 1:
            leap = 1 + ticks_that_fit(
                s, replica, pool["steps_per_block"], rep["clock"] + 1, leap - 1, rep["free"]
            )
        if leap > 1:
            last_s = decode_time(table, num, context + (leap - 1) * pool["tokens_per_step"])
            growth_s = (last_s - attention_s) / (leap - 1)
    rep["in_flight"] = DECODES if decodes > 0 else PROMPTS_ONLY
    rep["leap"], rep["start_s"], rep["step_s"], rep["growth_s"] = leap, now, step_s, growth_s
    rep["prompt_tokens"] += tokens
    post(s, now + leap_time(step_s, growth_s, leap), STEP, replica)


@inline
def end_decodes(s: State, replica: int, now: float) -> None:
    """The clock of a replica after the steps in flight: contexts, blocks and counters."""
    rep, fleet = s.replicas[replica], s.fleet[0]
    pool = s.pools[rep["pool"]]
    leap, duration_s = rep["leap"], now - rep["start_s"]
    used = pool["blocks"] - rep["free"]
    rep["busy_s"] += duration_s
    rep["num_steps"] += leap
    if now < fleet["trace_until_s"]:
        kind = PROMPT_STEP if rep["in_flight"] == PROMPTS_ONLY else DECODE_STEPS
        kind = MIXED_STEP if kind == DECODE_STEPS and rep["step_head"] != NONE else kind
        record(s.trace, rep["start_s"], kind, replica, rep["decoding"], float(leap), duration_s)
    if rep["in_flight"] == DECODES:
        clock, decoding = rep["clock"], rep["decoding"]
        rep["free"] -= blocks_needed(s, replica, pool["steps_per_block"], clock + 1, clock + leap)
        rep["clock"] = clock + leap
        rep["context"] += decoding * leap * pool["tokens_per_step"]
        count_gaps(s, replica, leap)
        rep["tick_s"] = now
    if fleet["caching"] and pool["caching"]:
        make_blocks(s, replica)
    rep["used_area_s"] += (used + pool["blocks"] - rep["free"]) / 2.0 * duration_s
    rep["peak_used"] = max(rep["peak_used"], pool["blocks"] - rep["free"])
    rep["in_flight"] = IDLE
