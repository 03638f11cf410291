"""Tails of counts against exact sums, whatever they are computed by: rational sums, Panjer's recursion, each other."""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp, lgamma, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.reliability.nodes.spares import Recursion, enough
from datahall.reliability.tails.binomial import binomial_at_least
from datahall.reliability.tails.normal import LONG_SPREAD, normal_at_most
from datahall.reliability.tails.poisson import counted


@given(total=st.integers(1, 300), needed=st.integers(0, 301), percent=st.integers(1, 99))
def test_a_binomial_tail_is_the_rational_sum(total: int, needed: int, percent: int) -> None:
    share = Fraction(percent, 100)
    whole = sum(comb(total, n) * share**n * (1 - share) ** (total - n) for n in range(needed, total + 1))
    assert binomial_at_least(needed, total, percent / 100) == pytest.approx(float(whole), rel=1e-11, abs=0.0)


@pytest.mark.parametrize("away", [-4.0, -1.0, 0.0, 1.0, 2.326, 5.0])
@pytest.mark.parametrize(
    "sizes", [{1: 2500.0}, {2: 4000.0}, {1: 6000.0, 18: 3.0}, {1: 40.0, 18: 300.0}, {1: 9.0}]
)
def test_counts_over_their_spread_are_those_of_the_recursion(sizes: dict[int, float], away: float) -> None:
    mean = sum(b * each for b, each in sizes.items())
    spread = sum(b * b * each for b, each in sizes.items()) ** 0.5
    num = max(0, int(mean + away * spread))
    assert counted(sizes)(num) == pytest.approx(Recursion(sizes)(num), abs=2e-12)


@given(mean=st.floats(0.1, 1800.0), share=st.floats(0.5, 0.99999))
def test_enough_is_the_percentile_of_the_sum(mean: float, share: float) -> None:
    found = enough({1: mean}, share)

    def below(most: int) -> float:
        return sum(exp(k * log(mean) - mean - lgamma(k + 1)) for k in range(most + 1))

    assert below(found.num) >= share - 1e-9
    assert found.num == 0 or below(found.num - 1) < share + 1e-9


@given(mean=st.floats(1900.0, 2100.0))
def test_nothing_jumps_where_the_recursion_ends(mean: float) -> None:
    """Twice the mean has at least as many, and a hundredth more at most three more than the mean and the spread ask."""
    first, then = enough({1: mean}, 0.99), enough({1: 1.01 * mean}, 0.99)
    assert 0 <= then.num - first.num <= 0.01 * mean + 3


def test_the_normal_takes_over_where_it_is_as_good() -> None:
    for mean in (LONG_SPREAD**2 * 0.99, LONG_SPREAD**2 * 1.01):  # added up, and not
        for away in (-3.0, -1.0, 0.0, 1.0, 2.326, 4.0):
            num = int(mean + away * mean**0.5)
            near = normal_at_most(num, mean, mean**0.5, mean**-0.5)
            assert counted({1: mean})(num) == pytest.approx(near, abs=1e-9)
    share = 0.3
    for total in (4 * 10**9, 5 * 10**9):  # a spread of 28,983 and of 32,404
        mean, spread = total * share, (total * share * (1 - share)) ** 0.5
        num = int(mean + 2 * spread)
        near = 1.0 - normal_at_most(num - 1, mean, spread, (1 - 2 * share) / spread)
        assert binomial_at_least(num, total, share) == pytest.approx(near, abs=1e-8)


@pytest.mark.parametrize("mean", [1e4, 1e6, 1e8, 1e10, 1e15, 1e20])
def test_very_many_need_their_mean_and_2_326_spreads(mean: float) -> None:
    """The 99th percentile of a Poisson count is μ + 2.326 √μ + (2.326² − 1)/6 (Cornish and Fisher)."""
    found = enough({1: mean}, 0.99)
    assert found.num == pytest.approx(mean + 2.3263 * mean**0.5 + 0.735, abs=2 + 1e-4 * mean**0.5, rel=1e-15)
    assert found.enough_fraction == pytest.approx(0.99, abs=0.05 / mean**0.5 + 1e-4)


def test_sizes_that_go_together_count_as_many_times_one() -> None:
    alone, racks = enough({1: 1e6}, 0.99), enough({18: 1e6}, 0.99)
    assert racks.num == 18 * alone.num


@pytest.mark.parametrize("repairs", [{1: 0.5}, {1: 3.0, 8: 0.25}, {32: 0.01}, {}])
def test_spares_without_end_are_not_counted_one_by_one(repairs: dict[int, float]) -> None:
    """Where nobody says how many there are, there are more than any number that is away: it is certain at once."""
    chance = Recursion(repairs)
    assert chance(2**62) == pytest.approx(1.0)
    assert chance(0) == pytest.approx(exp(-sum(repairs.values())))
