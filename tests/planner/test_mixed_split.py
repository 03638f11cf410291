"""How many replicas of each kind: against every number of them, and at the ends where there is nothing to choose."""

from __future__ import annotations

from itertools import product
from math import ceil

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from datahall.planner.serving.mixed import split
from datahall.planner.serving.mixed.split import Kind, all_hold, held_by, spare_of


def cheapest_split(
    kinds: list[Kind], offered: float, num_spare: int = 0, least_kinds: int = 1
) -> tuple[int, ...] | None:
    return split.cheapest_split(kinds, offered, num_spare, least_kinds=least_kinds)


KINDS = st.builds(
    Kind,
    rate_per_s=st.floats(0.5, 20.0),
    most=st.integers(0, 7),
    usd=st.floats(0.1, 9.0),
    num_together=st.sampled_from([1, 1, 2, 4]),
)


def cost(kinds: list[Kind], counts: tuple[int, ...]) -> float:
    return sum(
        ceil(count / one.num_together) * one.num_together * one.usd
        for one, count in zip(kinds, counts, strict=True)
    )


def left_by_the_worst(kinds: list[Kind], counts: tuple[int, ...], num_spare: int) -> float:
    """What is held when those replicas are out that leave the least: replica by replica, not by a rule."""
    rates = sorted(
        rate for one, count in zip(kinds, counts, strict=True) for rate in [one.rate_per_s] * count
    )
    return sum(rates[: len(rates) - num_spare]) if len(rates) >= num_spare else -1.0


def every_one(kinds: list[Kind], offered: float, num_spare: int) -> dict[tuple[int, ...], float]:
    """All fleets that hold the load, and what each costs."""
    return {
        counts: cost(kinds, counts)
        for counts in product(*(range(one.most + 1) for one in kinds))
        if any(counts)
        and sum(counts) > num_spare
        and left_by_the_worst(kinds, counts, num_spare) >= offered * (1.0 - 1e-9)
    }


@settings(max_examples=300, deadline=None)
@given(st.lists(KINDS, min_size=1, max_size=3), st.floats(0.1, 120.0), st.integers(0, 3))
def test_no_other_numbers_cost_less(kinds: list[Kind], offered: float, num_spare: int) -> None:
    kinds = [one for one in kinds if one.most]
    assume(kinds)
    all_of_them, found = every_one(kinds, offered, num_spare), cheapest_split(kinds, offered, num_spare)
    if not all_of_them:
        assert found is None
        assert all_hold(kinds, num_spare) <= offered
        return
    assert found is not None
    assert found in all_of_them
    assert cost(kinds, found) == pytest.approx(min(all_of_them.values()))


@settings(max_examples=100, deadline=None)
@given(st.lists(KINDS, min_size=2, max_size=3), st.floats(0.1, 60.0), st.integers(0, 6))
def test_more_of_a_kind_never_costs_more(kinds: list[Kind], offered: float, more: int) -> None:
    kinds = [one for one in kinds if one.most]
    assume(len(kinds) > 1)
    few = cheapest_split(kinds, offered)
    assume(few is not None)
    assert few is not None
    many = cheapest_split([kinds[0]._replace(most=kinds[0].most + more), *kinds[1:]], offered)
    assert many is not None
    assert cost(kinds, many) <= cost(kinds, few) * (1.0 + 1e-9)


def test_where_none_is_short_one_kind_is_all_but_for_the_last_replica() -> None:
    """The cheapest for what it holds; another saves at most what a part of a replica costs."""
    kinds = [Kind(10.0, 500, 2.0), Kind(14.0, 500, 2.5)]
    found = cheapest_split(kinds, 14.0 * 300)
    assert found == (0, 300)
    mixed = cheapest_split(kinds, 14.0 * 300 + 1.0)
    assert mixed is not None
    assert cost(kinds, (0, 301)) - 2.5 < cost(kinds, mixed) <= cost(kinds, (0, 301))


def test_equal_kinds_are_one_kind() -> None:
    one = Kind(10.0, 1000, 3.0)
    assert cheapest_split([one, one], 4321.0) in {(433, 0), (0, 433)}
    short = one._replace(most=400)
    halved = cheapest_split([short, short], 4321.0)
    assert halved is not None
    assert sum(halved) == 433


def test_thousands_of_replicas_take_no_longer_to_split() -> None:
    """Of the cheap one all there are, of the other what is missing."""
    found = cheapest_split([Kind(9.9, 40_000, 1.0), Kind(14.3, 90_000, 2.0)], 1_000_000.0)
    assert found == (40_000, ceil((1_000_000.0 - 396_000.0) / 14.3))


def test_a_spare_one_is_of_the_kind_that_would_be_missed_most() -> None:
    assert spare_of([8.0, 10.0, 9.0], [5, 1, 4], 3) == (0, 1, 2)
    assert held_by([8.0, 10.0, 9.0], [5, 1, 4], 3) == pytest.approx(5 * 8.0 + 2 * 9.0)
    assert cheapest_split([Kind(8.0, 5, 1.0), Kind(10.0, 9, 1.0)], 60.0, 1) == (0, 7)


def test_what_shares_a_server_is_paid_together() -> None:
    """Nine of the second would fill two servers of eight; eight and one of the other cost less."""
    kinds = [Kind(10.0, 1, 3.0), Kind(10.0, 100, 1.0, num_together=8)]
    assert cheapest_split(kinds, 90.0) == (1, 8)
    assert cheapest_split(kinds, 110.0) == (0, 11)


def test_at_least_two_kinds_where_a_mixture_is_wanted() -> None:
    kinds = [Kind(10.0, 9, 1.0), Kind(10.0, 9, 5.0)]
    assert cheapest_split(kinds, 50.0) == (5, 0)
    assert cheapest_split(kinds, 50.0, least_kinds=2) == (4, 1)
    assert cheapest_split(kinds[:1], 50.0, least_kinds=2) is None
