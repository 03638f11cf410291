"""Who keeps and who loses a place on a replica: chains of prompts that were cut, caches that come from elsewhere."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.inference.serving_case import replica
from tests.inference.ticking_case import one_pool, rows, simulated, times

from datahall.inference.engine.disaggregation import Handoff
from datahall.inference.fleet.fleet import ReplicaOutage
from datahall.inference.simulation.admission import next_blocks, resume_without
from datahall.inference.simulation.state import NONE, POOL, REPLICA, SLOT

HANDOFF = Handoff(setup_s=0.5, token_s=0.0, shown_fraction=0.0)


def chain(*slots: int) -> Any:
    """The second of two replicas with prompts that were cut, in their order; the first has one of its own."""
    state: Any = SimpleNamespace(
        slots=np.zeros(8, SLOT), replicas=np.zeros(2, REPLICA), pools=np.zeros(1, POOL)
    )
    state.slots["waits"] = NONE
    state.replicas["partial"] = [7, slots[0] if slots else NONE]
    for slot, behind in pairwise(slots):
        state.slots[slot]["waits"] = behind
    return state


def followed(state: Any, replica: int = 1) -> list[int]:
    found, slot = [], int(state.replicas[replica]["partial"])
    while slot != NONE:
        found.append(slot)
        slot = int(state.slots[slot]["waits"])
    return found


@pytest.mark.parametrize(
    ("leaves", "left"), [(3, [5, 1]), (5, [3, 1]), (1, [3, 5]), (4, [3, 5, 1]), (7, [3, 5, 1])]
)
def test_who_leaves_the_chain_of_cut_prompts_leaves_the_others_in_their_order(
    leaves: int, left: list[int]
) -> None:
    state = chain(3, 5, 1)
    resume_without(state, 1, leaves)
    assert followed(state) == left
    assert followed(state, 0) == [7]


def test_the_only_cut_prompt_leaves_nobody() -> None:
    state = chain(2)
    resume_without(state, 1, 2)
    assert followed(state) == []
    resume_without(state, 1, 2)
    assert followed(state) == []


def test_blocks_of_the_next_pieces_are_those_that_the_budget_reaches() -> None:
    """Pieces of 64: of a prompt of 100 with 32 done and two blocks, then of one of 50 from its start, blocks of 16."""
    state = chain(3, 5)
    state.pools["block_tokens"], state.pools["budget"] = 16, 64
    state.slots["todo"][[3, 5]], state.slots["done"][3], state.slots["blocks"][3] = [100, 50], 32, 2
    assert next_blocks(state, 1, 64) == 4  # 96 tokens are six blocks, two of which are there
    # all 68 that are left of the first, 7 blocks in all, and 32 of the second
    state.pools["budget"] = 100
    assert next_blocks(state, 1, 100) == 5 + 2
    assert next_blocks(state, 1, 0) == 0
    state.slots["fixed"][3] = 1  # what a window holds beside
    assert next_blocks(state, 1, 64) == 5


@pytest.mark.parametrize(
    ("whole_output", "num_blocks", "ends"),
    [
        # a prompt of 24 with its first token is two blocks of 16 and grows to four; one block more stays free
        (False, 8, [40.5, 40.5]),
        (True, 8, [40.5, 79.5]),
        (True, 9, [40.5, 40.5]),
    ],
)
def test_a_cache_that_lands_takes_room_for_all_that_it_may_write_where_the_engine_says_so(
    whole_output: bool, num_blocks: int, ends: list[float]
) -> None:
    """A step and half a second on the way, then 39 further tokens."""
    pools = (
        one_pool(role="prefill", handoff=HANDOFF),
        one_pool(role="decode", num_blocks=num_blocks, whole_output_blocks=whole_output),
    )
    run = simulated(*pools, requests=rows((0.0, 24, 40), (0.0, 24, 40)))
    assert sorted(end for _, _, end in times(run)) == ends
    assert run.num_preempted == 0


def test_a_cache_that_lands_last_waits_for_the_first_place() -> None:
    """Two places; the third cache lands at 2.5 and takes the place that is free at 5.5."""
    pools = (one_pool(role="prefill", handoff=HANDOFF), one_pool(role="decode", max_sequences=2))
    run = simulated(*pools, requests=rows((0.0, 10, 5), (0.0, 10, 9), (0.6, 10, 2)))
    assert [end for _, _, end in times(run)] == [5.5, 9.5, 6.5]


@pytest.mark.parametrize(("free", "end"), [(2, 8.5), (3, 4.5)])
def test_a_cache_that_lands_leaves_a_block_for_each_sixteen_that_grow(free: int, end: float) -> None:
    """Sixteen hold a block of 16 tokens each, so one of them fills it with every step: a block, that and one more."""
    pools = (
        one_pool(role="prefill", handoff=HANDOFF, max_sequences=32, token_budget=256),
        one_pool(role="decode", num_blocks=16 + free, max_sequences=32),
    )
    run = simulated(*pools, requests=rows(*[(0.0, 8, 6)] * 16, (0.6, 8, 3)))
    assert [ended for _, _, ended in times(run)] == [6.5] * 16 + [end]


def test_a_cache_that_landed_and_gave_way_is_computed_again() -> None:
    """Caches of 32 tokens, two blocks of 16 each, land at 1.5; of five blocks one is left, and two are wanted.

    The one that stays ends three steps later; then 32 and one token are computed in a step, which gives the second
    token of four.
    """
    pools = (one_pool(role="prefill", handoff=HANDOFF), one_pool(role="decode", num_blocks=5))
    run = simulated(*pools, requests=rows((0.0, 32, 4), (0.0, 32, 4)))
    assert sorted(end for _, _, end in times(run)) == [4.5, 7.5]
    assert run.replicas.prompt_tokens.tolist() == [64, 33]
    assert run.num_preempted == 1


def test_a_cache_that_was_swapped_back_is_lost_with_its_replica() -> None:
    """Of two prompts of 32 in four blocks the second goes to the host for half a second and is back at 5.0, when the
    first has ended: tokens at 1, 6 and 7.  Lost at 7.2, its 32 and 3 tokens are computed by the other replica beside
    the 10 that it had, in a step that gives the fourth of six."""
    swapping = msgspec.structs.replace(
        replica(token_budget=64, max_sequences=8, preemption="swap"), host_bytes_per_s=131_072.0 * 64
    )
    run = simulated(
        one_pool(2, num_blocks=4, of=swapping), requests=rows((0.0, 32, 4), (0.0, 10, 1), (0.0, 32, 6)),
        outages=(ReplicaOutage(replica=0, start_s=7.2, duration_s=60.0),),
    )  # fmt: skip
    assert times(run) == [(0.0, 1.0, 4.5), (0.0, 1.0, 1.0), (0.0, 1.0, 10.2)]
    assert run.replicas.prompt_tokens.tolist() == [64, 10 + 35]


@pytest.mark.parametrize(("num_blocks", "together"), [(5, False), (6, True)])
def test_a_static_batch_is_as_large_as_its_padded_sequences_fit(num_blocks: int, together: bool) -> None:
    """Prompts of 32 and 20 and answers of 16: each is padded to 48 tokens, three blocks."""
    pool = one_pool(num_blocks=num_blocks, batching="static")
    run = simulated(pool, requests=rows((0.0, 32, 16), (0.0, 20, 10)))
    first, second = times(run)
    assert (second[0] < first[2]) == together
    assert run.replicas.free_blocks.tolist() == [num_blocks]
