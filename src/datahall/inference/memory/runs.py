"""Chains of known blocks: neighbouring blocks that are used alike are one run, found by the key of their chain.

A chain is what one owner (a group, a session, a key of a trace) has of the cache of one replica, without a gap from its
first block on: every request uses a chain from its beginning, and what nobody uses is forgotten from its end.  So the
further back a block stands, the fewer requests use it, and the longer ago it was used:

    users   3 3 3 3 │ 1 1 1 │ 0 0 0 0 0 │ 0 0 │ −1 −1 −1 │ −2
                                newer     older  in the host's memory, then on drives: nobody can use it there

Runs whose `users` are 0 or less are in the list by last use of their tier; of a run the last block is the oldest.
"""

from __future__ import annotations

import numpy as np

from datahall.compiled import inline
from datahall.inference.memory.lru import insert, remove
from datahall.inference.simulation.state import NONE, NUM_TIERS, RUN, Cache, Ints, Records

EMPTY = 0  # place of the table of chains; no run has this number


@inline
def find(c: Cache, key: int) -> int:
    """The first run of a chain, or −1."""
    mask = c.chains.size - 1
    place = key & mask
    while c.chains[place] != EMPTY:
        if c.runs[c.chains[place]]["key"] == key:
            return int(c.chains[place])
        place = (place + 1) & mask
    return NONE


@inline
def add_run(c: Cache, key: int, before: int, first: int, last: int, users: int) -> int:
    """A new run behind the last one of a chain, or the first one of a chain that is not known."""
    run = new_run(c, first, last, users)
    c.runs[run]["before"], c.runs[run]["after"] = before, NONE
    if before != NONE:
        c.runs[before]["after"] = run
        return run
    mask = c.chains.size - 1
    place = key & mask
    while c.chains[place] != EMPTY:
        place = (place + 1) & mask
    c.chains[place] = run
    c.runs[run]["key"] = key
    return run


@inline
def new_run(c: Cache, first: int, last: int, users: int) -> int:
    """A run that is in no chain yet: one that was given back, or the next that was never used."""
    spare = c.runs[EMPTY]
    run = int(spare["after"])
    if run == EMPTY:
        spare["last"] += 1
        run = int(spare["last"])
    else:
        spare["after"] = c.runs[run]["after"]
    one = c.runs[run]
    one["first"], one["last"], one["users"] = first, last, users
    return run


@inline
def give_run(c: Cache, run: int) -> None:
    """The run is free for others."""
    c.runs[run]["after"] = c.runs[EMPTY]["after"]
    c.runs[EMPTY]["after"] = run


@inline
def link_newest(c: Cache, replica: int, run: int, tier: int) -> None:
    """Put a run that nobody uses behind all others of a tier."""
    row, one = c.tiers[NUM_TIERS * replica + tier], c.runs[run]
    one["users"] = -tier
    insert(c.runs, row, run, row["newest"], NONE)
    row["held"] += one["last"] - one["first"]


@inline
def unlink(c: Cache, replica: int, run: int) -> None:
    """Take a run out of the list of its tier; it is on the chip then."""
    one = c.runs[run]
    row = c.tiers[NUM_TIERS * replica - one["users"]]
    remove(c.runs, row, run)
    row["held"] -= one["last"] - one["first"]
    one["users"] = 0


@inline
def split(c: Cache, replica: int, run: int, place: int) -> int:
    """Cut a run before a block; returns the upper part, which is the next older one."""
    one = c.runs[run]
    upper = new_run(c, place, one["last"], one["users"])
    one["last"] = place
    behind = one["after"]
    c.runs[upper]["before"], c.runs[upper]["after"], one["after"] = run, behind, upper
    if behind != NONE:
        c.runs[behind]["before"] = upper
    if one["users"] <= 0:
        insert(c.runs, c.tiers[NUM_TIERS * replica - one["users"]], upper, one["older"], run)
    return upper


@inline
def join(c: Cache, replica: int, run: int) -> bool:
    """Make a run and the one behind it one, where they are used alike; returns whether they were."""
    one = c.runs[run]
    upper = int(one["after"])
    if upper == NONE or c.runs[upper]["users"] != one["users"]:
        return False
    if one["users"] <= 0:
        if c.runs[upper]["newer"] != run:
            return False
        remove(c.runs, c.tiers[NUM_TIERS * replica - one["users"]], upper)
    behind = c.runs[upper]["after"]
    one["last"], one["after"] = c.runs[upper]["last"], behind
    if behind != NONE:
        c.runs[behind]["before"] = run
    give_run(c, upper)
    return True


@inline
def forget(c: Cache, run: int) -> None:
    """Drop the last run of a chain, which is in no list any more.

    With the only one goes the key; the gap it leaves is closed among those that were pushed on by it.
    """
    before = c.runs[run]["before"]
    give_run(c, run)
    if before != NONE:
        c.runs[before]["after"] = NONE
        return
    mask = c.chains.size - 1
    gap = c.runs[run]["key"] & mask
    while c.chains[gap] != run:
        gap = (gap + 1) & mask
    place = (gap + 1) & mask
    while c.chains[place] != EMPTY:
        wanted = c.runs[c.chains[place]]["key"] & mask
        if ((place - wanted) & mask) >= ((place - gap) & mask):
            c.chains[gap] = c.chains[place]
            gap = place
        place = (place + 1) & mask
    c.chains[gap] = EMPTY


def new_runs(num_blocks: int) -> tuple[Records, Ints]:
    """Runs for so many blocks, and the table of chains, of which no more than half is ever in use.

    What stands on blocks that were taken is forgotten a little later (`make_blocks`), so there are twice as many.  Both
    are all zeros: memory that no run has used yet is none.
    """
    size = 4
    while size < 4 * num_blocks:
        size *= 2
    return np.zeros(2 * num_blocks + 1, RUN), np.zeros(size, np.int64)
