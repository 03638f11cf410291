"""How the copies of a benchmark's tokens fall on experts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.validation.busiest_expert import busiest


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4096),
    st.sampled_from([8, 64, 256]),
    st.integers(1, 8),
    st.sampled_from([1, 2, 8]),
    st.sampled_from(["balanced", "power_law_1.2", "power_law_1.01"]),
)
def test_no_rank_hits_more_experts_than_it_has_or_copies_reach_it(
    tokens: int, experts: int, top_k: int, ep: int, how: str
) -> None:
    hit, copies = busiest(tokens, experts, top_k, ep, how)
    assert 1.0 <= hit <= min(experts / ep, copies) + 1e-9
    assert copies >= tokens * top_k / ep - 1e-9
    assert copies <= tokens * top_k + 1e-9 or copies == 1.0


def test_a_power_law_loads_the_busiest_rank_more_than_dealing_out() -> None:
    dealt, drawn = (busiest(1024, 128, 8, 8, how)[1] for how in ("balanced", "power_law_1.2"))
    assert dealt == 1024.0
    assert 1.2 * dealt < drawn < 3.0 * dealt


@pytest.mark.parametrize("how", ["balanced", "power_law_1.2"])
def test_one_token_hits_its_experts(how: str) -> None:
    assert busiest(1, 128, 8, 1, how) == (8.0, 8.0)
