"""The prefix cache: full blocks stay known by a key after their request has left, until the room is needed.

A prompt hits the blocks it finds from its start; a block is the same only where all that stands before it is, as in
vLLM, whose hash of a block has the hash of the one before in it.  Blocks that no request uses any more are free and
still known; they are forgotten least recently used first, the last of a prompt before its beginning.  All is done by
runs of blocks (`runs.py`), never block by block.
"""

from __future__ import annotations

from datahall.compiled import inline
from datahall.inference.memory.runs import add_run, find, join, link_newest, split, unlink
from datahall.inference.memory.tiers import count_lifted
from datahall.inference.simulation.state import NONE, State, ceil_div

LOW = (1 << 31) - 1
FACTORS = (1_540_483_477, 1_103_515_245, 2_038_074_743, 1_181_783_497)  # odd, below 2^31: no product wraps
ENDLESS = 1 << 40  # blocks of a session


@inline
def mixed(left: int, right: int) -> int:
    """A key of 62 bits from two numbers; equal in compiled and plain Python, as no product passes 2^63."""
    left_low, left_high = left & LOW, (left >> 31) & LOW
    right_low, right_high = right & LOW, (right >> 31) & LOW
    high = (left_low * FACTORS[0] + right_low * FACTORS[1]) >> 20
    low = (left_high * FACTORS[2] + right_high * FACTORS[3]) >> 20
    high = ((high & LOW) ^ (low & LOW)) * FACTORS[2] + (right_low ^ (left_high << 1 & LOW)) * FACTORS[0]
    low = (((high >> 31) & LOW) ^ left_low) * FACTORS[3] + (right_low ^ (low & LOW)) * FACTORS[1]
    return ((high >> 31) & LOW) << 31 | (low >> 31) & LOW


@inline
def chain_of(s: State, replica: int, slot: int, block: int, block_tokens: int) -> tuple[int, int, int]:
    """The chain that a block of a request is in: its key, its first block, and the one behind its last.

    A prompt is the keys that its trace gives, then what its group shares, then what its session has.
    """
    one, explicit = s.slots[slot], s.fleet[0]["explicit_tokens"]
    owner, first, end, below = one["session"] * 4 + 2, 0, ENDLESS, 0
    shared = one["shared"] // block_tokens if one["group"] >= 0 else 0
    if one["key_count"] > 0 and explicit > 0:
        place = min(block * block_tokens // explicit, one["key_count"])
        first = ceil_div(place * explicit, block_tokens)
        if place < one["key_count"]:
            owner = s.keys[one["key_start"] + place] * 4 + 3
            end, shared = ceil_div((place + 1) * explicit, block_tokens), 0
        else:
            below = s.keys[one["key_start"] + place - 1] * 4 + 3
    if block < shared:
        owner, end = one["group"] * 4 + 1, shared
    elif shared > first:
        first, below = shared, mixed(one["group"] * 4 + 1, below)
    return mixed(mixed(owner, first * s.replicas.size + replica), below), int(first), int(end)


@inline
def num_hits(s: State, replica: int, slot: int, block_tokens: int, most: int) -> tuple[int, int]:
    """Leading blocks of a request that are known, up to `most`, and how many of these nobody uses.

    A block below the chip is one that nobody uses: like those it takes a free block when it is shared.
    """
    block, unused = 0, 0
    while block < most:
        key, _, end = chain_of(s, replica, slot, block, block_tokens)
        end = min(end, most)
        run = find(s.cache, key)
        while run != NONE and block < end:
            last = min(int(s.cache.runs[run]["last"]), end)
            if s.cache.runs[run]["users"] <= 0:
                unused += last - block
            block, run = last, int(s.cache.runs[run]["after"])
        if block < end:
            break
    return block, unused


@inline
def share_blocks(
    s: State, replica: int, slot: int, block_tokens: int, first: int, last: int, computed: bool
) -> None:
    """A request uses its blocks first … last − 1 under their keys.

    Those it has computed become known, or are copies of known blocks and given back; the others were hits.
    """
    rep, block = s.replicas[replica], first
    while block < last:
        key, _, end = chain_of(s, replica, slot, block, block_tokens)
        end = min(end, last)
        before, run = NONE, find(s.cache, key)
        while run != NONE and s.cache.runs[run]["last"] <= block:
            before, run = run, int(s.cache.runs[run]["after"])
        while run != NONE and block < end:
            if s.cache.runs[run]["last"] > end:
                split(s.cache, replica, run, end)
            one = s.cache.runs[run]
            block, num = int(one["last"]), one["last"] - one["first"]
            if one["users"] > 0:
                rep["free"] += num if computed else 0
            else:
                if not computed:
                    rep["free"] -= num
                    if one["users"] < 0:
                        count_lifted(s, replica, slot, run)
                unlink(s.cache, replica, run)
            one["users"] += 1
            before, run = run, int(one["after"])
        if computed and block < end:
            add_run(s.cache, key, before, block, end, 1)
            block = end
    s.slots[slot]["keyed"] = last


@inline
def release_blocks(s: State, replica: int, slot: int, block_tokens: int, held: int, num_full: int) -> None:
    """A request leaves: its full blocks stay known while there is room."""
    rep, keyed = s.replicas[replica], s.slots[slot]["keyed"]
    rep["free"] += held - keyed
    end = num_full
    while end > 0:
        key, first, _ = chain_of(s, replica, slot, end - 1, block_tokens)
        run, known, behind = NONE, first, find(s.cache, key)
        while behind != NONE and known < end:
            run, known, behind = behind, int(s.cache.runs[behind]["last"]), int(s.cache.runs[behind]["after"])
        made = NONE
        if known < end:
            made = run = add_run(s.cache, key, run, known, end, 0)
        elif known > end:
            split(s.cache, replica, run, end)
        while run != NONE:
            one = s.cache.runs[run]
            if one["first"] < keyed:
                one["users"] -= 1
                rep["free"] += one["last"] - one["first"] if one["users"] == 0 else 0
            elif one["users"] <= 0 and run != made:
                unlink(s.cache, replica, run)
            if one["users"] == 0:
                link_newest(s.cache, replica, run, 0)
            join(s.cache, replica, run)
            run = int(one["before"])
        end = first
    s.slots[slot]["keyed"] = 0
