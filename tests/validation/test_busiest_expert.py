"""How the copies of a benchmark's tokens fall on experts."""

from __future__ import annotations

import numpy as np
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


@pytest.mark.parametrize(
    ("tokens", "top_k", "ep", "expected"),
    [(64, 8, 8, (16.0, 64.0)), (3, 5, 2, (8.0, 8.0)), (1, 1, 8, (1.0, 1.0)), (1000, 8, 1, (128.0, 8000.0))],
)
def test_dealing_out_by_hand(tokens: int, top_k: int, ep: int, expected: tuple[float, float]) -> None:
    assert busiest(tokens, 128, top_k, ep, "balanced") == expected


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 600), st.sampled_from([8, 64, 256]), st.integers(1, 8), st.sampled_from([1.01, 1.2, 2.5])
)
def test_no_copy_is_lost_and_no_token_reaches_an_expert_twice(
    tokens: int, experts: int, top_k: int, power: float
) -> None:
    hit, copies = busiest(tokens, experts, top_k, 1, f"power_law_{power}")
    assert copies == tokens * top_k
    assert hit >= top_k  # no expert has more copies than there are tokens


@pytest.mark.parametrize("power", [1.2, 2.0])
@pytest.mark.parametrize(("tokens", "ep"), [(1024, 8), (256, 4)])
def test_the_busiest_rank_is_that_of_shares_drawn_from_the_power_law(
    tokens: int, ep: int, power: float
) -> None:
    """Shares by rejection: x in [1, 0.8 · tokens] is kept with a chance of x^-a."""
    draw = np.random.default_rng(5)
    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < 400 * 128:
        x = np.exp(draw.uniform(0.0, np.log(0.8 * tokens), 200_000))  # density 1/x: what is left is x^(1-a)
        kept.append(x[draw.random(x.size) < x ** (1.0 - power)])
    shares = np.concatenate(kept)[: 400 * 128].reshape(400, 128)
    copies = np.minimum(shares / shares.sum(axis=1, keepdims=True) * tokens * 8, tokens)
    copies *= tokens * 8 / copies.sum(axis=1, keepdims=True)
    loads = copies.reshape(400, ep, -1).sum(axis=2).max(axis=1)
    assert busiest(tokens, 128, 8, ep, f"power_law_{power}")[1] == pytest.approx(loads.mean(), rel=0.12)


def test_few_copies_hit_about_as_many_experts() -> None:
    """16 copies on 256 experts: shares between 0.01 and 2 round to few doubles, and a token draws those anew."""
    hit, copies = busiest(2, 256, 8, 1, "power_law_1.2")
    assert copies == 16.0
    assert 12.0 < hit <= 16.0
    spread, _ = busiest(2, 256, 8, 8, "power_law_1.2")
    assert spread < hit
