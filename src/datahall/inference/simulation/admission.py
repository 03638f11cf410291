"""Who gets a place on a replica, and who gives it up."""

from __future__ import annotations

from datahall.compiled import inline
from datahall.inference.memory.prefix_cache import num_hits, share_blocks
from datahall.inference.memory.tiers import make_blocks
from datahall.inference.simulation.replica_queue import (
    forget_computed,
    leave_queue,
    queue_first,
    start_decoding,
    start_running,
    stop_running,
)
from datahall.inference.simulation.state import NONE, State, ceil_div


@inline
def preempt(s: State, replica: int, slot: int, now: float) -> float:
    """A running request gives its blocks back and waits at the front; returns what moving its cache takes [s]."""
    rep, one = s.replicas[replica], s.slots[slot]
    pool = s.pools[rep["pool"]]
    decoding = one["place"] != NONE
    stop_running(s, replica, slot)
    rep["preempted"] += 1
    s.fleet[0]["num_preempted"] += 1
    one["preempted"] += 1
    moved_s = 0.0
    if pool["swap"] and decoding:
        one["parked"] = 1
        moved_s = pool["swap_token_s"] * one["done"]
    else:
        forget_computed(s, slot)
    resume_without(s, replica, slot)
    queue_first(s, replica, slot, now)
    return moved_s


@inline
def resume_without(s: State, replica: int, slot: int) -> None:
    """A request leaves the chain of prompts that were cut, if it is in it."""
    ahead, one = NONE, int(s.replicas[replica]["partial"])
    while one != NONE and one != slot:
        ahead, one = one, int(s.slots[one]["waits"])
    if one == NONE:
        return
    if ahead == NONE:
        s.replicas[replica]["partial"] = s.slots[slot]["waits"]
    else:
        s.slots[ahead]["waits"] = s.slots[slot]["waits"]


@inline
def readmit(s: State, replica: int, now: float) -> float:
    """Requests whose cache was computed elsewhere go straight to decoding; returns the time that takes [s]."""
    rep = s.replicas[replica]
    pool = s.pools[rep["pool"]]
    moved_s = 0.0
    while rep["queue_head"] != NONE and rep["running"] < pool["sequences"] * pool["lanes"]:
        one = s.slots[rep["queue_head"]]
        if not one["parked"]:
            break
        tokens = one["done"] + (one["output"] - one["emitted"] if pool["reserve"] else 0)
        blocks = ceil_div(tokens, pool["block_tokens"]) + one["fixed"]
        if rep["running"] > 0 and blocks + 1 + rep["phased"] // pool["steps_per_block"] > rep["free"]:
            break
        slot = leave_queue(s, replica, now)
        moved_s += pool["swap_token_s"] * one["done"] if one["preempted"] else 0.0
        one["blocks"] = blocks
        rep["free"] -= blocks
        start_running(s, replica, slot, now)
        start_decoding(s, replica, slot)
    return moved_s


@inline
def next_blocks(s: State, replica: int, left: int) -> int:
    """Blocks that the next pieces of prompts that were cut need, with so many tokens of budget left."""
    rep, blocks = s.replicas[replica], 0
    pool, slot = s.pools[rep["pool"]], int(rep["partial"])
    while slot != NONE and left > 0:
        one = s.slots[slot]
        chunk = min(one["todo"] - one["done"], left, pool["budget"])
        blocks += max(0, ceil_div(one["done"] + chunk, pool["block_tokens"]) + one["fixed"] - one["blocks"])
        left -= chunk
        slot = int(one["waits"])
    return int(blocks)


@inline
def take_batch(s: State, replica: int, now: float) -> None:
    """Static batching: those that wait, padded to the longest prompt and answer, run to the end together."""
    rep = s.replicas[replica]
    pool = s.pools[rep["pool"]]
    slot, count, prompt, output = rep["queue_head"], 0, 0, 0
    while slot != NONE and count < pool["sequences"] * pool["lanes"]:
        one = s.slots[slot]
        longest, most = max(prompt, one["prompt"]), max(output, one["output"])
        if (count + 1) * ceil_div(longest + most, pool["block_tokens"]) > rep["free"]:
            break
        prompt, output, count = longest, most, count + 1
        slot = one["waits"]
    head = NONE
    for _ in range(count):
        slot = leave_queue(s, replica, now)
        one = s.slots[slot]
        one["todo"] = one["chunk"] = prompt
        one["ready"] = output  # all of the batch end with the longest
        one["blocks"] = ceil_div(prompt + output, pool["block_tokens"])
        rep["free"] -= one["blocks"]
        start_running(s, replica, slot, now)
        one["waits"] = head
        head = slot
    rep["step_head"] = head


@inline
def take_prompts(s: State, replica: int, left: int, preempted: bool, now: float) -> None:
    """Fill what is left of the budget with the prompt that was cut and then with those that wait, in order."""
    rep = s.replicas[replica]
    pool = s.pools[rep["pool"]]
    size, head = pool["block_tokens"], NONE
    caching = s.fleet[0]["caching"] and pool["caching"]
    resumed = rep["partial"]
    while left > 0:
        if caching:
            make_blocks(s, replica)
        slot = resumed
        if resumed == NONE:
            if (preempted and rep["running"] > 0) or rep["running"] >= pool["sequences"] * pool["lanes"]:
                break
            slot = rep["queue_head"]
        if slot == NONE or s.slots[slot]["parked"]:
            break
        one = s.slots[slot]
        done, hits, unused = one["done"], 0, 0
        if resumed == NONE:
            if one["cached"] > 0:
                done = min(one["cached"], one["todo"] - 1)
            elif caching:
                hits, unused = num_hits(s, replica, slot, size, (one["todo"] - 1) // size)
                done = hits * size
        chunk = one["todo"] - done
        if chunk > min(left, pool["budget"]):
            s.fleet[0]["num_over_budget"] += 1
            if pool["chunked"]:
                chunk = min(left, pool["budget"])
            elif head != NONE:
                break  # a whole prompt that comes first goes, or decodes would keep it out for ever
        tokens = done + chunk
        if pool["reserve"]:
            tokens = one["todo"] + one["output"] - one["emitted"] - 1
        wanted = ceil_div(max(tokens, one["todo"]) if pool["whole"] else tokens, size) + one["fixed"]
        blocks = ceil_div(tokens, size) + one["fixed"] - one["blocks"] - hits
        if resumed == NONE and one["todo"] > tokens and blocks + unused <= rep["free"]:
            whole = ceil_div(one["todo"], size) + one["fixed"] - hits
            s.fleet[0]["num_over_blocks"] += whole + unused > rep["free"]
        if resumed == NONE and max(blocks, wanted - hits) + unused > rep["free"]:
            s.fleet[0]["num_short"] += 1
            break
        if resumed == NONE:
            leave_queue(s, replica, now)
            start_running(s, replica, slot, now)
            one["hit"] += done if one["preempted"] == 0 else 0
            if hits > 0:
                share_blocks(s, replica, slot, size, 0, hits, False)
                one["blocks"] = hits
        one["done"], one["chunk"] = done, chunk
        if blocks > 0:
            rep["free"] -= blocks
            one["blocks"] += blocks
        if resumed != NONE:
            resumed = rep["partial"] = one["waits"]
        one["waits"], head = head, slot
        left -= chunk
    rep["step_head"] = head
