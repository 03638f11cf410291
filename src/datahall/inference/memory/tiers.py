"""Below the chip's cache: blocks that were pushed out of it stay known in the host's memory, then on drives.

Each tier of a replica forgets its least recently used block to the next, the last one for good; a block stands in one
tier only, so the tiers together remember what one cache of their size would.  An entry below the chip has `users` of
−1 (host) or −2 (drives): nobody can use it before it is lifted.
"""

from __future__ import annotations

from datahall.compiled import inline
from datahall.inference.memory.lru import append, remove
from datahall.inference.simulation.state import NONE, State

NUM_TIERS = 2


@inline
def link_below(s: State, replica: int, tier: int, entry: int) -> None:
    """Put an entry behind all others of a tier."""
    row = s.tiers[NUM_TIERS * replica + tier]
    s.entries[entry]["users"] = -1 - tier
    append(s.entries, row, entry)
    row["held"] += 1


@inline
def lift(s: State, replica: int, entry: int) -> None:
    """Take an entry out of its tier; nobody uses it yet."""
    row = s.tiers[NUM_TIERS * replica - 1 - s.entries[entry]["users"]]
    remove(s.entries, row, entry)
    row["held"] -= 1
    s.entries[entry]["users"] = 0


@inline
def count_lifted(s: State, replica: int, slot: int, entry: int) -> None:
    """A prompt finds a block below the chip: whose hit it is, and the time of its way up."""
    one, step = s.slots[slot], s.tiers[NUM_TIERS * replica]
    row = s.tiers[NUM_TIERS * replica - 1 - s.entries[entry]["users"]]
    fleet = s.fleet[0]
    timely = fleet["warmup_s"] <= one["arrival_s"] < fleet["measure_until_s"]
    if one["preempted"] == 0 and timely and one["row"] < fleet["measure_rows"]:
        row["hit_tokens"] += s.pools[s.replicas[replica]["pool"]]["block_tokens"]
    if step["lifting"] != slot:
        step["lifting"], step["own_lifted_s"] = slot, 0.0
    step["lifted_s"] += row["block_s"]
    step["own_lifted_s"] += row["block_s"]
    step["longest_lifted_s"] = max(step["longest_lifted_s"], step["own_lifted_s"])


@inline
def shown_time(s: State, replica: int, step_s: float) -> float:
    """How much longer a step is because of the blocks that its prompts have lifted; ranks lift theirs at once [s].

    They come layer by layer while the layers before are computed: what is left shows, at least the first layer's.
    """
    step, pool = s.tiers[NUM_TIERS * replica], s.pools[s.replicas[replica]["pool"]]
    whole_s = max(step["longest_lifted_s"], step["lifted_s"] / pool["lanes"])
    step["lifted_s"], step["longest_lifted_s"], step["lifting"] = 0.0, 0.0, NONE
    return float(max(pool["layer_share"] * whole_s, whole_s - step_s))


@inline
def sunk(s: State, replica: int, entry: int) -> int:
    """An entry that has left the chip goes down; returns the one that no tier has room for, or −1."""
    for tier in range(NUM_TIERS):
        row = s.tiers[NUM_TIERS * replica + tier]
        if row["blocks"] > 0:
            link_below(s, replica, tier, entry)
            entry = NONE
            if row["held"] > row["blocks"]:
                entry = int(row["oldest"])
                lift(s, replica, entry)
            if entry == NONE:
                break
    return entry


@inline
def lift_any(s: State, replica: int) -> int:
    """Some entry of the tiers of a replica, taken out; −1 where they are empty."""
    for tier in range(NUM_TIERS):
        if s.tiers[NUM_TIERS * replica + tier]["held"] > 0:
            entry = int(s.tiers[NUM_TIERS * replica + tier]["oldest"])
            lift(s, replica, entry)
            return entry
    return NONE
