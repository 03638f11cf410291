"""The prefix cache: full blocks stay known by a key after their request has left, until the room is needed.

A block's key stands for all tokens up to its end, so a prompt hits the blocks it finds from its start.  Blocks that no
request uses any more are free and still known; they are forgotten least recently used first, the last of a prompt
before its beginning.  Keys of all replicas share one open-addressing table of entries.
"""

from __future__ import annotations

import numpy as np

from datahall.compiled import inline
from datahall.inference.memory.lru import append, remove
from datahall.inference.memory.tiers import count_lifted, lift, sunk
from datahall.inference.simulation.state import ENTRY, NONE, Records, State

LOW = (1 << 31) - 1
FACTORS = (1_540_483_477, 1_103_515_245, 2_038_074_743, 1_181_783_497)  # odd, below 2^31: no product wraps


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
def block_key(s: State, replica: int, slot: int, block: int, block_tokens: int) -> int:
    """The key of one block of a request in the cache of one replica."""
    one = s.slots[slot]
    place = block
    if one["key_count"] > 0 and s.fleet[0]["explicit_tokens"] > 0:
        place = block * block_tokens // s.fleet[0]["explicit_tokens"]
    if place < one["key_count"]:
        owner = s.keys[one["key_start"] + place] * 4 + 3
    elif one["group"] >= 0 and (block + 1) * block_tokens <= one["shared"]:
        owner = one["group"] * 4 + 1
    else:
        owner = one["session"] * 4 + 2
    return mixed(mixed(owner, block), replica)


@inline
def find(s: State, key: int) -> int:
    """The entry of a key, or −1."""
    mask = s.entries.size - 1
    place = key & mask
    while s.entries[place]["at"] != NONE:
        if s.entries[s.entries[place]["at"]]["key"] == key:
            return int(s.entries[place]["at"])
        place = (place + 1) & mask
    return NONE


@inline
def insert(s: State, key: int) -> int:
    """A new entry for a key that has none."""
    mask = s.entries.size - 1
    place = key & mask
    while s.entries[place]["at"] != NONE:
        place = (place + 1) & mask
    fleet = s.fleet[0]
    fleet["num_spare"] -= 1
    entry = int(s.entries[fleet["num_spare"]]["spare"])
    s.entries[place]["at"] = entry
    s.entries[entry]["key"] = key
    s.entries[entry]["users"] = 0
    return entry


@inline
def forget(s: State, entry: int) -> None:
    """Drop an entry, and close the gap it leaves among those that were pushed on by it."""
    mask = s.entries.size - 1
    gap = s.entries[entry]["key"] & mask
    while s.entries[gap]["at"] != entry:
        gap = (gap + 1) & mask
    place = (gap + 1) & mask
    while s.entries[place]["at"] != NONE:
        wanted = s.entries[s.entries[place]["at"]]["key"] & mask
        if ((place - wanted) & mask) >= ((place - gap) & mask):
            s.entries[gap]["at"] = s.entries[place]["at"]
            gap = place
        place = (place + 1) & mask
    s.entries[gap]["at"] = NONE
    fleet = s.fleet[0]
    s.entries[fleet["num_spare"]]["spare"] = entry
    fleet["num_spare"] += 1


@inline
def unlink(s: State, replica: int, entry: int) -> None:
    """Take an entry out of the list of those that nobody uses."""
    rep = s.replicas[replica]
    remove(s.entries, rep, entry)
    rep["cached"] -= 1


@inline
def link_newest(s: State, replica: int, entry: int) -> None:
    """Put an entry that nobody uses any more behind all others."""
    rep = s.replicas[replica]
    append(s.entries, rep, entry)
    rep["cached"] += 1


@inline
def num_hits(s: State, replica: int, slot: int, block_tokens: int, most: int) -> tuple[int, int]:
    """Leading blocks of a request that are known, up to `most`, and how many of these nobody uses.

    A block below the chip is one that nobody uses: like those it takes a free block when it is shared.
    """
    unused = 0
    for block in range(most):
        entry = find(s, block_key(s, replica, slot, block, block_tokens))
        if entry == NONE:
            return block, unused
        if s.entries[entry]["users"] <= 0:
            unused += 1
    return most, unused


@inline
def share_blocks(
    s: State, replica: int, slot: int, block_tokens: int, first: int, last: int, computed: bool
) -> None:
    """A request uses its blocks first … last − 1 under their keys.

    Those it has computed get a key, or are copies of known blocks and given back; the others were hits.
    """
    rep = s.replicas[replica]
    for block in range(first, last):
        key = block_key(s, replica, slot, block, block_tokens)
        entry = find(s, key)
        if entry == NONE:
            entry = insert(s, key)
        elif s.entries[entry]["users"] < 0:
            if not computed:
                count_lifted(s, replica, slot, entry)
                rep["free"] -= 1
            lift(s, replica, entry)
        elif s.entries[entry]["users"] == 0:
            unlink(s, replica, entry)
            rep["free"] -= 0 if computed else 1
        elif computed:
            rep["free"] += 1
        s.entries[entry]["users"] += 1
    s.slots[slot]["keyed"] = last


@inline
def release_blocks(s: State, replica: int, slot: int, block_tokens: int, held: int, num_full: int) -> None:
    """A request leaves: its full blocks stay known while there is room."""
    rep, keyed = s.replicas[replica], s.slots[slot]["keyed"]
    rep["free"] += held - keyed
    for block in range(num_full - 1, -1, -1):
        key = block_key(s, replica, slot, block, block_tokens)
        entry = find(s, key)
        if block < keyed:
            s.entries[entry]["users"] -= 1
            if s.entries[entry]["users"] == 0:
                link_newest(s, replica, entry)
                rep["free"] += 1
        elif entry == NONE:
            link_newest(s, replica, insert(s, key))
        elif s.entries[entry]["users"] < 0:
            lift(s, replica, entry)
            link_newest(s, replica, entry)
        elif s.entries[entry]["users"] == 0:
            unlink(s, replica, entry)
            link_newest(s, replica, entry)
    s.slots[slot]["keyed"] = 0


@inline
def make_blocks(s: State, replica: int) -> None:
    """The oldest entries that stand on blocks which have been taken go down, or are forgotten."""
    rep = s.replicas[replica]
    while rep["cached"] > rep["free"]:
        entry = rep["oldest"]
        unlink(s, replica, entry)
        entry = sunk(s, replica, entry)
        if entry != NONE:
            forget(s, entry)


def new_entries(num_blocks: int) -> Records:
    """Entries for so many blocks: no more than half of the table is ever in use.

    Entries of blocks that were taken are forgotten a little later (`make_blocks`), so there are twice as many.
    """
    size = 4
    while size < 4 * num_blocks:
        size *= 2
    entries = np.zeros(size, ENTRY)
    entries["at"] = NONE
    entries["spare"] = np.arange(size)
    return entries
