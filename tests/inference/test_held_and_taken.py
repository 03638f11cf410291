"""Two moments that are easily missed: a cache that finds nobody to go to, and blocks taken within one step."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.test_prefix_cache import caching_fleet
from tests.inference.ticking_case import one_pool, rows, simulated, times

from datahall.inference.engine.disaggregation import Handoff
from datahall.inference.fleet.fleet import ReplicaOutage
from datahall.inference.memory.prefix_cache import FACTORS, mixed
from datahall.inference.simulation.simulate import simulate_serving
from datahall.workload.traffic.requests import Requests

HANDOFF = Handoff(setup_s=0.5, token_s=0.0, shown_fraction=0.0)


def test_a_cache_that_finds_nobody_waits_for_who_decodes_and_is_not_computed_again() -> None:
    """The prompt is done at 1, its cache lands at 1.5 where nobody decodes until 10; then three further tokens."""
    pools = (one_pool(role="prefill", handoff=HANDOFF), one_pool(role="decode"))
    lost = ReplicaOutage(replica=1, start_s=0.0, duration_s=10.0)
    run = simulated(*pools, requests=rows((0.0, 10, 4)), outages=(lost,))
    assert times(run)[0][2] == 13.0
    assert run.replicas.prompt_tokens.tolist() == [10, 0]
    assert run.replicas.num_steps.tolist() == [1, 3], "who computed the prompt does not decode"


def test_a_prompt_that_finds_nobody_waits_for_who_computes_it() -> None:
    pools = (one_pool(role="prefill", handoff=HANDOFF), one_pool(role="decode"))
    lost = ReplicaOutage(replica=0, start_s=0.0, duration_s=10.0)
    run = simulated(*pools, requests=rows((1.0, 10, 4)), outages=(lost,))
    assert times(run)[0] == (10.0, 11.5, 14.5)
    assert run.replicas.prompt_tokens.tolist() == [10, 0]


@pytest.mark.parametrize(("other", "hit"), [(240, 80), (160, 160), (15 * 16 + 1, 64)])
def test_what_one_prompt_of_a_step_takes_the_next_does_not_find(other: int, hit: int) -> None:
    """30 blocks, of which two answered prompts left ten each, the end of the first the oldest.

    A prompt takes some of the 30, and what stands on them is gone before the first user comes back in the same step.
    """
    requests = msgspec.structs.replace(
        Requests.of(
            np.array([0.0, 50.0, 100.0, 100.0]), np.array([160, 160, other, 175]), np.ones(4, np.int64)
        ),
        session=np.array([1, 2, 3, 1]),
    )
    run = simulate_serving(caching_fleet(30), requests, record=True)
    assert run.records is not None
    assert run.records.hit.tolist() == [0, 0, 0, hit]
    assert run.records.scheduled_s[3] == run.records.scheduled_s[2]
    assert run.replicas.free_blocks.tolist() == [30]


# -- keys of blocks ---------------------------------------------------------------------------------------------------


def test_keys_of_owners_blocks_and_replicas_are_all_different() -> None:
    owners = [4 * number + kind for number in [*range(40), 10**6, 2**40] for kind in (1, 2, 3)]
    keys = {
        mixed(mixed(owner, block), replica)
        for owner in owners for block in [*range(40), 5000] for replica in (0, 1, 7)
    }  # fmt: skip
    assert len(keys) == len(owners) * 41 * 3
    assert all(0 <= key < 2**62 for key in keys)


def test_factors_are_odd_and_small_enough_for_products_of_63_bits() -> None:
    assert all(factor % 2 == 1 and 2**30 < factor < 2**31 for factor in FACTORS)
    assert len(set(FACTORS)) == 4


@given(st.integers(0, 2**62 - 1), st.integers(0, 2**40))
def test_a_key_is_of_both_numbers(left: int, right: int) -> None:
    assert mixed(left, right) != mixed(left, right + 1)
    assert mixed(left, right) != mixed(left ^ 1, right)
    assert mixed(left, right) != mixed(left ^ 1 << 40, right)
    assert mixed(left, right) != mixed(left, right + (1 << 31))
    assert 0 <= mixed(left, right) < 2**62
