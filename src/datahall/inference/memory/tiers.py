"""Below the chip's cache: blocks that were pushed out of it stay known in the host's memory, then on drives.

Each tier of a replica forgets its least recently used block to the next, the last one for good; a block stands in one
tier only, so the tiers together remember what one cache of their size would.
"""

from __future__ import annotations

from datahall.compiled import inline
from datahall.inference.memory.runs import forget, join, link_newest, split, unlink
from datahall.inference.simulation.state import NONE, NUM_TIERS, State, is_measured


@inline
def count_lifted(s: State, replica: int, slot: int, run: int) -> None:
    """A prompt finds blocks below the chip: whose hits they are, and the time of their way up."""
    one, step = s.slots[slot], s.cache.tiers[NUM_TIERS * replica]
    row = s.cache.tiers[NUM_TIERS * replica - s.cache.runs[run]["users"]]
    num = s.cache.runs[run]["last"] - s.cache.runs[run]["first"]
    if one["preempted"] == 0 and is_measured(s, slot):
        row["hit_tokens"] += num * s.pools[s.replicas[replica]["pool"]]["block_tokens"]
    if step["lifting"] != slot:
        step["lifting"], step["own_lifted_s"] = slot, 0.0
    step["lifted_s"] += num * row["block_s"]
    step["own_lifted_s"] += num * row["block_s"]
    step["longest_lifted_s"] = max(step["longest_lifted_s"], step["own_lifted_s"])


@inline
def shown_time(s: State, replica: int, step_s: float) -> float:
    """How much longer a step is because of the blocks that its prompts have lifted; ranks lift theirs at once [s].

    They come layer by layer while the layers before are computed: what is left shows, at least the first layer's.
    """
    step, pool = s.cache.tiers[NUM_TIERS * replica], s.pools[s.replicas[replica]["pool"]]
    whole_s = max(step["longest_lifted_s"], step["lifted_s"] / pool["lanes"])
    step["lifted_s"], step["longest_lifted_s"], step["lifting"] = 0.0, 0.0, NONE
    return float(max(pool["layer_share"] * whole_s, whole_s - step_s))


@inline
def make_blocks(s: State, replica: int) -> None:
    """The oldest blocks that were taken go down to the next tier that there is, or are forgotten."""
    for tier in range(NUM_TIERS):
        row, below = s.cache.tiers[NUM_TIERS * replica + tier], tier + 1
        while below < NUM_TIERS and s.cache.tiers[NUM_TIERS * replica + below]["blocks"] == 0:
            below += 1
        room = row["blocks"] if tier > 0 else s.replicas[replica]["free"]
        while row["held"] > room:
            run = int(row["oldest"])
            cut = s.cache.runs[run]["last"] - (row["held"] - room)
            if cut > s.cache.runs[run]["first"]:
                run = split(s.cache, replica, run, cut)
            unlink(s.cache, replica, run)
            if below == NUM_TIERS:
                forget(s.cache, run)
            else:
                link_newest(s.cache, replica, run, below)
                join(s.cache, replica, run)


@inline
def clear_tiers(s: State, replica: int) -> None:
    """Forget all that a replica knows and nobody uses, the lowest tier first: chains end there."""
    for tier in range(NUM_TIERS - 1, -1, -1):
        row = s.cache.tiers[NUM_TIERS * replica + tier]
        while row["held"] > 0:
            run = int(row["oldest"])
            unlink(s.cache, replica, run)
            forget(s.cache, run)
