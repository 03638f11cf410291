"""The fewest replicas are found, and looser limits never find more, however near the edge is to chance."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.planner.serving.fewest import RESOLUTION, Edge, fewest


def planned(model: str, **said: Any) -> Answer:
    return dh.plan_serve(model, **said)


@pytest.mark.parametrize(("least", "edge"), [(1, 1), (1, 2), (1, 97), (7, 7), (7, 8), (60, 119), (60, 61)])
@pytest.mark.parametrize("expected", [1, 7, 60, 100, 119])
def test_what_is_found_is_the_edge_wherever_it_is_expected(least: int, edge: int, expected: int) -> None:
    asked: list[int] = []

    def keeps(count: int) -> bool:
        asked.append(count)
        return count >= edge

    assert fewest(keeps, expected=expected, least=least, most=200) == Edge(edge, edge - 1)
    assert len(asked) == len(set(asked)) <= 24
    assert all(least <= count <= 200 for count in asked)


def test_where_it_is_expected_few_are_tried() -> None:
    asked: list[int] = []
    assert fewest(
        lambda count: bool(asked.append(count)) or count >= 83, expected=83, least=60, most=160
    ) == Edge(83, 82)
    assert len(asked) <= 5


def test_of_many_the_edge_is_within_the_resolution() -> None:
    found = fewest(lambda count: count >= 123_456, expected=150_000, least=100_000, most=300_000)
    assert found.broken < 123_456 <= found.enough
    assert found.enough - found.broken <= RESOLUTION * found.enough


def test_nothing_beyond_the_most_is_tried() -> None:
    asked: list[int] = []
    found = fewest(lambda count: bool(asked.append(count)), expected=500, least=10, most=20)
    assert found.enough > 20
    assert max(asked) <= 20


@pytest.mark.parametrize("seed", range(50))
def test_looser_limits_never_find_more(seed: int) -> None:
    """A latency that falls with the number, and is drawn anew for each: 30 limits, each expected where it may."""
    draw = random.Random(seed)
    least = draw.randint(1, 80)
    noise = draw.choice((0.005, 0.02))
    latency = {count: least / count * (1 + draw.gauss(0, noise)) for count in range(least, 8 * least + 9)}
    found = []
    for limit in sorted(draw.uniform(0.3, 1.0) for _ in range(30)):
        near = max(least, round(least / limit * draw.uniform(0.97, 1.03)))
        most = 4 * least + 4
        found.append(
            fewest(lambda count, limit=limit: latency[count] <= limit, expected=near, least=least, most=most)
        )
    assert [edge.enough for edge in found] == sorted((edge.enough for edge in found), reverse=True)


@pytest.mark.parametrize(
    "looser",
    [
        [{"ttft": ttft, "tpot": "50ms"} for ttft in ("500ms", "800ms", "2s")],
        [{"ttft": "500ms", "tpot": "50ms", "percentile": share} for share in (99, 95, 80, 50)],
        [{"ttft": "800ms", "tpot": tpot} for tpot in ("40ms", "50ms", "60ms")],
    ],
)
def test_a_plan_of_looser_limits_takes_no_more(looser: list[dict[str, str | int]]) -> None:
    """As it did: 107 to 110 replicas, by chance, 110 of them where the first token had most time."""
    load = {"rate": 215.57, "isl": 6000, "osl": 600, "chips": "mi300x", "buy": "rent"}
    of_all = [number(planned("mixtral-8x7b", **load, **limits), "num_chips") for limits in looser]
    assert of_all == sorted(of_all, reverse=True)


def test_users_who_ask_again_at_once_are_served_as_well() -> None:
    """They come more often than those who read at the pace of the limit, for whom fewer replicas would do."""
    said = {"users": 10_000, "ttft": "1s", "tpot": "50ms", "chips": "h100-sxm", "headroom": 0}
    found = dh.plan_serve("llama-3.1-70b", **said)
    count, there = (
        number(found, "num_replicas"),
        {"chip": "h100-sxm", "tp": found.results["tp"], "precision": "fp8"},
    )

    def kept(replicas: float) -> float:
        played = dh.simulate_serve(
            "llama-3.1-70b", replicas=int(replicas), users=10_000, ttft="1s", tpot="50ms", **there
        )
        return number(played, "good_fraction")

    assert kept(count) >= 0.945
    assert kept(count) > 0.92 > kept(0.9 * count)
