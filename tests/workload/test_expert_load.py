"""The busiest rank when some experts are more popular than others: by hand, at its limits, and against draws."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.workload.expert_load import busiest_rank, evenly_routed, largest_of, popularity


def test_popularity_by_hand() -> None:
    """x₁ = 0.8·125 = 100 and two experts at u = ¼ and ¾.

    Exponent 1: 100^¼ = √10 and 100^¾ = 10·√10, so one expert has 10/11.  Exponent 2: q = 1/(1 − 0.99·u), so
    1/0.7525 and 1/0.2575.
    """
    tokens = np.array([125.0])
    assert popularity(tokens, 2, 1, 1.0)[0] == pytest.approx([1 / 11, 10 / 11])
    assert popularity(tokens, 2, 1, 2.0)[0] == pytest.approx([0.2575 / 1.01, 0.7525 / 1.01])


def test_no_expert_gets_more_than_every_token_once() -> None:
    shares = popularity(np.array([1e6, 1.0]), 4, 2, 1.5)
    assert shares.max() == 0.5
    assert (np.diff(shares, axis=1) >= 0).all()
    assert shares[1] == pytest.approx([0.25] * 4)  # a single token leaves no room to differ


def test_an_exponent_of_one_is_the_limit_of_its_neighbours() -> None:
    tokens = np.array([1000.0])
    for near in (1.0 - 1e-6, 1.0 + 1e-6):
        assert popularity(tokens, 16, 2, near) == pytest.approx(popularity(tokens, 16, 2, 1.0), rel=1e-4)


def test_two_ranks_of_one_expert_by_hand() -> None:
    """Shares of 1/11 and 10/11: the popular expert alone makes 2·10/11; half of that where a token takes both."""
    assert busiest_rank(np.array([125.0]), 2, 1, 2, 1.0) == pytest.approx([20 / 11])
    assert busiest_rank(np.array([125.0]), 2, 2, 2, 1.0) == pytest.approx([1.0])


def test_four_ranks_of_two_experts_by_hand() -> None:
    """Eight experts at 100^(1/16), 100^(3/16) … : shares of 1.33, 2.37, 4.22, 7.51, 13.4, 23.8, 42.3, 75.2 of 170.1.

    The most popular has 0.4421; beside it one of seven that share the rest, 0.0797; on four ranks that is 2.087.  By
    spread: variance of shares 0.02083, of a rank's two 2·0.02083·6/7 = 0.0357, √ = 0.1890, z of four is 1.0491:
    1 + 4·1.0491·0.1890 = 1.793.
    """
    found = float(busiest_rank(np.array([125.0]), 8, 1, 4, 1.0)[0])
    assert found == pytest.approx(2.087, abs=0.002)
    # with top_k of 4 no rank gets more than half of all copies, nor the popular expert more than a quarter
    capped = float(busiest_rank(np.array([125.0]), 8, 4, 4, 1.0)[0])
    assert 1.0 < capped <= 2.0


def test_spread_counts_where_no_expert_stands_out() -> None:
    """64 experts on two ranks at 0.8·tokens = 1.001: shares nearly equal, so the popular one adds next to nothing.

    q runs from 1 to 1.001 in a straight line, a standard deviation of 0.001/√12 of the mean 1/64.  A rank's 32 of 64
    have √(32·32/63)·0.001/√12/64 = 1.8183e-05, times 2 ranks and z(2) = 0.5895.
    """
    found = float(busiest_rank(np.array([1.001 / 0.8]), 64, 1, 2, 1.2)[0])
    assert found - 1.0 == pytest.approx(2 * 0.5895 * 1.8183e-05, rel=0.01)


def test_bounds_of_the_busiest_rank() -> None:
    tokens = np.geomspace(2.0, 1e6, 12)
    for experts, top_k, ranks in ((8, 2, 8), (64, 8, 4), (256, 8, 64)):
        for exponent in (0.5, 1.01, 1.2, 3.0):
            found = busiest_rank(tokens, experts, top_k, ranks, exponent)
            assert (found >= 1.0).all()
            assert (found <= ranks * min(1.0, experts / ranks / top_k) + 1e-12).all()
    assert busiest_rank(tokens, 8, 2, 1, 1.2).tolist() == [1.0] * 12


@pytest.mark.parametrize(("experts", "top_k", "ranks"), [(128, 1, 8), (256, 8, 16), (64, 2, 4)])
def test_the_busiest_rank_is_that_of_experts_placed_at_random(experts: int, top_k: int, ranks: int) -> None:
    """Experts drawn from the density x^−a on [1, 0.8·T] and dealt out at random: the mean of the largest load."""
    tokens, exponent = 4096.0, 1.2
    most = 0.8 * tokens
    rng = np.random.default_rng(5)
    loads = []
    for _ in range(4000):
        drawn = ((most ** (1 - exponent) - 1) * rng.random(experts) + 1) ** (1 / (1 - exponent))
        shares = np.minimum(drawn / drawn.sum(), 1 / top_k)
        loads.append(ranks * shares.reshape(ranks, -1).sum(axis=1).max())
    found = float(busiest_rank(np.array([tokens]), experts, top_k, ranks, exponent)[0])
    assert found == pytest.approx(np.mean(loads), rel=0.12)


def test_blom_by_hand() -> None:
    """Of two draws the quantile at 1.625/2.25 = 0.7222, of eight at 7.625/8.25 = 0.9242."""
    assert largest_of(np.array([2.0, 8.0])) == pytest.approx([0.5895, 1.4342], abs=2e-4)


def test_chance_alone_by_hand() -> None:
    """Eight experts on two ranks, 100 tokens of two: variance (2 − 1)·(8 − 2)/((8 − 1)·100·2) = 0.0042857."""
    assert float(evenly_routed(100.0, 8, 2, 2.0)) == pytest.approx(1 + 0.5895 * 0.0042857**0.5, rel=1e-4)
    # one expert on each of one rank never differs; a token that takes all experts loads all ranks alike
    assert float(evenly_routed(100.0, 1, 1, 1.0)) == 1.0
    assert float(evenly_routed(100.0, 8, 8, 4.0)) == 1.0
