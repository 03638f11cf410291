"""One more way to buy is never dearer: the walk over numbers of chips against stubs with any prices."""

from __future__ import annotations

from itertools import permutations
from math import inf
from typing import Any, NamedTuple, cast

import numpy as np

from datahall.errors import InfeasibleError
from datahall.planner.plan import objective_of
from datahall.planner.training.deadline import MOST_WORSE, _least
from datahall.planner.training.money.aim import Aim
from datahall.planner.training.question import _cheaper

COUNTS = tuple(range(8, 72, 8))
WAYS = ("rent", "own", "reserved")
Prices = dict[int, dict[str, float]]  # what the run costs on so many chips, by way


class OnChips(NamedTuple):
    """As much of a plan as the walk looks at."""

    num_chips: int
    costs: dict[str, float]
    in_time: bool = True

    @property
    def cost(self) -> float:
        return min(self.costs.values())


class Least(NamedTuple):
    """An aim for the least cost."""

    objective: Any = objective_of("cost")

    def over(self, _plan: OnChips) -> bool:
        return False

    def key(self, plan: OnChips) -> tuple[float, int]:
        return plan.cost, plan.num_chips

    def pays(self, plan: OnChips) -> dict[str, float]:
        return plan.costs


class Tries:
    """Numbers of chips that were tried, of given prices."""

    def __init__(self, prices: Prices, ways: tuple[str, ...]) -> None:
        self.prices, self.ways = prices, ways
        self.asked = type("Asked", (), {"aim": Least()})
        self.weighed: list[OnChips] = []
        self.counts: list[OnChips] = []

    def add(self, num_chips: int, _above: int) -> OnChips:
        plan = OnChips(num_chips, {way: self.prices[num_chips][way] for way in self.ways})
        self.weighed.append(plan)
        self.counts.append(plan)
        return plan


def least_usd(prices: Prices, ways: tuple[str, ...]) -> float:
    tries = Tries(prices, ways)
    fewest = tries.add(COUNTS[0], 0)
    found = _least(cast(Any, fewest), COUNTS[1:], cast(Any, tries), worse=MOST_WORSE)
    return cast(OnChips, found).cost


def test_one_more_way_is_never_dearer() -> None:
    draw = np.random.default_rng(1)
    for _ in range(500):
        prices: Prices = {
            count: dict(zip(WAYS, map(float, draw.integers(1, 7, len(WAYS))), strict=True))
            for count in COUNTS
        }
        for first, more in permutations(WAYS, 2):
            both = least_usd(prices, (first, more))
            assert both <= least_usd(prices, (first,))
            assert least_usd(prices, WAYS) <= both


def test_a_way_that_is_flat_does_not_end_the_walk_of_one_that_gets_cheaper() -> None:
    """Reserved costs 7 on any number; owned 10, 9, 8, … down to 3 on 64."""
    prices: Prices = {
        count: {"reserved": 7.0, "own": 11.0 - index, "rent": inf} for index, count in enumerate(COUNTS, 1)
    }
    assert least_usd(prices, ("own",)) == least_usd(prices, ("own", "reserved")) == 3.0


def test_a_plan_for_spot_alone_is_taken_where_it_is_cheaper() -> None:
    def refused() -> OnChips:
        raise InfeasibleError("spot is too late")

    def taken(spot: Any) -> float:
        aim = type("Aim", (), {"key": Least().key, "priced": staticmethod(lambda plan: plan)})
        planned = cast(Any, lambda: OnChips(8, {"rent": 5.0}))
        return cast(OnChips, _cheaper(planned, spot, cast(Aim, aim))).cost

    assert taken(lambda: OnChips(16, {"spot": 4.0})) == 4.0
    assert taken(lambda: OnChips(16, {"spot": 6.0})) == 5.0
    assert taken(refused) == 5.0
