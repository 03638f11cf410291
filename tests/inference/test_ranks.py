"""Data-parallel ranks of one replica step together, and the experts see the mean of what they bring."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.inference.serving_case import fleet, table

from datahall.inference.simulation.simulate import simulate_serving
from datahall.workload.traffic.requests import Requests

MET_S = 1e-5  # what each token costs where the ranks meet
OWN_S = 2.2e-5 - MET_S


@pytest.mark.parametrize("num_prompts", [1, 2, 3])
def test_a_step_takes_its_fullest_rank_alone_and_the_mean_where_they_meet(num_prompts: int) -> None:
    """Prompts of 512 tokens on two ranks: one has the longest whole, or as many as half of them all."""
    plain = table()
    met = plain._replace(met_s=np.arange(plain.tokens_s.size) * MET_S)
    alone = fleet()
    (pool,) = alone.pools
    pair = msgspec.structs.replace(pool.replica, dp=2)
    served = msgspec.structs.replace(alone, pools=(msgspec.structs.replace(pool, replica=pair, table=met),))
    requests = Requests.of(np.zeros(num_prompts), np.full(num_prompts, 512), np.ones(num_prompts, np.int64))
    run = simulate_serving(served, requests, record=True)
    half = -(-num_prompts * 512 // 2)
    fullest = max(512, half)
    attention_s = 512.0**2 * 6.5e-10
    expected_s = (
        (7e-3 + fullest * OWN_S + half * MET_S)
        + max(attention_s, num_prompts * attention_s / 2)
        + (1e-4 + -(-num_prompts // 2) * 1e-7)  # head
        + (1e-4 + -(-num_prompts // 2) * 1e-6)  # host
    )
    assert run.records is not None
    assert run.records.first_s.max() == pytest.approx(expected_s, rel=1e-3)
