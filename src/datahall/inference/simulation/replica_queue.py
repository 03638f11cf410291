"""Requests on one replica: the queue in front of it, the running list, and what leaving either one gives back."""

from __future__ import annotations

import math

from datahall.compiled import inline
from datahall.inference.memory.prefix_cache import release_blocks
from datahall.inference.simulation.decode_clock import (
    blocks_since,
    join_ticks,
    leave_ticks,
    phase_of,
    push_finish,
    remove_finish,
)
from datahall.inference.simulation.state import NONE, State


@inline
def count_queue(s: State, replica: int, change: int, now: float) -> None:
    """The queue of a replica grows or shrinks by one."""
    rep, fleet = s.replicas[replica], s.fleet[0]
    rep["queue_area_s"] += rep["queued"] * (now - rep["queue_since_s"])
    rep["queue_since_s"] = now
    rep["queued"] += change
    rep["peak_queued"] = max(rep["peak_queued"], rep["queued"])
    fleet["waiting_area_s"] += fleet["num_waiting"] * (now - fleet["waiting_since_s"])
    fleet["waiting_since_s"] = now
    fleet["num_waiting"] += change
    fleet["peak_waiting"] = max(fleet["peak_waiting"], fleet["num_waiting"])


@inline
def queue_last(s: State, replica: int, slot: int, now: float) -> None:
    """A request waits behind all others of its priority."""
    rep, one = s.replicas[replica], s.slots[slot]
    one["replica"] = replica
    ahead = rep["queue_tail"]
    if s.fleet[0]["any_priority"] and ahead != NONE and s.slots[ahead]["priority"] > one["priority"]:
        ahead, behind = NONE, rep["queue_head"]
        while behind != NONE and s.slots[behind]["priority"] <= one["priority"]:
            ahead, behind = behind, s.slots[behind]["waits"]
    one["waits"] = rep["queue_head"] if ahead == NONE else s.slots[ahead]["waits"]
    if ahead == NONE:
        rep["queue_head"] = slot
    else:
        s.slots[ahead]["waits"] = slot
    if one["waits"] == NONE:
        rep["queue_tail"] = slot
    count_queue(s, replica, 1, now)


@inline
def queue_first(s: State, replica: int, slot: int, now: float) -> None:
    """A preempted request waits before all others."""
    rep = s.replicas[replica]
    s.slots[slot]["waits"] = rep["queue_head"]
    if rep["queue_head"] == NONE:
        rep["queue_tail"] = slot
    rep["queue_head"] = slot
    count_queue(s, replica, 1, now)


@inline
def leave_queue(s: State, replica: int, now: float) -> int:
    """The first that waits, taken out of the queue."""
    rep = s.replicas[replica]
    slot = int(rep["queue_head"])
    rep["queue_head"] = s.slots[slot]["waits"]
    if rep["queue_head"] == NONE:
        rep["queue_tail"] = NONE
    s.slots[slot]["waits"] = NONE
    count_queue(s, replica, -1, now)
    return slot


@inline
def start_running(s: State, replica: int, slot: int, now: float) -> None:
    """A request gets a place, behind those that run."""
    rep, one = s.replicas[replica], s.slots[slot]
    one["before"], one["after"], one["place"] = rep["run_tail"], NONE, NONE
    if rep["run_tail"] == NONE:
        rep["run_head"] = slot
    else:
        s.slots[rep["run_tail"]]["after"] = slot
    rep["run_tail"] = slot
    rep["running"] += 1
    if one["scheduled_s"] < 0.0:
        one["scheduled_s"] = now


@inline
def start_decoding(s: State, replica: int, slot: int) -> None:
    """A request whose prompt is computed gets tokens at each tick from now on."""
    rep, one = s.replicas[replica], s.slots[slot]
    pool = s.pools[rep["pool"]]
    tokens = max(one["output"], one["ready"]) - one["emitted"]
    steps = tokens
    if pool["tokens_per_step"] > 1.0:
        most = pool["verified"]
        steps = speculated_steps(
            tokens, pool["tokens_per_step"], pool["excess_steps"], pool["step_spread"], most, one["luck"]
        )
    clock = rep["clock"]
    one["clock"] = clock
    one["phase"] = NONE
    if not pool["reserve"]:
        held = (one["blocks"] - one["fixed"]) * pool["block_tokens"]
        slack = int((held - one["done"]) / pool["tokens_per_step"])
        phase = phase_of(clock, slack, pool["steps_per_block"])
        one["phase"] = phase
        s.phases[replica, phase] += 1
        rep["phased"] += 1
    rep["context"] += one["done"]
    join_ticks(s, replica, slot)
    push_finish(s, replica, slot, clock + steps)


@inline
def speculated_steps(
    tokens: int, per_step: float, excess: float, spread: float, most_per_step: int, luck: float
) -> int:
    """Steps until so many tokens are accepted: a renewal count, drawn by its normal limit.

    Mean m/E + (E[X²] − E)/(2E²), variance m·σ²/E³ (Feller, An Introduction to Probability Theory II, XI).
    """
    steps = int(tokens / per_step + excess + spread * math.sqrt(tokens) * luck + 0.5)
    return max(1, (tokens + most_per_step - 1) // most_per_step, min(tokens, steps))


@inline
def stop_running(s: State, replica: int, slot: int) -> None:
    """A request leaves its place and its blocks; what it has computed and emitted is written into its slot."""
    rep, one = s.replicas[replica], s.slots[slot]
    pool = s.pools[rep["pool"]]
    held = one["blocks"]
    if one["place"] != NONE:
        steps, phase = rep["clock"] - one["clock"], one["phase"]
        held += blocks_since(one["clock"], rep["clock"], phase, pool["steps_per_block"])
        if phase != NONE:
            s.phases[replica, phase] -= 1
            rep["phased"] -= 1
        rep["context"] -= one["done"] + steps * pool["tokens_per_step"]
        leave_ticks(s, replica, slot)
        remove_finish(s, replica, one["place"])
        made = min(int(steps * pool["tokens_per_step"]), one["output"] - one["emitted"])
        one["done"] += made
        one["emitted"] += made
        one["place"] = NONE
        if rep["decoding"] == 0:
            rep["context"] = 0.0
    if s.fleet[0]["caching"] and pool["caching"]:
        release_blocks(s, replica, slot, pool["block_tokens"], held, one["done"] // pool["block_tokens"])
    else:
        rep["free"] += held
    one["blocks"] = 0
    if one["before"] == NONE:
        rep["run_head"] = one["after"]
    else:
        s.slots[one["before"]]["after"] = one["after"]
    if one["after"] == NONE:
        rep["run_tail"] = one["before"]
    else:
        s.slots[one["after"]]["before"] = one["before"]
    rep["running"] -= 1


@inline
def forget_computed(s: State, slot: int) -> None:
    """The cache of a request is lost: prompt and all it has emitted are computed again before its next token."""
    one = s.slots[slot]
    one["todo"] = one["prompt"] + one["emitted"]
    one["done"], one["parked"] = 0, 0
