"""A policy takes the target that it says, and affinity yields to load."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.serve.http import Exchange
from datahall.serve.upstreams.reach import Inside
from datahall.serve.upstreams.routing import RULES, UNEVEN, UNEVEN_RATIO, Hint, Target
from datahall.serve.upstreams.upstream import Upstream


def targets(*loads: int) -> list[Target]:
    found = [Target(Upstream(f"u{place}", Inside(nobody), Random(1)), "m") for place in range(len(loads))]
    for target, load in zip(found, loads, strict=True):
        target.upstream.num_open = load
    return found


def nobody(exchange: Exchange) -> None:
    del exchange


def chosen(policy: str, among: list[Target], hint: Hint | None = None) -> int:
    return among.index(RULES[policy](among, hint or Hint()))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_least_outstanding_has_the_fewest_requests(loads: list[int]) -> None:
    assert loads[chosen("least-outstanding", targets(*loads))] == min(loads)


def test_what_waits_in_the_queue_of_an_engine_counts() -> None:
    among = targets(0, 3)
    among[0].upstream.num_waiting = 5.0
    assert chosen("least-outstanding", among) == 1


def test_latency_takes_the_fastest_and_first_one_never_tried() -> None:
    among = targets(0, 0, 0)
    for target, latency_s in zip(among, (0.3, 0.1, 0.2), strict=True):
        target.upstream.did_well(latency_s)
    assert chosen("latency", among) == 1
    among[1].upstream.num_open = 5
    assert chosen("latency", among) == 2
    assert chosen("latency", [*among, *targets(0)]) == 3


def test_latency_tries_again_who_was_slow_once() -> None:
    now_s = [0.0]
    among = [
        Target(Upstream(name, Inside(nobody), Random(1), clock=lambda: now_s[0]), "m")
        for name in ("cold", "warm")
    ]
    among[0].upstream.did_well(3.0)
    for now_s[0] in range(30):
        among[1].upstream.did_well(0.1)
        assert chosen("latency", among) == 1
    for now_s[0] in range(30, 120):
        among[1].upstream.did_well(0.1)
    assert chosen("latency", among) == 0


def test_cost_takes_the_cheapest_until_it_is_gone() -> None:
    among = targets(9, 0, 0)
    for target, cost in zip(among, (1, 2, 2), strict=True):
        target.cost = cost
    assert chosen("cost", among) == 0
    among[1].upstream.num_open = 1
    assert chosen("cost", among[1:]) == 1


@pytest.mark.parametrize(("policy", "field"), [("prefix", "prefix"), ("session", "session")])
@given(keys=st.lists(st.binary(min_size=1), min_size=1, unique=True))
def test_affinity_is_steady_and_a_target_more_moves_its_own_share(
    policy: str, field: str, keys: list[bytes]
) -> None:
    among = targets(0, 0, 0)
    hints = [Hint(**{field: key}) for key in keys]
    before = [chosen(policy, among, hint) for hint in hints]
    assert before == [chosen(policy, among, hint) for hint in hints]
    after = [chosen(policy, [*among, *targets(0, 0, 0, 0)[3:]], hint) for hint in hints]
    assert all(new in (old, 3) for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize("num_targets", [3, 8])
def test_affinity_gives_each_as_many_keys(num_targets: int) -> None:
    among = targets(*[0] * num_targets)
    counts = Counter(chosen("prefix", among, Hint(prefix=b"%d" % key)) for key in range(8000))
    mean = 8000 / num_targets
    assert max(abs(counts[place] - mean) for place in range(num_targets)) < 0.12 * mean


@given(st.lists(st.integers(0, 50), min_size=2, max_size=6), st.binary(min_size=1))
def test_affinity_never_burdens_one_far_beyond_the_mean(loads: list[int], key: bytes) -> None:
    load = loads[chosen("prefix", targets(*loads), Hint(prefix=key))]
    assert load <= UNEVEN_RATIO * sum(loads) / len(loads) + UNEVEN
