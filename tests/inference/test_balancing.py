"""Which replica gets a request: each rule on a router whose loads are set by hand, and how prefixes are spread."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from datahall.inference.fleet.balancing import BACK, FIRST_REGION, FRONT, choose, jump_hash, list_members
from datahall.inference.memory.prefix_cache import mixed
from datahall.inference.simulation.state import (
    ACTIVE,
    BOTH,
    DECODE,
    DRAINING,
    FLEET,
    LEAST_OUTSTANDING,
    NONE,
    OFF,
    POOL,
    PREFILL,
    PREFIX_AFFINITY,
    REPLICA,
    ROUND_ROBIN,
    SESSION,
    SLOT,
    STARTING,
    TWO_CHOICES,
)


def router(
    loads: list[int],
    routing: int,
    *,
    roles: list[int] | None = None,
    regions: list[int] | None = None,
    status: list[int] | None = None,
    spill: int = 4,
    weights: list[float] | None = None,
) -> Any:
    num = len(loads)
    state: Any = SimpleNamespace(
        fleet=np.zeros(1, FLEET),
        slots=np.zeros(200, SLOT),
        replicas=np.zeros(num, REPLICA),
        pools=np.zeros(num, POOL),
        members=np.zeros((FIRST_REGION + 2, num + 1), np.int64),
        distance_s=np.zeros((2, 2)) if regions else np.zeros((1, 1)),
    )
    state.replicas["pool"] = np.arange(num)
    state.replicas["outstanding"] = loads
    state.replicas["status"] = status or [ACTIVE] * num
    state.replicas["region"] = regions or [0] * num
    state.pools["role"], state.pools["weight"] = roles or [BOTH] * num, weights or [1.0] * num
    state.fleet["routing"], state.fleet["spill"], state.fleet["affinity_load"] = routing, spill, 1.25
    state.slots["group"] = NONE
    state.slots["session"] = np.arange(200)
    list_members(state)
    return state


def members(state: Any, which: int) -> list[int]:
    return state.members[which, 1 : 1 + state.members[which, 0]].tolist()


def test_only_active_replicas_take_requests_and_those_that_decode_have_a_list_of_their_own() -> None:
    state = router(
        [0] * 7, ROUND_ROBIN, roles=[BOTH, DECODE, PREFILL, BOTH, BOTH, DECODE, BOTH],
        status=[ACTIVE, ACTIVE, ACTIVE, OFF, STARTING, DRAINING, ACTIVE], regions=[0, 0, 1, 0, 0, 0, 1],
    )  # fmt: skip
    assert members(state, FRONT) == [0, 2, 6]
    assert members(state, BACK) == [1]
    assert [members(state, FIRST_REGION + region) for region in (0, 1)] == [[0], [2, 6]]
    list_members(state)
    assert members(state, FRONT) == [0, 2, 6]


@pytest.mark.parametrize("routing", [ROUND_ROBIN, LEAST_OUTSTANDING, TWO_CHOICES, PREFIX_AFFINITY, SESSION])
def test_nobody_and_the_only_one(routing: int) -> None:
    assert choose(router([0, 0], routing, status=[OFF, OFF]), 0, False) == NONE
    assert choose(router([0, 9], routing, status=[OFF, ACTIVE]), 0, False) == 1
    assert choose(router([0, 9], routing), 0, True) == NONE  # nobody only decodes


def test_round_robin_takes_each_in_turn() -> None:
    state = router([5, 0, 9], ROUND_ROBIN)
    assert [choose(state, slot, False) for slot in range(6)] == [0, 1, 2, 0, 1, 2]


def test_the_fewest_requests_win_and_equals_take_turns() -> None:
    assert {choose(router([3, 1, 2], LEAST_OUTSTANDING), slot, False) for slot in range(3)} == {1}
    equal = router([2, 5, 2, 2], LEAST_OUTSTANDING)
    assert {choose(equal, slot, False) for slot in range(8)} == {0, 2, 3}
    idle = router([0, 0, 0], LEAST_OUTSTANDING)
    assert [choose(idle, slot, False) for slot in range(3)] == [1, 2, 0]


def test_a_pool_of_twice_the_weight_gets_twice_the_requests() -> None:
    heavy = [1.0, 2.0, 1.0]
    assert choose(router([2, 3, 2], LEAST_OUTSTANDING, weights=heavy), 0, False) == 1
    assert choose(router([2, 5, 3], LEAST_OUTSTANDING, weights=heavy), 0, False) == 0
    state = router([0, 0, 0], LEAST_OUTSTANDING, weights=heavy)
    for _ in range(400):
        state.replicas[choose(state, 0, False)]["outstanding"] += 1
    assert state.replicas["outstanding"].tolist() == [100, 200, 100]
    drawn = router([2, 3], TWO_CHOICES, weights=[1.0, 2.0])
    drawn.slots[0]["pick"] = 0 | (1 << 31)
    assert choose(drawn, 0, False) == 1
    assert {choose(router([9, 1], SESSION, weights=[1.0, 1e3]), slot, False) for slot in range(50)} == {0, 1}


def test_of_two_drawn_the_one_with_fewer_requests_is_taken() -> None:
    state = router([4, 1, 3, 0], TWO_CHOICES)
    for left in range(4):
        for right in range(4):
            state.slots[0]["pick"] = (left + 4 * 7) | ((right + 4 * 9) << 31)
            loads = state.replicas["outstanding"]
            assert choose(state, 0, False) == (right if loads[right] < loads[left] else left)


def test_a_session_stays_where_it_is_whatever_the_load() -> None:
    idle, busy = router([0] * 5, SESSION), router([99, 0, 50, 0, 7], SESSION)
    found = [choose(idle, slot, False) for slot in range(200)]
    assert found == [choose(busy, slot, False) for slot in range(200)]
    assert set(found) == set(range(5))
    busy.slots["group"] = 3  # groups do not matter
    assert found == [choose(busy, slot, False) for slot in range(200)]


def test_a_group_goes_to_one_replica_until_it_is_too_full() -> None:
    state = router([4] * 5, PREFIX_AFFINITY)
    state.slots["group"] = np.arange(200) // 20
    homes = [choose(state, slot, False) for slot in range(200)]
    for group in range(10):
        assert len(set(homes[20 * group : 20 * group + 20])) == 1
    assert len(set(homes)) > 2
    # 21 requests over 5, times 1¼: a load of 5.25 is the most with the new one; 5 others pass it on to the next
    home = homes[0]
    state.replicas["outstanding"] = 4
    state.replicas[home]["outstanding"] = 5
    assert choose(state, 0, False) == (home + 1) % 5
    state.replicas[(home + 1) % 5]["outstanding"] = 5
    assert choose(state, 0, False) == (home + 2) % 5
    alone = router([4] * 5, PREFIX_AFFINITY)
    assert len({choose(alone, slot, False) for slot in range(200)}) == 5  # without a group by session


@pytest.mark.parametrize(
    ("home", "other", "stays"),
    [
        (2, 2, True),  # with the new one 5 over 2, times 1¼: 3⅛ is room for a third
        (3, 2, False),  # 3¾ is no room for a fourth
        (1, 0, False),
    ],
)
def test_the_request_itself_counts_among_those_that_are_spread(home: int, other: int, stays: bool) -> None:
    state = router([0, 0], PREFIX_AFFINITY)
    state.slots["group"] = 7
    state.fleet["affinity_load"] = 99.0
    first = choose(state, 0, False)
    state.fleet["affinity_load"] = 1.25
    state.replicas["outstanding"] = other
    state.replicas[first]["outstanding"] = home
    assert (choose(state, 0, False) == first) is stays


def test_when_all_are_too_full_a_group_stays_at_home() -> None:
    state = router([4] * 4, PREFIX_AFFINITY)
    state.fleet["affinity_load"] = 0.1
    state.slots["group"] = 7
    state.fleet["affinity_load"] = 0.1
    first = choose(state, 0, False)
    state.fleet["affinity_load"] = 99.0
    assert choose(state, 0, False) == first


def test_a_cache_goes_to_the_decoder_with_the_fewest() -> None:
    state = router([9, 3, 1, 2], PREFIX_AFFINITY, roles=[PREFILL, DECODE, DECODE, DECODE])
    state.slots["group"] = 7
    assert choose(state, 0, True) == 2


@pytest.mark.parametrize(
    ("loads", "spill", "region", "taken"),
    [
        ([3, 4, 0], 4, 0, {0, 1}),  # 7 of 8 in two replicas of the near region: the least of these
        ([4, 4, 0], 4, 0, {2}),  # 8 of 8: the least of all
        ([4, 4, 9], 4, 1, {0, 1}),
        ([4, 4, 3], 4, 1, {2}),
    ],
)
def test_a_region_keeps_its_requests_until_it_is_full(
    loads: list[int], spill: int, region: int, taken: set[int]
) -> None:
    state = router(loads, LEAST_OUTSTANDING, regions=[0, 0, 1], spill=spill)
    state.slots["region"] = region
    assert {choose(state, slot, False) for slot in range(4)} <= taken


def test_a_region_without_replicas_asks_the_others() -> None:
    state = router([4, 4, 0], LEAST_OUTSTANDING, regions=[0, 0, 1], status=[ACTIVE, ACTIVE, OFF])
    state.slots["region"] = 1
    assert choose(state, 0, False) in {0, 1}


KEYS = [mixed(group * 2 + 1, 1) for group in range(4000)]


@pytest.mark.parametrize("num", [2, 4, 7, 64])
def test_keys_are_spread_evenly(num: int) -> None:
    held = Counter(jump_hash(key, num) for key in KEYS)
    assert set(held) == set(range(num))
    expected = len(KEYS) / num
    deviation = 5 * expected**0.5
    assert all(abs(count - expected) < deviation for count in held.values())


def test_one_more_replica_moves_only_its_own_share() -> None:
    moved = [(jump_hash(key, 8), jump_hash(key, 9)) for key in KEYS]
    others = [pair for pair in moved if pair[0] != pair[1]]
    assert all(after == 8 for _, after in others)
    assert len(others) == pytest.approx(len(KEYS) / 9, rel=0.2)
