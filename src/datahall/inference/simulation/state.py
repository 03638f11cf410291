"""What the serving simulation remembers, as arrays: requests in the system, replicas, kinds of replica, and counters.

A request that is in the system has a slot; a replica keeps the slots that wait in a linked list, those that run in
another, and those that decode in a heap by the step at which they end (`decode_clock.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import inline
from datahall.events.queue import Queue
from datahall.events.trace import Trace
from datahall.inference.step.table import StepTable

Records = NDArray[np.void]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NONE = -1
NUM_TIERS = 3  # of a prefix cache: the chip, the memory of its host, drives

# Events, by the order of those of one instant: a step that begins sees every request of its instant.
STATUS, ARRIVE, REROUTE, LAND, HANDED, STEP, NEXT = range(7)  # NEXT is no event: a user takes the next row
# A replica is off, about to be there, taking requests, or only finishing those it has.
OFF, STARTING, ACTIVE, DRAINING = range(4)
# What a pool does with a request; lists of replicas that routing chooses from have the same numbers.
BOTH, PREFILL, DECODE = range(3)
CONTINUOUS, STATIC, DYNAMIC = range(3)
ROUND_ROBIN, LEAST_OUTSTANDING, TWO_CHOICES, PREFIX_AFFINITY, SESSION = range(5)
# Why the loop came back: time is up, all is done, more rows, slots or room for records are needed.
ALL_ROWS = 1 << 62  # more than any run has
UNTIL, DONE, NEED_ROWS, NEED_SLOTS, NEED_RECORDS, NO_MORE_ROWS = range(6)
# How a request ended.
FINISHED, TOO_LONG, TOO_LARGE, ANSWERED = range(4)


def _record(ints: str, floats: str) -> np.dtype[np.void]:
    fields = [(name, "<i8") for name in ints.split()] + [(name, "<f8") for name in floats.split()]
    return np.dtype(fields, align=True)


# One request that has yet to come.  child: slot of the turn that follows it; answer_s: of a cache in front, or −1.
ROW = _record(
    "row prompt output group shared session priority region cached child key_start key_count pick",
    "arrival_s answer_s luck",
)
# One request in the system.  todo: tokens to compute until the next token comes out; done: of these, computed;
# number: of its arrival where turns go on beyond the run, of its row otherwise; token_s: when it had its last token,
# unless it had one at the replica's last tick; late: the next that had not.
SLOT = _record(
    "row prompt output group shared session priority region cached child key_start key_count pick sibling replica"
    " todo done emitted chunk hit keyed clock phase blocks before after waits place preempted ready parked"
    " fixed late free number",
    "arrival_s answer_s luck queued_s scheduled_s first_s token_s delay_s prefill_s",
)
POOL = _record(
    "role lanes budget sequences block_tokens blocks chunked mixed whole reserve swap batching max_context"
    " steps_per_block caching region verified",
    "wait_s first_token_s swap_token_s tokens_per_step excess_steps step_spread handoff_setup_s handoff_token_s"
    " handoff_shown state_blocks window_tokens window_token_blocks layer_share uneven weight",
)
# One replica.  In flight are `leap` decode steps from start_s: the first takes step_s, each further growth_s more.
# tick_s: when those that decode had their last token; late: the first of those that had it at another time; measured:
# how many of those that decode are.
REPLICA = _record(
    "status pool region outstanding running decoding phased clock free queue_head queue_tail queued run_head run_tail"
    " partial step_head leap in_flight token num_steps preempted prompt_tokens output_tokens peak_queued"
    " peak_used measured late",
    "context start_s step_s growth_s tick_s busy_s used_area_s queue_area_s queue_since_s active_since_s active_s",
)
# An event that is about to be queued.
POST = _record("kind a b", "time_s x")
ENDED = _record(
    "row status replica prompt output hit preempted",
    "arrival_s scheduled_s first_s end_s",
)
# Numbers of the whole fleet.  num_never: of the rows that may be measured, those that were there and never will be.
FLEET = _record(
    "num_arrived num_finished num_too_long num_too_large num_answered num_good num_preempted num_rerouted num_measured"
    " prompt_tokens output_tokens hit_tokens"
    " all_prompt_tokens all_output_tokens"
    " num_free_slots next_row last_rows rows_out measure_rows users num_ended turn held"
    " caching routing num_posts record any_priority max_leap num_waiting peak_waiting num_events explicit_tokens spill"
    " num_over_budget num_over_blocks num_short goes_on most_arrivals num_looks num_never",
    "now_s warmup_s measure_until_s users_until_s ttft_limit_s tpot_limit_s affinity_load trace_until_s"
    " waiting_area_s waiting_since_s last_measured_s last_end_s sum_t sum_tt sum_q sum_tq last_arrival_s"
    " look_s every_s share_wanted",
)
# A reading of the fleet: requests that run, blocks that are used, and the area under those that wait until then.
LOOK = _record("running", "time_s waiting_area_s used")


# Neighbouring blocks of a prefix cache that are used alike; before, after: in its chain; older, newer: by last use.
RUN = _record("key users first last before after older newer", "")
# One tier of the prefix cache of a replica, and its list of what nobody uses; blocks: it has room for, below the chip;
# block_s: the way of one up.  The chip's also sums up what the prompts of a step have lifted: all of them, the last
# (`lifting`), and the one with the most.
TIER = _record(
    "oldest newest held blocks hit_tokens lifting", "block_s lifted_s own_lifted_s longest_lifted_s"
)


class Cache(NamedTuple):
    """The prefix caches of all replicas."""

    runs: Records  # the first is none: its `last` counts those that were ever used, its `after` leads to the spare ones
    chains: Ints  # hash table: the first run of each chain
    tiers: Records  # [NUM_TIERS·replica + tier]


class Tables(NamedTuple):
    """Step tables of all pools, one below the other."""

    tokens_s: Floats
    head_s: Floats
    decode_s: Floats
    prefill_s: Floats
    host: Floats
    met_s: Floats
    joined_s: Floats
    empty_s: Floats


class State(NamedTuple):
    """Everything the loop reads and writes; few arrays, because compiled code counts references to each of them."""

    fleet: Records  # of one
    rows: Records  # that have yet to come
    slots: Records
    replicas: Records
    pools: Records
    heap: NDArray[
        np.int64
    ]  # [replica, 2·place] the step at which a decoding request ends, and beside it its slot
    phases: NDArray[np.int64]  # [replica, phase] decoding requests by the step at which they need a block
    members: NDArray[np.int64]  # [list, place] replicas that take requests; how many stands before them
    distance_s: Floats  # [region of the request, region of the replica], one way
    queue: Queue
    posts: Records
    histograms: Floats  # [measure, bin]
    ended: Records
    looks: Records  # readings over time; none where nobody asked for them
    trace: Trace
    cache: Cache
    keys: Ints  # of blocks, as a trace gives them


@inline
def step_table(tables: Tables, pool: int, num_verified: int) -> StepTable:
    """The table of one kind of replica."""
    return StepTable(
        tables.tokens_s[pool],
        tables.head_s[pool],
        tables.decode_s[pool],
        tables.prefill_s[pool],
        tables.host[pool],
        num_verified,
        tables.met_s[pool],
        tables.joined_s[pool],
        tables.empty_s[pool],
    )


@inline
def is_measured(s: State, slot: int) -> bool:
    """Whether a request is neither of those that fill the fleet nor of those that keep it full for the others."""
    one, fleet = s.slots[slot], s.fleet[0]
    early = fleet["warmup_s"] <= one["arrival_s"] < fleet["measure_until_s"]
    return bool(early and one["number"] < fleet["measure_rows"])


@inline
def is_counted(s: State, slot: int) -> bool:
    """Whether the times of a measured request are counted: where a run only tells who keeps the limits, none are."""
    return bool(s.fleet[0]["share_wanted"] == 0.0 and is_measured(s, slot))


@inline
def post(s: State, time_s: float, kind: int, a: int, b: int = 0, x: float = 0.0) -> None:
    """Queue an event when the present one has been processed; the queue's code then stands in one place only."""
    fleet = s.fleet[0]
    one = s.posts[fleet["num_posts"]]
    fleet["num_posts"] += 1
    one["time_s"], one["kind"], one["a"], one["b"], one["x"] = time_s, kind, a, b, x


@inline
def take_slot(s: State) -> int:
    """A free slot; the loop has seen to it that there is one."""
    fleet = s.fleet[0]
    fleet["num_free_slots"] -= 1
    return int(s.slots[fleet["num_free_slots"]]["free"])


@inline
def give_slot(s: State, slot: int) -> None:
    """The slot is free again."""
    fleet = s.fleet[0]
    s.slots[fleet["num_free_slots"]]["free"] = slot
    fleet["num_free_slots"] += 1


@inline
def fixed_blocks(s: State, pool: int, tokens: int) -> int:
    """Blocks that a request of so many tokens holds beside those that grow: windows and recurrent states."""
    kind = s.pools[pool]
    if kind["state_blocks"] + kind["window_token_blocks"] == 0.0:
        return 0
    held = min(tokens, kind["window_tokens"]) * kind["window_token_blocks"]
    return int(np.ceil(kind["state_blocks"] + held))


@inline
def ceil_div(amount: int, size: int) -> int:
    """Whole pieces of `size` that hold an amount."""
    return (amount + size - 1) // size
